"""Which fleet is meant, and the way to a shell on a router."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Never

import pytest

from multinic.operate import panic, shell, stack
from multinic.operate.api import Api
from multinic.operate.door import Door
from multinic.operate.errors import OperateError

from .fleets import fleet

OUTPUTS = {
    "region": "us-west1",
    "backend_services": ["https://www.googleapis.com/compute/v1/projects/p/regions/us-west1/backendServices/b"],
}


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment in which a program is on PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def pulumi(folder: Path, outputs: object) -> dict[str, str]:
    (folder / "outputs").write_text(json.dumps(outputs))
    return program(folder, "pulumi", f'echo "$@" > {folder}/asked; cat {folder}/outputs')


def test_the_stack_says_which_fleet(tmp_path: Path) -> None:
    where = stack.find(environment=pulumi(tmp_path, OUTPUTS))
    assert (where.project, where.region) == ("p", "us-west1")
    assert where.services == ("projects/p/regions/us-west1/backendServices/b",)
    assert not where.door.lab
    stack.find(stack="o/m/prod", environment=pulumi(tmp_path, OUTPUTS))
    assert "--stack o/m/prod" in (tmp_path / "asked").read_text()
    # Another fleet of the stack's region is named.
    assert stack.find(fleet="v2", environment=pulumi(tmp_path, OUTPUTS)).services == ()


def test_with_a_region_pulumi_is_not_asked(tmp_path: Path) -> None:
    where = stack.find(project="q", region="us-east1", environment={"PATH": str(tmp_path)})
    assert (where.project, where.region, where.services) == ("q", "us-east1", ())
    assert stack.find(region="r", environment={"GOOGLE_CLOUD_PROJECT": "g"}).project == "g"
    lab = stack.find(region="r", environment={"MULTINIC_LAB_ENDPOINT": "http://127.0.0.1:1", "MULTINIC_LAB_TOKEN": "t"})
    assert lab.project == "lab" and lab.door.lab


@pytest.mark.parametrize(
    ("outputs", "given", "words"),
    [
        ({"clients": []}, {}, "is not a router's.*--stack.*--project and --region"),
        ({}, {"stack": "networks"}, "stack networks is not a router's"),
        (OUTPUTS, {"project": "other"}, "is in project p, not in other"),
        (OUTPUTS, {"stack": "s", "region": "us-east1"}, "is in us-west1, not in us-east1"),
        ([], {}, "printed no JSON object"),
    ],
)
def test_a_wrong_stack(tmp_path: Path, outputs: object, given: dict[str, str], words: str) -> None:
    with pytest.raises(OperateError, match=words):
        stack.find(**given, environment=pulumi(tmp_path, outputs))


def test_no_stack(tmp_path: Path) -> None:
    with pytest.raises(OperateError, match=r"no `pulumi` on PATH.*--project and --region"):
        stack.find(environment={"PATH": str(tmp_path)})
    failing = program(tmp_path, "pulumi", "echo 'error: no stack selected' >&2; exit 255")
    with pytest.raises(OperateError, match="pulumi says: no stack selected; choose a stack with --stack"):
        stack.find(environment=failing)
    with pytest.raises(OperateError, match="names no project"):
        stack.find(region="r", environment={"PATH": ""})


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, **more: bool) -> str:
    program(tmp_path, name, f'printf "%s\\n" "$@" > {tmp_path}/asked; {text}')
    # Nothing else: this machine may have a real one.
    monkeypatch.setenv("PATH", str(tmp_path))
    found = fleet()
    return shell.run(Door(), found, found.routers[0], panic.PANIC, **more)


def test_a_router_of_the_cloud_is_reached_through_iap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, monkeypatch, "gcloud", "echo said") == "said\n"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[:3] == ["compute", "ssh", "router-a-0"]
    assert {"--zone=us-central1-a", "--project=p", "--tunnel-through-iap"} <= set(asked)
    assert "--command=sudo systemctl start kpanic" in asked


def test_without_gcloud_by_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, monkeypatch, "ssh", "true")
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == [
        "router-a-0.us-central1-a.p",
        "sudo systemctl start kpanic",
    ]


def test_a_connection_that_breaks_is_what_a_panic_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "echo 'Connection to 10.0.0.1 closed by remote host.' >&2; exit 255"
    assert run(tmp_path, monkeypatch, "gcloud", broken, may_break=True) == ""
    with pytest.raises(OperateError, match=r"closed by remote host.*iap_ssh"):
        run(tmp_path, monkeypatch, "gcloud", broken)
    refused = "echo 'ssh: connect to host port 22: Connection refused' >&2; exit 255"
    with pytest.raises(OperateError, match="Connection refused"):
        run(tmp_path, monkeypatch, "gcloud", refused, may_break=True)


def test_without_either_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OperateError, match="needs `gcloud` or `ssh`"):
        shell.run(Door(), fleet(), fleet().routers[0], panic.PANIC)


def test_a_guest_of_a_lab_needs_the_labs_folder() -> None:
    with pytest.raises(OperateError, match="multinic lab env"):
        shell.run(Door("http://127.0.0.1:1", "t"), fleet(), fleet().routers[0], panic.PANIC)


def test_without_credentials_it_says_how_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    def none(**_: object) -> Never:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(google.auth, "default", none)
    with pytest.raises(OperateError, match="gcloud auth application-default login"):
        Door().credentials()


def test_a_connection_that_was_closed_meanwhile_is_made_again() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for reply in (b"", answer):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with Api(Door(f"http://127.0.0.1:{server.getsockname()[1]}", "t"), "p") as api:
            assert api.items("Routes") == []
        thread.join(60)
        assert not thread.is_alive()
