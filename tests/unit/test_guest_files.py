"""What the routers get as metadata: the guest's files verbatim, and a configuration compared with a stored one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from multinic import guest_files, parsing
from multinic.lab.scenarios.settings import REFERENCE as REFERENCE_1
from multinic.problems import Problems
from multinic.settings import FleetSettings
from tests.unit import snapshots
from tests.unit.conftest import REPOSITORY
from tests.unit.shapes import IMAGE, router_args

GUEST = REPOSITORY / "guest"


def fleet(args: Any) -> FleetSettings:
    found = Problems()
    settings = parsing.router(args, found)
    assert found.found == []
    return settings.fleet


def nested() -> Any:
    args = router_args(routes={"allow_nested_cidrs": True, "tags": ["client"]})
    args["networks"][1]["cidrs"] = ["0.0.0.0/0"]
    return args


SHAPES: dict[str, Any] = {
    "two-nics": router_args(),
    "two-nics-nested": nested(),
    "three-nics-user-script": router_args(
        3, machine={"image": IMAGE, "startup_script": "#!/bin/sh\ntrue\n", "clamp_mss": 1420}
    ),
    "eight-nics": router_args(8),
    "reference-1": router_args(2, **REFERENCE_1),
}


def shown(metadata: dict[str, str]) -> str:
    """Writes out what depends on the inputs; the guest's own files are compared byte by byte elsewhere."""
    files = guest_files.read_files()
    return "".join(f"== {key}\n{value}" for key, value in metadata.items() if key not in files)


@pytest.mark.parametrize("shape", SHAPES)
def test_metadata_is_what_it_was(shape: str) -> None:
    snapshots.compare(f"metadata-{shape}.txt", shown(guest_files.render(fleet(SHAPES[shape]))))


def sources() -> list[Path]:
    return [
        file
        for folder in GUEST.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.is_file() and not file.name.startswith(".")
    ]


def test_every_file_of_the_guest_is_sent_verbatim() -> None:
    metadata = guest_files.render(fleet(router_args()))
    assert metadata["startup-script"] == (GUEST / "startup.sh").read_text()
    assert metadata["shutdown-script"] == (GUEST / "shutdown.sh").read_text()
    keys = set()
    for file in sources():
        key = guest_files.file_key(f"{file.parent.name}/{file.name}")
        keys.add(key)
        assert metadata[key] == file.read_text(), file
    assert keys == {key for key in metadata if key.startswith("multinic-file-")}
    assert len(keys) > 5


def test_manifest_says_where_each_file_goes() -> None:
    metadata = guest_files.render(fleet(router_args()))
    lines = metadata["multinic-files"].splitlines()
    assert lines == sorted(lines)
    targets = {}
    for line in lines:
        key, mode, target = line.split(" ")
        assert key in metadata
        targets[target] = mode
    assert len(targets) == len(lines) == len(sources())
    assert targets["/usr/bin/policy-routing"] == "0755"
    assert targets["/etc/systemd/system/policy-routing.service"] == "0644"
    assert {target.rsplit("/", 1)[0] for target in targets} <= {
        "/usr/bin",
        "/usr/lib/multinic",
        "/etc/systemd/system",
        "/etc/sysctl.d",
    }


def test_keys_are_valid() -> None:
    assert guest_files.file_key("bin/policy-routing") == "multinic-file-bin-policy-routing"
    assert guest_files.file_key("sysctl.d/zz.conf") == "multinic-file-sysctl-d-zz-conf"


def test_the_same_settings_give_the_same_text() -> None:
    """Kind 8, P14: text that differs by itself would replace the template at every run."""
    args = router_args(3)
    assert list(guest_files.render(fleet(args)).items()) == list(guest_files.render(fleet(router_args(3))).items())
    args["networks"][2]["cidrs"] = ["10.9.0.0/16", "10.2.0.0/16"]
    turned = router_args(3)
    turned["networks"][2]["cidrs"] = ["10.2.0.0/16", "10.9.0.0/16"]
    assert guest_files.render(fleet(args)) == guest_files.render(fleet(turned))


def test_two_networks_know_no_ranges() -> None:
    assert "multinic-networks" not in guest_files.render(fleet(router_args()))
    assert json.loads(guest_files.render(fleet(router_args(3)))["multinic-networks"])[2] == {"cidrs": ["10.2.0.0/16"]}


def test_it_is_small_enough_with_room_for_a_users_script() -> None:
    metadata = guest_files.render(fleet(router_args(8)))
    assert guest_files.oversize(metadata) == []
    assert max(len(value.encode()) for value in metadata.values()) <= 64 * 1024
    assert sum(len(key) + len(value.encode()) for key, value in metadata.items()) <= 200 * 1024


@pytest.mark.parametrize(
    ("traffic", "seconds"),
    [
        ({}, 5),
        ({"interval_sec": 3, "timeout_sec": 2}, 9),
        ({"interval_sec": 2, "timeout_sec": 1, "unhealthy_threshold": 5}, 13),
    ],
)
def test_drain_covers_the_load_balancers_detection(traffic: dict[str, int], seconds: int) -> None:
    config = json.loads(guest_files.render(fleet(router_args(health={"traffic": traffic})))["multinic-config"])
    assert config["drain_seconds"] == seconds


def test_a_file_that_has_no_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for script in ("startup.sh", "shutdown.sh"):
        (tmp_path / script).write_text("#!/bin/bash\n")
    (tmp_path / "cron.d").mkdir()
    monkeypatch.setattr(guest_files, "locate", lambda: tmp_path)
    with pytest.raises(guest_files.GuestFilesError, match=r"guest/cron\.d: no place on a router is known"):
        guest_files.read_files.__wrapped__()
    (tmp_path / "cron.d").rmdir()
    (tmp_path / "startup.sh").unlink()
    with pytest.raises(guest_files.GuestFilesError, match=r"guest/startup\.sh is missing"):
        guest_files.read_files.__wrapped__()
