"""The engine's event log, read while it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from multinic.lab.pulumi import events
from multinic.lab.pulumi.events import EventLog

URN = "urn:pulumi:dev::multinic::multinic:index:MultinicRouter$gcp:compute/network:Network::net"


def _write(path: Path, *found: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in found)


def _resource(op: str, *, planning: bool = False) -> dict[str, Any]:
    metadata = {"op": op, "urn": URN, "type": "gcp:compute/network:Network"}
    return {"resourcePreEvent": {"metadata": metadata, "planning": planning}}


def test_lines_are_said_once_as_they_come(tmp_path: Path) -> None:
    path, said = tmp_path / "log", list[str]()
    log = EventLog(path, said.append)
    log.read()

    _write(path, _resource("create", planning=True), _resource("create"), _resource("same"))
    log.read()
    log.read()
    _write(path, _resource("delete-replaced"), {"summaryEvent": {"resourceChanges": {"create": 1, "same": 3}}})
    with path.open("a") as file:
        file.write('{"resourcePreEvent": {"meta')
    log.read()

    assert said == ["creating Network net", "deleting replaced Network net"]
    assert log.changes == {"create": 1}


def test_errors_are_told_once_and_without_the_engines_decoration(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EventLog(path, lambda _line: None)
    text = "1 input cannot be used:\n  zones: …"
    _write(
        path,
        {"diagnosticEvent": {"severity": "error", "message": f"<{{%fg 1%}}>error: {text}<{{%reset%}}>\n"}},
        {"diagnosticEvent": {"severity": "error", "message": f"an unhandled error occurred: {text}"}},
        {"diagnosticEvent": {"severity": "error", "urn": URN, "message": "googleapi: Error 409"}},
        {"diagnosticEvent": {"severity": "error", "message": "update failed"}},
    )
    log.read()
    assert log.errors == [text, "Network net: googleapi: Error 409"]


def test_a_long_wait_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = tmp_path / "log", list[str]()
    log = EventLog(path, said.append)
    _write(path, _resource("create"))
    log.read()
    log.read()
    assert said == ["creating Network net"]
    monkeypatch.setattr(events, "REMIND_EVERY_S", -1.0)
    log.read()
    assert said[-1] == "still at Network net"
