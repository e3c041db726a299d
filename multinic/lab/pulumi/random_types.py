"""The stand-in for pulumi-random: values that are drawn once and kept in the state."""

from __future__ import annotations

import base64
import random
import secrets
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from multinic.lab.pulumi.fields import Field, Fields, names
from multinic.lab.pulumi.kinds import Flag, Integer, Kind, Problem, Text
from multinic.lab.pulumi.lifecycle import Difference
from multinic.lab.pulumi.resource_type import Inputs, Outputs
from multinic.lab.pulumi.stand_in import NotServedError
from multinic.lab.pulumi.values import DEFAULTS, UNKNOWN

SPECIAL = "!@#$%&*()-_=+[]{}<>:?"
"""Special characters that `RandomString` draws from.

Source: https://github.com/hashicorp/terraform-provider-random/blob/main/docs/resources/string.md."""

_ADVERBS = ("calmly", "firmly", "gladly", "quickly", "rarely", "surely")
_ADJECTIVES = ("able", "bold", "calm", "fast", "keen", "proud", "quiet", "sharp", "warm", "wise")
_ANIMALS = ("badger", "crane", "falcon", "heron", "lynx", "marten", "otter", "raven", "stoat", "swift")


def _fixed(name: str, kind: Kind | None = None, default: Any = None, *, required: bool = False) -> Field:
    return Field(name, kind or Text(), replaces=True, required=required, default=default)


_KEEPERS = Field("keepers", Kind(), replaces=True)


def _draw_id(inputs: Inputs) -> tuple[str, Outputs]:
    drawn = secrets.token_bytes(inputs["byteLength"])
    prefix = inputs.get("prefix", "")
    url = base64.urlsafe_b64encode(drawn).decode().rstrip("=")
    outputs = {
        "b64Url": prefix + url,
        "b64Std": prefix + base64.b64encode(drawn).decode(),
        "hex": prefix + drawn.hex(),
        "dec": prefix + str(int.from_bytes(drawn)),
    }
    return url, outputs


def _characters(inputs: Inputs) -> Iterable[tuple[str, int]]:
    special = inputs.get("overrideSpecial") or SPECIAL
    numeric = inputs.get("numeric", inputs.get("number", True))
    kinds = (
        (inputs["upper"], string.ascii_uppercase, "minUpper"),
        (inputs["lower"], string.ascii_lowercase, "minLower"),
        (numeric, string.digits, "minNumeric"),
        (inputs["special"], special, "minSpecial"),
    )
    return [(characters, inputs.get(least, 0)) for wanted, characters, least in kinds if wanted]


def _draw_string(inputs: Inputs) -> tuple[str, Outputs]:
    alphabets = list(_characters(inputs))
    drawn = [secrets.choice(alphabet) for alphabet, least in alphabets for _ in range(least)]
    everything = "".join(alphabet for alphabet, _ in alphabets)
    drawn += [secrets.choice(everything) for _ in range(inputs["length"] - len(drawn))]
    random.SystemRandom().shuffle(drawn)
    result = "".join(drawn)
    return result, {"result": result}


def _draw_pet(inputs: Inputs) -> tuple[str, Outputs]:
    length = inputs["length"]
    words = [secrets.choice(_ADVERBS) for _ in range(length - 2)]
    words += [secrets.choice(_ADJECTIVES)] if length > 1 else []
    words.append(secrets.choice(_ANIMALS))
    prefix = [inputs["prefix"]] if inputs.get("prefix") else []
    return inputs["separator"].join(prefix + words), {}


def _draw_integer(inputs: Inputs) -> tuple[str, Outputs]:
    result = inputs["min"] + secrets.randbelow(inputs["max"] - inputs["min"] + 1)
    return str(result), {"result": result}


@dataclass(frozen=True)
class _Drawn:
    """A random resource: its inputs, the outputs a preview cannot know, and how it is drawn."""

    fields: Fields
    computed: tuple[str, ...]
    draw: Callable[[Inputs], tuple[str, Outputs]]


