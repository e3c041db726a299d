"""Runs in a guest: accepts connections and sends each first byte back."""

import socketserver
import sys


class Answer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(60)
        self.request.sendall(self.request.recv(1))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


with Server(("0.0.0.0", int(sys.argv[1])), Answer) as server:
    sys.stdout.write('{"listening": true}\n')
    sys.stdout.flush()
    server.serve_forever()
