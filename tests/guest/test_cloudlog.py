"""Events: always in the journal, sent to Cloud Logging in Google's form, never lost without need, never in the way."""

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import cloudlog
import events
import metadata
import pytest
from trees import tree


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("paths.SPOOL", str(tmp_path / "log"))
    monkeypatch.setattr("paths.METADATA", str(tmp_path / "metadata.json"))
    metadata.save("e1", tree())
    return tmp_path / "log"


class Service:
    """Cloud Logging and the token, in place of the network."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, statuses: list[int]) -> None:
        self.sent: list[dict[str, Any]] = []
        self.statuses = statuses
        monkeypatch.setattr(cloudlog, "_token", lambda: "ya29.token")
        monkeypatch.setattr(cloudlog, "_post", self.post)

    def post(self, token: str, content: dict[str, Any]) -> tuple[int, bytes]:
        assert token == "ya29.token"
        self.sent.append(content)
        return self.statuses.pop(0) if self.statuses else 200, b"{}"


def test_an_entry_in_googles_form(monkeypatch: pytest.MonkeyPatch, spool: Path) -> None:
    service = Service(monkeypatch, [])
    events.emit("repaired", "WARNING", found=["rule-missing: x"], repairs=3)
    assert cloudlog.send() == 0
    (content,) = service.sent
    assert content["logName"] == "projects/lab/logs/multinic"
    assert content["resource"]["labels"] == {
        "project_id": "lab",
        "instance_id": "4567890123456789012",
        "zone": "us-central1-a",
    }
    (entry,) = content["entries"]
    assert entry["severity"] == "WARNING"
    assert entry["timestamp"].endswith("Z")
    assert entry["jsonPayload"] == {
        "instance": "router-a-0001",
        "zone": "us-central1-a",
        "event": "repaired",
        "found": ["rule-missing: x"],
        "repairs": 3,
    }
    assert not list(spool.iterdir())


def test_batches_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch, [])
    for number in range(cloudlog.BATCH + 5):
        events.emit("e", number=number)
    assert cloudlog.send() == 0
    numbers = [entry["jsonPayload"]["number"] for content in service.sent for entry in content["entries"]]
    assert [len(content["entries"]) for content in service.sent] == [cloudlog.BATCH, 5]
    assert numbers == list(range(cloudlog.BATCH + 5))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_kept_while_the_service_is_away(monkeypatch: pytest.MonkeyPatch, spool: Path, status: int) -> None:
    Service(monkeypatch, [status])
    events.emit("degraded", "ERROR")
    with pytest.raises(OSError, match=str(status)):
        cloudlog.send()
    assert len(list(spool.iterdir())) == 1
    service = Service(monkeypatch, [])
    assert cloudlog.send() == 0
    assert service.sent[0]["entries"][0]["jsonPayload"]["event"] == "degraded"


@pytest.mark.parametrize("status", [400, 401, 403])
def test_dropped_when_refused_for_good(monkeypatch: pytest.MonkeyPatch, spool: Path, status: int) -> None:
    Service(monkeypatch, [status])
    events.emit("degraded", "ERROR")
    assert cloudlog.send() == 0
    assert not list(spool.iterdir())


def test_the_oldest_go_when_too_many_wait(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(events.MAX_SPOOLED + 10):
        events.emit("e", number=number)
    waiting = events.spooled()
    assert len(waiting) == events.MAX_SPOOLED
    assert (cloudlog._event(waiting[0]) or {})["number"] == 10
    assert capsys.readouterr().err.count("\n") == events.MAX_SPOOLED + 10, "the journal has them all"


def test_a_full_disk_stops_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paths.write", full)
    events.emit("repaired", "WARNING")
    assert "repaired" in capsys.readouterr().err


def test_half_written_events_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch, spool: Path) -> None:
    service = Service(monkeypatch, [])
    spool.mkdir()
    (spool / "1.json").write_text("{")
    assert cloudlog.send() == 0
    assert len(service.sent[0]["entries"]) == 1


@pytest.mark.parametrize("answer", [b"", b"{", b"{}", b"[]", b"null"])
def test_an_answer_without_a_token_is_a_reason_to_try_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spool: Path, answer: bytes
) -> None:
    """Kind 18: whatever the metadata server answers, no traceback, and no event is lost."""
    monkeypatch.setattr(metadata, "get", lambda path: ({}, answer))
    monkeypatch.setattr("sys.argv", ["multinic-log", "flush", "--now"])
    events.emit("degraded", "ERROR")
    assert cloudlog.main() == cloudlog.TEMPORARY
    assert "not sent yet" in capsys.readouterr().err
    assert len(list(spool.iterdir())) == 1


def test_two_senders_send_each_event_once(monkeypatch: pytest.MonkeyPatch, spool: Path) -> None:
    """At shutdown the service and the script send at the same time."""
    service = Service(monkeypatch, [])
    under_way, both = threading.Event(), threading.Barrier(2)

    def slow(token: str, content: dict[str, Any]) -> tuple[int, bytes]:
        under_way.set()
        # The other one is here too, or waits for us.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return service.post(token, content)

    monkeypatch.setattr(cloudlog, "_post", slow)
    events.emit("drained")
    codes: list[int] = []
    senders = [threading.Thread(target=lambda: codes.append(cloudlog.send())) for _ in range(2)]
    senders[0].start()
    assert under_way.wait(30)
    senders[1].start()
    for sender in senders:
        sender.join(30)
    assert codes == [0, 0]
    assert sum(len(content["entries"]) for content in service.sent) == 1


def test_an_event_that_is_pushed_out_while_it_is_sent(monkeypatch: pytest.MonkeyPatch, spool: Path) -> None:
    service = Service(monkeypatch, [])
    events.emit("one")
    gone = events.spooled()[0]
    events.emit("two")

    def push_out(token: str, content: dict[str, Any]) -> tuple[int, bytes]:
        (spool / gone).unlink(missing_ok=True)
        return service.post(token, content)

    monkeypatch.setattr(cloudlog, "_post", push_out)
    assert cloudlog.send() == 0
    assert not list(spool.iterdir())
    monkeypatch.setattr(events, "spooled", lambda names=[[gone], []]: names.pop(0))
    assert cloudlog.send() == 0
    assert [entry["jsonPayload"]["event"] for content in service.sent for entry in content["entries"]] == ["one", "two"]


def test_no_secret_is_kept_with_the_metadata(tmp_path: Path) -> None:
    metadata.save("e2", tree(attributes={"ssh-keys": "me:ssh-rsa AAAA", "multinic-user-startup-script": "password=x"}))
    text = (tmp_path / "metadata.json").read_text()
    assert "ssh-rsa" not in text
    assert "password" not in text
    assert (tmp_path / "metadata.json").stat().st_mode & 0o777 == 0o600
    assert json.loads(text)["etag"] == "e2"