_STRING_FIELDS = (
    _fixed("length", Integer(1), required=True),
    *(_fixed(name, Flag(), default=True) for name in ("upper", "lower", "special")),
    *(_fixed(name, Flag()) for name in ("numeric", "number")),
    *(_fixed(name, Integer(0), default=0) for name in ("minUpper", "minLower", "minNumeric", "minSpecial")),
    _fixed("overrideSpecial"),
    _KEEPERS,
)

TABLE: dict[str, _Drawn] = {
    "random:index/randomId:RandomId": _Drawn(
        Fields((_fixed("byteLength", Integer(1), required=True), _fixed("prefix"), _KEEPERS)),
        ("b64Url", "b64Std", "hex", "dec"),
        _draw_id,
    ),
    "random:index/randomString:RandomString": _Drawn(Fields(_STRING_FIELDS), ("result",), _draw_string),
    "random:index/randomPet:RandomPet": _Drawn(
        Fields((_fixed("length", Integer(1), default=2), _fixed("separator", default="-"), _fixed("prefix"), _KEEPERS)),
        (),
        _draw_pet,
    ),
    "random:index/randomInteger:RandomInteger": _Drawn(
        Fields((_fixed("min", Integer(), required=True), _fixed("max", Integer(), required=True), _KEEPERS)),
        ("result",),
        _draw_integer,
    ),
}


@dataclass(frozen=True)
class Random:
    """The stand-in for pulumi-random. It keeps nothing: the state does."""

    def _entry(self, token: str) -> _Drawn:
        if token not in TABLE:
            raise NotServedError(f"the lab does not serve the resource type {token}")
        return TABLE[token]

    def check(
        self, token: str, name: str, old: Inputs | None, inputs: Inputs, seed: bytes
    ) -> tuple[Inputs, list[Problem]]:
        """Return complete inputs and what is refused about them."""
        problems: list[Problem] = []
        checked, added = self._entry(token).fields.check(inputs, "", problems)
        if not problems:
            problems += _beyond(checked)
        return checked | {DEFAULTS: added}, problems

    def diff(self, token: str, old: Inputs, state: Outputs, inputs: Inputs) -> Difference:
        """Return what would change; any change draws anew."""
        changed = names(self._entry(token).fields.changed(old, inputs))
        return Difference(changed, changed, delete_first=False)

    def preview(self, token: str, inputs: Inputs, state: Outputs | None) -> Outputs:
        """Return the outputs that can be known before anything is drawn."""
        known = state or dict.fromkeys((*self._entry(token).computed, "id"), UNKNOWN)
        return known | _shown(inputs)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        """Draw a value."""
        identity, outputs = self._entry(token).draw(inputs)
        return identity, _shown(inputs) | outputs

    def read(self, token: str, identity: str, inputs: Inputs, state: Outputs) -> tuple[Inputs, Outputs] | None:
        """Return what the state has: there is nothing else."""
        return inputs, state

    def update(self, token: str, identity: str, old: Inputs, state: Outputs, inputs: Inputs, timeout: float) -> Outputs:
        """Return what the state has with the new inputs."""
        return state | _shown(inputs)

    def delete(self, token: str, identity: str, state: Outputs, timeout: float) -> None:
        """Forget a value: nothing to do."""

    def invoke(self, token: str, args: Inputs) -> Outputs:
        """Refuse: pulumi-random has no functions."""
        raise NotServedError(f"the lab does not serve the function {token}")


def _beyond(inputs: Inputs) -> list[Problem]:
    """Return what is wrong between inputs that are fine one by one."""
    least = [inputs.get(key, 0) for key in ("minUpper", "minLower", "minNumeric", "minSpecial")]
    length, low, high = inputs.get("length", 0), inputs.get("min", 0), inputs.get("max", 0)
    if UNKNOWN in (*least, length, low, high):
        return []
    if "minUpper" in inputs and sum(least) > length:
        return [Problem("length", f"has to be at least the sum of the minimums, {sum(least)}")]
    return [Problem("max", "has to be at least min")] if low > high else []


def _shown(inputs: Inputs) -> Outputs:
    return {key: value for key, value in inputs.items() if key != DEFAULTS}
