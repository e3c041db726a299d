"""Runs in a guest: accepts TCP streams, one after another, and reports when bytes came, one JSON line per 50 ms."""

import json
import socket
import sys
import time

BUCKET_SECONDS = 0.05


def say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def receive(stream: socket.socket) -> str:
    first = last = 0.0
    received = 0
    end = "closed"
    try:
        while data := stream.recv(1 << 16):
            now = time.monotonic()
            if received and now - first >= BUCKET_SECONDS:
                say(first=first, last=last, bytes=received)
                received = 0
            if not received:
                first = now
            last = now
            received += len(data)
    except OSError as error:
        end = str(error)
    if received:
        say(first=first, last=last, bytes=received)
    return end


def main(port: int) -> None:
    listener = socket.create_server(("0.0.0.0", port))
    say(listening=port)
    while True:
        stream, _ = listener.accept()
        with stream:
            say(end=receive(stream))


main(int(sys.argv[1]))
