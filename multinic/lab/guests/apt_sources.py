"""Where the guests' packages come from: the same places as the host's own, found in its apt configuration.

The lab names no mirror. Entries of third parties are left out: an entry belongs to the distribution if its suite is the
release's code name, or that with ``-updates`` or ``-security`` behind it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

SUITES = ("{}", "{}-updates", "{}-security")


@dataclass(frozen=True)
class Source:
    """One line of a classic ``sources.list``.

    Attributes:
        uri: Address of the archive.
        suite: Such as ``bookworm-updates``.
        components: Such as ``main``.
        signed_by: Path of the keyring that signs it; None means apt's trusted keys.
    """

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None

    def __str__(self) -> str:
        options = f"[signed-by={self.signed_by}] " if self.signed_by else ""
        return f"deb {options}{self.uri} {self.suite} {' '.join(self.components)}"


def release_codename(os_release: Path = Path("/etc/os-release")) -> str:
    """Code name of the host's release, ``bookworm`` for Debian 12; an empty text if it has none."""
    for line in os_release.read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip().strip('"')
    return ""


def distribution_sources(codename: str, folder: Path = Path("/etc/apt")) -> list[Source]:
    """The host's apt entries for its own release, with the component ``main`` (and ``universe`` on Ubuntu) only."""
    found: list[Source] = []
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]
    for path in files:
        if not path.is_file() or path.suffix not in {".list", ".sources"}:
            continue
        text = path.read_text()
        entries = _deb822(text) if path.suffix == ".sources" else _one_line(text)
        for source in entries:
            if source.suite not in {suite.format(codename) for suite in SUITES}:
                continue
            components = tuple(c for c in source.components if c in {"main", "universe"})
            kept = Source(source.uri, source.suite, components, source.signed_by)
            if components and kept not in found:
                found.append(kept)
    return found


def of_release(sources: list[Source], own: str, release: str) -> list[Source]:
    """The same places for another release of the same distribution.

    Args:
        sources: Those of the host's own release.
        own: Its code name.
        release: Code name of the other one, such as ``trixie``.
    """
    return [replace(source, suite=source.suite.replace(own, release, 1)) for source in sources]


def proxy_options() -> list[str]:
    """The host's proxy settings for apt, in the form of ``Acquire::http::Proxy "…";`` lines."""
    dump = subprocess.run(["apt-config", "dump"], check=False, capture_output=True, text=True).stdout
    return [line for line in dump.splitlines() if line.startswith("Acquire::") and "::Proxy" in line]


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        rest = words[1:]
        signed_by = None
        if rest and rest[0].startswith("["):
            end = next((i for i, word in enumerate(rest) if word.endswith("]")), len(rest) - 1)
            options = " ".join(rest[: end + 1]).strip("[] ").split()
            rest = rest[end + 1 :]
            signed_by = next((o.partition("=")[2] for o in options if o.lower().startswith("signed-by=")), None)
        if len(rest) >= 3 and _fetchable(rest[0]):
            yield Source(rest[0], rest[1], tuple(rest[2:]), signed_by)


def _deb822(text: str) -> Iterator[Source]:
    for stanza in _stanzas(text):
        if "deb" not in stanza.get("types", "").split() or stanza.get("enabled", "yes").strip().lower() in {
            "no",
            "false",
        }:
            continue
        signed_by = stanza.get("signed-by", "").strip()
        for uri in filter(_fetchable, stanza.get("uris", "").split()):
            for suite in stanza.get("suites", "").split():
                # A key inside the stanza itself is left out: the distribution's own entries name a keyring file.
                key = signed_by if signed_by.startswith("/") else None
                yield Source(uri, suite, tuple(stanza.get("components", "").split()), key)


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    stanza: dict[str, str] = {}
    field = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if stanza:
                yield stanza
            stanza = {}
        elif line[0].isspace():
            stanza[field] = f"{stanza.get(field, '')} {line.strip()}"
        else:
            field, _, value = line.partition(":")
            field = field.strip().lower()
            stanza[field] = value.strip()


def _fetchable(uri: str) -> bool:
    return uri.partition(":")[0] in {"http", "https", "file", "copy", "mirror", "mirror+file"}
