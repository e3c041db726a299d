"""Finds the largest IP packet that passes with "don't fragment", in one direction, by bisection.

Arguments: address, port, IP version, largest packet to try. Prints one JSON line: `largest` (bytes, 0 where nothing
passes), `told` (the smallest MTU that an ICMP error named, or null) and `by` (who sent it).
Small answers come back over the same path, so only what is sent from here is measured.
"""

import json
import os
import socket
import struct
import sys
import time
from typing import Optional

address, port, version, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
headers = 28 if version == 4 else 48
family = socket.AF_INET if version == 4 else socket.AF_INET6
level, discover, report = (socket.IPPROTO_IP, 10, 11) if version == 4 else (socket.IPPROTO_IPV6, 23, 25)
KNOWN = (576, 1280, 1300, 1350, 1380, 1400, 1420, 1440, 1450, 1460, 1480, 1492, 1500, 8846, 8896, 8951, 9000, 9001)
PROBE = 3  # IP_PMTUDISC_PROBE: "don't fragment" always, and no size is held back because of what is known of the path
told: Optional[int] = None
by: Optional[str] = None
patience = 0.5


def read_errors(door: socket.socket) -> None:
    global told, by
    while True:
        try:
            _, extra, _, _ = door.recvmsg(256, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except OSError:
            return
        for kind, number, data in extra:
            if (kind, number) != (level, report):
                continue
            error, origin, _, _, _, mtu = struct.unpack("=IBBBBI", data[:12])
            # Origin 2 and 3 are ICMP and ICMPv6; 1 is this kernel itself, whose NIC is too small.
            if error == 90 and mtu and (told is None or mtu < told):
                told = mtu
                start = 16 + (4 if version == 4 else 8)
                packed = data[start : start + (4 if version == 4 else 16)]
                by = socket.inet_ntop(family, packed) if origin in (2, 3) else "this host"


def passes(door: socket.socket, size: int) -> bool:
    for wait in (patience, 2 * patience, 4 * patience):
        token = os.urandom(8).hex().encode()
        read_errors(door)
        try:
            door.send(token + b"x" * (size - headers - 16))
        except OSError as error:
            read_errors(door)
            if error.errno == 90:
                return False
            continue
        end = time.monotonic() + wait
        while time.monotonic() < end:
            door.settimeout(max(0.01, end - time.monotonic()))
            try:
                if door.recv(256).split()[1:] == [token]:
                    return True
            except TimeoutError:
                break
            except OSError:
                read_errors(door)
        # An error that named a smaller size came back: the same size need not be tried again.
        read_errors(door)
        if told is not None and size > told:
            return False
    return False


with socket.socket(family, socket.SOCK_DGRAM) as door:
    door.setsockopt(level, discover, PROBE)
    door.setsockopt(level, report, 1)
    door.connect((address, port))
    low, high = headers + 20, most
    trips = []
    for _ in range(3):
        began = time.monotonic()
        if not passes(door, low):
            break
        trips.append(time.monotonic() - began)
    # What does not pass costs seven of these waits, so they follow the round trip.
    patience = max(0.05, min(0.5, 5 * min(trips, default=1)))
    if not trips:
        largest = 0
    elif passes(door, high):
        largest = high
    else:
        # The answer is most likely what an error named, or one of the sizes that networks have: fewer tries than bits.
        marks = [size for size in ((told,) if told is not None else KNOWN) if low < size < high]
        while marks:
            middle = marks[len(marks) // 2]
            fits = passes(door, middle)
            low, high = (middle, high) if fits else (low, middle)
            marks = [size for size in marks if low < size < high]
        middle = low + 1
        while high - low > 1:
            fits = passes(door, middle)
            low, high = (middle, high) if fits else (low, middle)
            middle = (low + high) // 2
        largest = low
    read_errors(door)
    door.send(b"0" * 16 + b"E")
print(json.dumps({"largest": largest, "told": told, "by": by}))
