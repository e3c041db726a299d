"""Runs in a guest: a paced TCP stream from itself to itself, reported like `receive.py`, until its standard input ends.

It passes no network, so that its pauses are the machine's own.
"""

import json
import select
import socket
import sys
import threading
import time

TICK_SECONDS = 0.005
BUCKET_SECONDS = 0.05


def send(port: int, chunk: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as stream:
        due = time.monotonic()
        while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            stream.sendall(chunk)
            due = max(due + TICK_SECONDS, time.monotonic() - TICK_SECONDS)


def main(megabits_per_second: float) -> None:
    chunk = bytes(int(megabits_per_second * 1e6 / 8 * TICK_SECONDS))
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=send, args=(listener.getsockname()[1], chunk)).start()
    stream, _ = listener.accept()
    first = last = 0.0
    received = 0
    while data := stream.recv(1 << 16):
        now = time.monotonic()
        if received and now - first >= BUCKET_SECONDS:
            sys.stdout.write(json.dumps({"first": first, "last": last, "bytes": received}) + "\n")
            sys.stdout.flush()
            received = 0
        if not received:
            first = now
        last = now
        received += len(data)


main(float(sys.argv[1]))
