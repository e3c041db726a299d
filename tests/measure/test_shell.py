from __future__ import annotations

import time
from pathlib import Path

import pytest

from multinic.measure import shell
from multinic.measure.errors import MeasureError
from multinic.measure.shell import HERE, Shell


def test_runs_and_returns_what_was_printed() -> None:
    assert HERE.run(["echo", "a  b"]) == "a  b\n"


def test_a_shell_on_the_other_side_gets_each_word_as_it_is() -> None:
    other = Shell("other", ("sh", "-c"), joins=True)
    assert other.run(["printf", "%s|", "a b", "$HOME", "it's", "*"]) == "a b|$HOME|it's|*|"


def test_what_lies_behind_another_place_is_quoted_once() -> None:
    other = Shell("other", ("sh", "-c"), joins=True)
    inner = other.inside("inner", "env", "A=b c", "sh", "-c")
    assert inner.run(['printf %s "$A"']) == "b c"
    assert shell.container(HERE, "web").command(["cat", "/x"]) == ["docker", "exec", "web", "cat", "/x"]


def test_failure_says_where_and_why() -> None:
    with pytest.raises(MeasureError, match=r"this machine: sh ended with exit code 3: no luck"):
        HERE.run(["sh", "-c", "echo no luck >&2; exit 3"])


def test_what_does_not_end_is_killed() -> None:
    began = time.monotonic()
    with pytest.raises(MeasureError, match="did not end within 0 s"):
        HERE.run(["sleep", "60"], timeout=0.1)
    assert time.monotonic() - began < 30


def test_a_missing_way_is_one_sentence() -> None:
    with pytest.raises(MeasureError, match="no-such-program"):
        Shell("far", ("no-such-program",)).run(["true"])


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("local", ["true"]),
        ("web-1", ["ssh", "-o", "BatchMode=yes", "web-1", "--", "true"]),
        ("ssh:me@web-1", ["ssh", "-o", "BatchMode=yes", "me@web-1", "--", "true"]),
        ("pid:42", ["nsenter", "--target", "42", "--all", "--", "true"]),
        ("netns:red", ["nsenter", "--net=/run/netns/red", "--", "true"]),
    ],
)
def test_places_on_the_command_line(text: str, command: list[str]) -> None:
    assert shell.parse(text).command(["true"]) == command


def test_a_vm_is_reached_through_iap() -> None:
    command = shell.parse("gcloud:europe-west4-a/router-1", project="p").command(["ip", "a b"])
    assert command[:3] == ["gcloud", "compute", "ssh"]
    assert {"--tunnel-through-iap", "--project=p", "--zone=europe-west4-a", "router-1"} <= set(command)
    assert command[-2:] == ["--command", "ip 'a b'"]


def test_a_guest_of_the_lab() -> None:
    command = shell.parse("guest:router-1", lab=Path("/lab")).command(["true"])
    assert command[1:] == ["-m", "multinic.lab.guests.exec", "/lab", "router-1", "--", "true"]


@pytest.mark.parametrize("text", ["", "-oX=y", "ssh:-oX=y", "guest:x", "gcloud:zone", "ssh:", "pid:x"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(MeasureError):
        shell.parse(text)
