"""A small server with the shape of Google's REST: keeps what it gets, answers without judging, notes every request.

Only for tests of the stand-ins: the lab's own front door has rules, this one has none.
"""

from __future__ import annotations

import copy
import http.server
import itertools
import json
import re
import threading
import urllib.parse
from typing import Any

V1 = "https://www.googleapis.com/compute/v1/"


class FakeApi:
    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[dict[str, Any]] = []
        self.refuse: dict[str, tuple[int, str, str]] = {}  # path ending → status, reason, message
        self.policy: dict[str, Any] = {"etag": "e0", "version": 1, "bindings": []}
        self.group_status: dict[str, Any] = {"isStable": True, "versionTarget": {"isReached": True}}
        self.group_errors: list[dict[str, Any]] = []
        self.services: set[str] = set()
        self._numbers = itertools.count(1000)
        self._lock = threading.Lock()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def handle_any(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                with api._lock:
                    api.requests.append({"method": self.command, "path": self.path, "body": body})
                    status, answer = api.answer(self.command, self.path, body)
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, body: Any) -> tuple[int, dict[str, Any]]:
        parts = urllib.parse.urlsplit(target)
        path, query = urllib.parse.unquote(parts.path), dict(urllib.parse.parse_qsl(parts.query))
        for ending, (status, reason, message) in self.refuse.items():
            if path.endswith(ending) and method != "GET":
                return status, {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}}
        if path.startswith("/crm/"):
            return self.answer_policy(path, body)
        if path.startswith("/iam/"):
            return self.answer_account(method, path, body)
        key = re.sub(r"^/(compute|serviceusage)/\w+/", "", path)
        if path.startswith("/serviceusage/"):
            return 200, self.answer_services(method, key)
        return self.answer_compute(method, key, query, body)

    def answer_services(self, method: str, key: str) -> dict[str, Any]:
        if method == "GET":
            return {"services": [{"name": name} for name in sorted(self.services)]}
        self.services.add(key.removesuffix(":enable"))
        return {"name": "operations/noop", "done": True}

    def answer_policy(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        if path.endswith(":setIamPolicy"):
            self.policy = dict(body["policy"], etag=f"e{next(self._numbers)}")
        return 200, self.policy

    def answer_account(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        key = path.removeprefix("/iam/v1/")
        if method == "POST":
            email = f"{body['accountId']}@p.iam.gserviceaccount.com"
            key = f"{key}/{email}"
            account = {"name": key, "email": email, "uniqueId": str(next(self._numbers))}
            self.objects[key] = account | body["serviceAccount"]
        elif method == "DELETE":
            return 200, self.objects.pop(key, {})
        return (200, self.objects[key]) if key in self.objects else self.missing(key)

    def answer_compute(self, method: str, key: str, query: dict[str, str], body: Any) -> tuple[int, dict[str, Any]]:
        key = self.by_number(key)
        found = self.objects.get(key)
        parent, _, action = key.rpartition("/")
        if method == "GET" and action == "zones":
            zones = [{"name": f"us-central1-{z}", "status": "UP", "region": f"{V1}x/us-central1"} for z in "ab"]
            return 200, {"items": [*zones, {"name": "europe-west1-b", "status": "UP", "region": f"{V1}x/europe-west1"}]}
        if method == "GET" and "/images/" in key:
            link = f"{V1}projects/debian-cloud/global/images/debian-12-bookworm-v1"
            return 200, {"name": "debian-12-bookworm-v1", "selfLink": link, "id": "5", "family": "debian-12"}
        if method == "GET" and parent.endswith("/disks") and key.replace("/disks/", "/instances/") in self.objects:
            return 200, self.boot_disk(key, self.objects[key.replace("/disks/", "/instances/")])
        if method == "GET" and action == "listErrors":
            return 200, {"items": self.group_errors}
        if method == "GET":
            return (200, self.shown(key, found)) if found else self.missing(key)
        if method == "POST" and body and "name" in body:
            return 200, self.insert(f"{key}/{body['name']}", body)
        if action in ("enableXpnHost", "enableXpnResource"):
            return 200, self.share(parent, (body or {}).get("xpnResource"))
        if method == "DELETE" and found:
            del self.objects[key]
            return 200, self.operation(key, found)
        if "autoscaler" in query:
            key = f"{key}/{query['autoscaler']}"
        if method in ("PATCH", "PUT") and key in self.objects:
            self.objects[key].update(body)
            return 200, self.operation(key, self.objects[key])
        if method in ("POST", "PATCH") and parent in self.objects:
            target = self.objects[parent]
            if action == "resize":
                target["targetSize"] = int(query["size"])
            elif action == "setMetadata":
                target["metadata"] = body
            elif action == "setTags":
                target["tags"] = body
            elif body:
                target.update(body)
            return 200, self.operation(parent, target)
        return self.missing(key)

    def by_number(self, key: str) -> str:
        place, _, last = key.rpartition("/")
        if not last.isdigit():
            return key
        return next((k for k, o in self.objects.items() if k.startswith(place + "/") and o["id"] == last), key)

    def insert(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(body) | {"id": str(next(self._numbers)), "selfLink": V1.replace("/v1/", "/beta/") + key}
        scope = re.match(r"(projects/[^/]+/(region|zone)s/[^/]+)/", key)
        if scope:
            made[scope.group(2)] = V1 + scope.group(1)
        if "instanceGroupManagers" in key:
            made["instanceGroup"] = V1 + key.replace("instanceGroupManagers", "instanceGroups")
        if "/addresses/" in key:
            made.setdefault("address", "10.0.0.250")
        if "/forwardingRules/" in key:
            made.setdefault("IPAddress", "10.0.0.251")
        if "/instances/" in key:
            made["disks"][0]["source"] = V1 + key.replace("/instances/", "/disks/")
            made["status"] = "RUNNING"
            made["labelFingerprint"] = "l="
            made["metadata"]["fingerprint"] = "m="
            made["tags"]["fingerprint"] = "t="
        if any(noun in key for noun in ("backendServices", "instanceGroupManagers", "subnetworks")):
            made["fingerprint"] = "f="
        self.objects[key] = made
        return self.operation(key, made)

    def share(self, host: str, resource: dict[str, Any] | None) -> dict[str, Any]:
        key = f"projects/{resource['id']}/getXpnHost" if resource else host
        self.objects[key] = {"name": host.partition("/")[2], "id": "1", "xpnProjectStatus": "HOST"}
        return self.operation(key, self.objects[key])

    def boot_disk(self, key: str, instance: dict[str, Any]) -> dict[str, Any]:
        params = instance["disks"][0]["initializeParams"]
        named = {"sourceImage": "sourceImage", "type": "diskType"}
        links = {name: V1 + params[field] for name, field in named.items() if field in params}
        return links | {"name": key.rpartition("/")[2], "sizeGb": params.get("diskSizeGb", "10")}

    def shown(self, key: str, found: dict[str, Any]) -> dict[str, Any]:
        if "instanceGroupManagers" in key:
            return found | {"status": self.group_status}
        return found

    def operation(self, key: str, target: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"op-{next(self._numbers)}", "status": "DONE", "targetId": target["id"], "targetLink": V1 + key}

    def missing(self, key: str) -> tuple[int, dict[str, Any]]:
        message = f"The resource '{key}' was not found"
        return 404, {"error": {"code": 404, "message": message, "errors": [{"reason": "notFound"}]}}
