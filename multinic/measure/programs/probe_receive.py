"""Answers each UDP datagram with its size, for `probe_send.py`. Arguments: port, IP version, seconds to live."""

import json
import socket
import sys
import time

port, version, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + seconds
family = socket.AF_INET if version == 4 else socket.AF_INET6
with socket.socket(family, socket.SOCK_DGRAM) as door:
    door.bind(("", port))
    print(json.dumps({"listening": port}), flush=True)
    while time.monotonic() < end:
        door.settimeout(max(0.01, end - time.monotonic()))
        try:
            data, sender = door.recvfrom(65536)
        except TimeoutError:
            break
        door.sendto(b"%d %s" % (len(data), data[:16]), sender)
        if data[16:17] == b"E":
            break
