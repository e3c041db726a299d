"""Runs in a guest: accepts one TCP stream and reports when its bytes came, one JSON line per 50 ms of data."""

import json
import socket
import sys
import time

BUCKET_SECONDS = 0.05


def say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main(port: int) -> None:
    listener = socket.create_server(("0.0.0.0", port))
    say(listening=port)
    stream, _ = listener.accept()
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
    say(end=end)


main(int(sys.argv[1]))
