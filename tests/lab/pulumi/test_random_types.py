from __future__ import annotations

import base64
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.lab.pulumi.random_types import SPECIAL, Random
from multinic.lab.pulumi.stand_in import NotServedError
from multinic.lab.pulumi.values import UNKNOWN

ID = "random:index/randomId:RandomId"
STRING = "random:index/randomString:RandomString"


def _drawn(token: str, **inputs: object) -> tuple[str, dict[str, object]]:
    checked, problems = Random().check(token, "r", None, inputs, bytes(32))
    assert problems == []
    return Random().create(token, checked, 0)


@given(st.integers(1, 64))
def test_an_id_shows_the_same_bytes_in_every_form(length: int) -> None:
    identity, outputs = _drawn(ID, byteLength=length)
    drawn = bytes.fromhex(str(outputs["hex"]))
    assert len(drawn) == length
    assert base64.b64decode(str(outputs["b64Std"])) == drawn
    assert int(str(outputs["dec"])) == int.from_bytes(drawn)
    assert base64.urlsafe_b64decode(identity + "=" * (-len(identity) % 4)) == drawn


@given(st.integers(0, 4), st.integers(0, 4), st.integers(8, 30))
def test_a_string_has_its_length_and_its_minimums(digits: int, specials: int, length: int) -> None:
    _, outputs = _drawn(STRING, length=length, minNumeric=digits, minSpecial=specials, upper=False)
    result = str(outputs["result"])
    assert len(result) == length
    assert sum(character in string.digits for character in result) >= digits
    assert sum(character in SPECIAL for character in result) >= specials
    assert not set(result) & set(string.ascii_uppercase)


def test_minimums_beyond_the_length_are_refused() -> None:
    _, problems = Random().check(STRING, "r", None, {"length": 3, "minLower": 2, "minNumeric": 2}, bytes(32))
    assert "at least the sum of the minimums, 4" in problems[0].reason


def test_changed_keepers_draw_anew_and_a_preview_knows_no_value() -> None:
    old, _ = Random().check(ID, "r", None, {"byteLength": 2, "keepers": {"a": "1"}}, bytes(32))
    new, _ = Random().check(ID, "r", old, {"byteLength": 2, "keepers": {"a": "2"}}, bytes(32))
    assert Random().diff(ID, old, {}, new).replaces == ["keepers"]
    assert Random().diff(ID, old, {}, old).changed == []
    assert Random().preview(ID, new, None)["hex"] == UNKNOWN


def test_a_pet_and_an_integer() -> None:
    identity, _ = _drawn("random:index/randomPet:RandomPet", length=3, prefix="vm")
    assert len(identity.split("-")) == 4 and identity.startswith("vm-")
    _, outputs = _drawn("random:index/randomInteger:RandomInteger", min=5, max=5)
    assert outputs["result"] == 5


def test_another_type_is_named() -> None:
    with pytest.raises(NotServedError, match="random:index/randomUuid:RandomUuid"):
        Random().check("random:index/randomUuid:RandomUuid", "r", None, {}, bytes(32))
