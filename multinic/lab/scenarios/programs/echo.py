"""Runs in a guest: answers each UDP datagram with an empty one, until its standard input ends."""

import select
import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ends:
    ends.bind(("0.0.0.0", int(sys.argv[1])))
    sys.stdout.write('{"listening": true}\n')
    sys.stdout.flush()
    while sys.stdin not in select.select([ends, sys.stdin], [], [])[0]:
        ends.sendto(b"", ends.recvfrom(1 << 16)[1])
