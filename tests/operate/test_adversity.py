"""Half-deleted fleets, names that come twice, odd words, interruptions, a lab that dies: never a traceback."""

from __future__ import annotations

from dataclasses import replace
from typing import Never, cast

import pytest

from multinic.cli import status
from multinic.operate import drain, heal, waiting, words
from multinic.operate.errors import OperateError, WordError
from multinic.operate.fleet import Fleet
from multinic.operate.reading import Reader

from .between import Between
from .conftest import Command
from .fleets import fleet

GONE = [
    ("^GET .*/forwardingRules", 200, {"items": []}, 1, "deleted by hand"),
    ("^GET .*/aggregated/instanceGroupManagers", 200, {"items": {}}, 1, "deleted by hand"),
    ("^GET .*/backendServices", 200, {"items": []}, 1, "deleted by hand"),
    ("^GET /compute", 200, {}, 1, "deleted by hand"),
    ("listManagedInstances", 404, "The resource 'group' was not found", 1, "was not found"),
    ("listManagedInstances", 200, {"managedInstances": []}, 0, "0 of 0 routers"),
    ("^GET .*/zones/[^/]*/instances", 200, {"items": []}, 0, "firewall of"),
    ("getHealth", 200, {}, 0, "0 of 3 routers"),
    ("^GET .*/global/routes", 200, {"items": []}, 0, "none leads to the fleet"),
    ("/healthChecks/", 404, "The resource 'check' was not found", 0, "makes it again"),
    ("/instanceTemplates", 404, "The resource 'template' was not found", 0, "makes it again"),
]


@pytest.mark.parametrize(("request_", "answer", "body", "code", "word"), GONE, ids=[one[0] for one in GONE])
def test_a_half_deleted_fleet(
    google: Between, multinic: Command, request_: str, answer: int, body: object, code: int, word: str
) -> None:
    google.answer(request_, answer, body)
    multinic("status", code=code)
    missing = [one for one in multinic.json("doctor", code=5) if one["state"] == "missing"]
    assert word in str(missing)


def test_names_that_come_twice_and_links_to_elsewhere() -> None:
    twice = fleet("ab")
    twice = replace(twice, routers=(twice.routers[0], replace(twice.routers[1], name="router-a-0")))
    with pytest.raises(
        WordError, match=r"several VMs are called router-a-0 \(us-central1-a, us-central1-b\); name a zone"
    ):
        words.routers(twice, "router-a-0")
    link = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-{}/instances/router-a-0"
    assert words.router(fleet(), link.format("a")).name == "router-a-0"
    with pytest.raises(WordError, match="router-a-0 is in us-central1-a"):
        words.router(fleet(), link.format("f"))


ODD = [
    ("drain",),
    ("drain", ""),
    ("drain", "/"),
    ("drain", "a" * 300),
    ("drain", 'x" OR name != "y'),
    ("trace", 'x" OR name != "y', "10.3.4.5"),
    ("heal", "-"),
    ("drain", "nobody", "--timeout", "0"),
    ("withdraw", ""),
    ("withdraw", "dev-left", "--all"),
    ("upgrade", "--old", "router-fleet", "--new", "router-fleet"),
    ("routes", "--cleanup", "--delete-warnings"),
    ("trace", "10.1.2", "10.3.4.5"),
    ("trace", "", ""),
    ("trace", "::1", "::2"),
    ("trace", "10.1.2.3", "10.3.4.5", "--protocol", "nonsense"),
    ("trace", "10.1.2.3", "10.3.4.5", "--protocol", "icmp", "--port", "80"),
    ("status", "--stack", "no/such", "--region", "us-east9"),
    ("logs", "--limit", "0"),
    ("logs", "--since", "99999999999d"),
]


def test_odd_words_are_wrong_words(multinic: Command) -> None:
    for line in ODD:
        multinic(*line, code=2)
        assert multinic.err.strip(), line


def test_two_addresses_of_elsewhere_do_not_arrive(multinic: Command) -> None:
    multinic("trace", "192.0.2.1", "192.0.2.2", code=5)
    assert "neither end lies in a subnet of dev-left" in multinic.out


def test_a_lab_that_dies_while_a_drain_is_waited_for(
    google: Between, multinic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENCE_SECONDS", 0.2)
    name = multinic.json("status")["fleet"]["routers"][0]["name"]
    # In place of the change: from then on nobody answers.
    monkeypatch.setattr(drain, "apply", lambda *given, **more: google.answer("^.* /compute", 500, "dead"))
    said = multinic.refuses("drain", name, code=4)
    assert "cannot be seen any more" in said and "what was begun goes on" in said


def test_a_watched_status_outlives_a_moment_without_an_answer() -> None:
    answers: list[Fleet | OperateError] = [fleet(), OperateError("no answer"), fleet()]

    class Answering:
        def read(self) -> Fleet:
            answer = answers.pop(0)
            if isinstance(answer, OperateError):
                raise answer
            return answer

    looks = status._looks(cast(Reader, Answering()), 0.0)
    assert [next(looks) for _ in range(3)] == [fleet(), "no answer", fleet()]


def test_ctrl_c_says_what_goes_on_and_how(multinic: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*given: object, **more: object) -> Never:
        raise KeyboardInterrupt

    name = multinic.json("status")["fleet"]["routers"][0]["name"]
    with monkeypatch.context() as patch:
        patch.setattr(heal, "apply", interrupt)
        multinic("rolling-update", code=130)
        assert "go on with `multinic rolling-update --resume`" in multinic.out
        patch.setattr(drain, "wait", interrupt)
        multinic("drain", name, "--json", code=130)
        assert "what was begun goes on" in multinic.err and not multinic.out
    multinic("undrain", name)
