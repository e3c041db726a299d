"""Sends and receives single packets inside a network namespace, as a program: `packets.py ping|udp|tcp|stream|serve …`.

Exit code 0 means that the answer came. Only what the tests need of ping and iperf.
"""

import errno
import os
import select
import socket
import struct
import sys
import time

IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
PORT, ECHO_PORT = 7007, 7008


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(source: str, destination: str, seconds: float = 2.0) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.bind((source, 0))
        number = os.getpid() & 0xFFFF
        body = struct.pack("!BBHHH", 8, 0, 0, number, 1)
        raw.sendto(struct.pack("!BBHHH", 8, 0, checksum(body), number, 1), (destination, 0))
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([raw], [], [], left)[0]:
                return False
            packet, sender = raw.recvfrom(4096)
            kind, _, _, seen, _ = struct.unpack("!BBHHH", packet[20:28])
            if kind == 0 and seen == number and sender[0] == destination:
                return True
    return False


def udp(source: str, destination: str, size: int, seconds: float) -> int:
    """Sends don't-fragment datagrams until one is echoed (0) or the path's MTU is learned (printed)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.bind((source, 0))
        channel.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        channel.connect((destination, PORT))
        channel.settimeout(0.2)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                channel.send(b"x" * size)
                if len(channel.recv(65536)) == size:
                    print("echoed")
                    return 0
            except TimeoutError:
                continue
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    print(channel.getsockopt(socket.IPPROTO_IP, IP_MTU))
                    return 0
                raise
    return 1


def tcp(source: str, destination: str, size: int, seconds: float) -> int:
    """Sends `size` bytes and waits until the server says that it has them all."""
    with socket.create_connection((destination, PORT), timeout=seconds, source_address=(source, 0)) as stream:
        stream.settimeout(seconds)
        stream.sendall(b"x" * size)
        stream.shutdown(socket.SHUT_WR)
        got = int(stream.recv(64))
        print(got, stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
        return 0 if got == size else 1


def stream(source: str, destination: str) -> int:
    """Sends something every 20 ms until its input ends; prints the longest time without an echo, in seconds."""
    with socket.create_connection((destination, ECHO_PORT), timeout=10, source_address=(source, 0)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        longest, last = 0.0, time.monotonic()
        print("connected", flush=True)
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            try:
                connection.setblocking(False)
                connection.send(b"x")
            except BlockingIOError:
                pass
            except OSError:
                print("lost")
                return 1
            if select.select([connection], [], [], 0)[0] and connection.recv(65536):
                last = time.monotonic()
            longest = max(longest, time.monotonic() - last)
        print(round(longest, 3))
        return 0


def serve() -> None:
    """Echoes datagrams; counts what streams bring."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, 0)
    datagrams.bind(("0.0.0.0", PORT))
    listener = socket.create_server(("0.0.0.0", PORT))
    echoes = socket.create_server(("0.0.0.0", ECHO_PORT))
    echoing: set[socket.socket] = set()
    counts: dict[socket.socket, int] = {}
    while True:
        for ready in select.select([datagrams, listener, echoes, *echoing, *counts], [], [])[0]:
            if ready is datagrams:
                data, sender = datagrams.recvfrom(65536)
                datagrams.sendto(data, sender)
            elif ready is listener:
                counts[listener.accept()[0]] = 0
            elif ready is echoes:
                echoing.add(echoes.accept()[0])
            elif ready in echoing:
                data = ready.recv(65536)
                if data:
                    ready.sendall(data)
                else:
                    echoing.discard(ready)
                    ready.close()
            else:
                data = ready.recv(1 << 20)
                counts[ready] += len(data)
                if not data:
                    ready.sendall(str(counts.pop(ready)).encode())
                    ready.close()


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "serve":
        serve()
    elif what == "stream":
        sys.exit(stream(words[0], words[1]))
    elif what == "ping":
        sys.exit(0 if ping(words[0], words[1]) else 1)
    else:
        sys.exit({"udp": udp, "tcp": tcp}[what](words[0], words[1], int(words[2]), float(words[3])))
