"""A router's events arrive in Cloud Logging: from the guest over TLS, by its own token, to `entries:list`."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from multinic.lab.client import Lab, running
from multinic.lab.guests.exec import GuestError, run_in_guest
from tests.lab.guests.router_metadata import attributes

pytestmark = pytest.mark.guests
PATIENCE = 60.0
REGION, ZONE = "us-central1", "us-central1-a"
IMAGE = "projects/debian-cloud/global/images/debian-12-bookworm-v20260101"


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return found


def done(lab: Lab, scope: str, operation: dict[str, Any]) -> None:
    def ended() -> Any:
        now = lab.compute("GET", f"{scope}/operations/{operation['name']}")
        return now if now["status"] == "DONE" else None

    assert "error" not in wait_for(ended, "the operation ends")


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with one router VM, called `router`, that has a service account."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(tmp_path_factory.mktemp("logging") / "lab", port=port) as lab:
        for number in (0, 1):
            network = {"name": f"net{number}", "autoCreateSubnetworks": False}
            done(lab, "global", lab.compute("POST", "global/networks", network))
            subnet = {"name": f"sub{number}", "network": f"global/networks/net{number}"}
            subnet["ipCidrRange"] = f"10.{number}.0.0/24"
            done(lab, f"regions/{REGION}", lab.compute("POST", f"regions/{REGION}/subnetworks", subnet))
        account = lab.compute("GET", "")["defaultServiceAccount"]
        body = {
            "name": "router",
            "machineType": f"zones/{ZONE}/machineTypes/n2-highcpu-4",
            "canIpForward": True,
            "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE}}],
            "networkInterfaces": [{"subnetwork": f"regions/{REGION}/subnetworks/sub{n}"} for n in (0, 1)],
            "serviceAccounts": [{"email": account, "scopes": ["https://www.googleapis.com/auth/logging.write"]}],
            "metadata": {"items": [{"key": key, "value": value} for key, value in attributes().items()]},
        }
        done(lab, f"zones/{ZONE}", lab.compute("POST", f"zones/{ZONE}/instances", body))
        wait_for(lambda: entries(lab, "started"), "the router says that it has started")
        yield lab


def inside(lab: Lab, *argv: str) -> str:
    return run_in_guest(lab.folder, "router", argv, timeout=PATIENCE)


def entries(lab: Lab, event: str) -> list[dict[str, Any]]:
    body = {
        "resourceNames": ["projects/lab"],
        "filter": f'logName="projects/lab/logs/multinic" AND jsonPayload.event="{event}"',
    }
    found: list[dict[str, Any]] = lab.request("POST", "/logging/v2/entries:list", body).get("entries", [])
    return found


def test_events_of_a_router_arrive(router: Lab) -> None:
    entry = entries(router, "started")[0]
    instance = router.compute("GET", f"zones/{ZONE}/instances/router")
    assert entry["severity"] == "INFO"
    assert entry["jsonPayload"]["instance"] == "router" and entry["jsonPayload"]["code"] == 0
    assert entry["resource"]["type"] == "gce_instance"
    assert entry["resource"]["labels"] == {"project_id": "lab", "instance_id": instance["id"], "zone": ZONE}
    # An event of a person's own, and nothing that waits or has failed.
    inside(router, "multinic-log", "add", "by-hand", "why=test", "--severity", "WARNING")
    (entry,) = wait_for(lambda: entries(router, "by-hand"), "what was added by hand arrives")
    assert (entry["severity"], entry["jsonPayload"]["why"]) == ("WARNING", "test")
    wait_for(lambda: inside(router, "systemctl", "show", "-P", "ActiveState", "multinic-log") == "inactive\n", "sent")
    assert inside(router, "systemctl", "show", "-P", "Result,NRestarts", "multinic-log") == "success\n0\n"
    assert inside(router, "sh", "-c", "ls /run/multinic/log") == ""
    assert inside(router, "systemctl", "--failed", "--no-legend") == ""


def test_last_words_arrive_once(router: Lab) -> None:
    """What the shutdown script has to say is sent while it waits; the service wants to send it too."""
    assert "exit status 0" in inside(router, "google_metadata_script_runner", "shutdown")
    (entry,) = entries(router, "drained")
    assert entry["jsonPayload"]["reason"] == "shutdown" and entry["severity"] == "NOTICE"
    inside(router, "google_metadata_script_runner", "startup")
    # The service's turn is over as well.
    wait_for(lambda: inside(router, "systemctl", "show", "-P", "ActiveState", "multinic-log") == "inactive\n", "sent")
    assert len(entries(router, "drained")) == 1


REFUSED = """
import http.client, json, ssl, sys
host, path, token = sys.argv[1:]
c = http.client.HTTPSConnection(host, timeout=10)
c.request("POST", path, b"{}", {"Authorization": "Bearer " + token})
print(c.getresponse().status)
"""


def test_what_the_endpoint_refuses(router: Lab) -> None:
    """Another token, another call; and the certificate is for this name only, by an authority that only guests know."""

    def status(path: str, token: str, host: str = "logging.googleapis.com") -> str:
        return inside(router, "python3", "-c", REFUSED, host, path, token).strip()

    assert status("/v2/entries:write", "lab-guest") == "200"
    assert status("/v2/entries:write", "wrong") == "401"
    assert status("/v2/entries:list", "lab-guest") == "404"
    with pytest.raises(GuestError, match="CERTIFICATE_VERIFY_FAILED"):
        status("/v2/entries:write", "lab-guest", "199.36.153.8")
    with pytest.raises(GuestError, match=r"Name or service not known|Temporary failure"):
        status("/v2/entries:write", "lab-guest", "oauth2.googleapis.com")
