"""Runs in a guest: opens a new connection ten times a second, exchanges one byte, and reports how long each took."""

import json
import select
import socket
import sys
import threading
import time

PERIOD_SECONDS = 0.1


def try_once(address: str, port: int, timeout: float) -> None:
    began = time.monotonic()
    error = None
    try:
        with socket.create_connection((address, port), timeout=timeout) as connection:
            connection.sendall(b"?")
            if connection.recv(1) != b"?":
                error = "closed without an answer"
    except OSError as problem:
        error = str(problem)
    line = json.dumps({"began": began, "seconds": time.monotonic() - began, "error": error}) + "\n"
    sys.stdout.write(line)
    sys.stdout.flush()


def main(address: str, port: int, timeout: float) -> None:
    due = time.monotonic()
    attempts: list[threading.Thread] = []
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        attempt = threading.Thread(target=try_once, args=(address, port, timeout))
        attempt.start()
        attempts = [other for other in [*attempts, attempt] if other.is_alive()]
        due += PERIOD_SECONDS
    for attempt in attempts:
        attempt.join()


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
