"""A small metadata server for the tests: answers a tree from a file, `wait_for_change` once the file has changed.

Run as a program inside a network namespace: ``metadata_server.py TREE_FILE ADDRESS``. It knows what the guests ask for.
"""

import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

tree_file = Path(sys.argv[1])


def current() -> tuple[str, bytes]:
    body = tree_file.read_bytes()
    return hashlib.sha256(body).hexdigest()[:16], body


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self.headers.get("Metadata-Flavor") != "Google":
            self.send_error(403)
            return
        etag, body = current()
        if query.get("wait_for_change") == "true":
            end = time.monotonic() + float(query.get("timeout_sec", "60"))
            while etag == query.get("last_etag") and time.monotonic() < end:
                time.sleep(0.02)
                etag, body = current()
        if parts.path != "/computeMetadata/v1/":
            for word in parts.path.removeprefix("/computeMetadata/v1/").strip("/").split("/"):
                inner = json.loads(body)[word]
                # A single value is plain text, a folder is JSON.
                body = inner.encode() if isinstance(inner, str) else json.dumps(inner).encode()
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer((sys.argv[2], 80), Handler).serve_forever()
