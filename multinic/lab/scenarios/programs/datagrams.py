"""Runs in a guest: sends UDP datagrams that must not be fragmented, ever smaller ones as it is told what fits.

Ends when one was answered; says what the path takes, how many were sent and how long it took.
"""

import json
import socket
import sys
import time

IP_MTU, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 14, 10, 2
HEADERS = 28
PERIOD_SECONDS = 0.1


def main(address: str, port: int, mtu: int) -> None:
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ends:
        ends.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        ends.settimeout(PERIOD_SECONDS)
        ends.connect((address, port))
        sent = 0
        while True:
            try:
                ends.send(bytes(mtu - HEADERS))
                sent += 1
                ends.recv(1 << 16)
                break
            except TimeoutError:
                continue
            except OSError:
                # Too long for the path as it is known by now, or nobody answers.
                mtu = min(mtu, ends.getsockopt(socket.IPPROTO_IP, IP_MTU))
    sys.stdout.write(json.dumps({"mtu": mtu, "sent": sent, "seconds": time.monotonic() - began}) + "\n")
    sys.stdout.flush()


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
