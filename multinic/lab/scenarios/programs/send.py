"""Runs in a guest: sends one paced TCP stream until its standard input ends.

A line there closes the connection and opens another one, from the next source port.
"""

import json
import os
import select
import socket
import sys
import time

TICK_SECONDS = 0.005


def connected(address: str, port: int, source_port: int) -> socket.socket:
    stream = socket.create_connection((address, port), timeout=30, source_address=("0.0.0.0", source_port))
    stream.settimeout(None)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sys.stdout.write(json.dumps({"connected": source_port}) + "\n")
    sys.stdout.flush()
    return stream


def main(address: str, port: int, source_port: int, megabits_per_second: float) -> None:
    stream = connected(address, port, source_port)
    chunk = bytes(int(megabits_per_second * 1e6 / 8 * TICK_SECONDS))
    due = time.monotonic()
    while True:
        if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            stream.close()
            if not os.read(sys.stdin.fileno(), 64):
                return
            source_port += 1
            stream = connected(address, port, source_port)
        stream.sendall(chunk)
        # After a pause go on at the same pace; do not send what was missed in one burst.
        due = max(due + TICK_SECONDS, time.monotonic() - TICK_SECONDS)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
