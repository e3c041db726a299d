"""The answers of the health endpoints, as text; over the network they are tried in test_router.py."""

import json
from pathlib import Path

import health
import pytest
import verdict


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("paths.VERDICT", str(tmp_path / "verdict.json"))
    monkeypatch.setattr("paths.CONFIG", str(tmp_path / "config.json"))
    return tmp_path


def ask(request: str) -> tuple[int, dict[str, object]]:
    head, _, body = health.answer(request.encode(), "/status.json", verdict.traffic).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert f"Content-Length: {len(body)}".encode() in lines or request.startswith("HEAD")
    return int(lines[0].split()[1]), json.loads(body or b"{}")


def test_503_with_reasons_that_a_machine_can_read() -> None:
    """L16: what is probed is a purpose-made endpoint."""
    code, body = ask("GET /status.json HTTP/1.1\r\n\r\n")
    assert code == 503
    assert body["reasons"] == [{"name": "starting", "detail": "no verdict yet"}]


def test_200_while_good() -> None:
    verdict.store({"ok": True, "reasons": [], "monotonic": __import__("time").monotonic(), "first_good": 1.0})
    assert ask("GET /status.json HTTP/1.0\r\n\r\n")[0] == 200
    assert ask("GET /status.json?x=1 HTTP/1.1\r\nHost: 10.0.0.9\r\n\r\n")[0] == 200
    assert ask("HEAD /status.json HTTP/1.1\r\n\r\n") == (200, {})


@pytest.mark.parametrize(
    ("request_text", "code"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 404),
        ("POST /status.json HTTP/1.1\r\n\r\n", 405),
        ("\r\n\r\n", 405),
        ("GET\r\n\r\n", 405),
    ],
)
def test_other_requests(request_text: str, code: int) -> None:
    assert ask(request_text)[0] == code


@pytest.mark.parametrize("held", ["", "{", "[]", '{"traffic_port": "x"}'])
def test_reference_ports_when_there_is_no_usable_configuration(own_files: Path, held: str) -> None:
    (own_files / "config.json").write_text(held)
    assert health.settings("traffic") == (9001, "/status.json")
    assert health.settings("heal") == (9000, "/status.json")


def test_ports_and_path_from_the_configuration(own_files: Path) -> None:
    (own_files / "config.json").write_text('{"heal_port": 9100, "traffic_port": 9101, "request_path": "/up"}')
    assert health.settings("traffic") == (9101, "/up")
    assert health.settings("heal") == (9100, "/up")
