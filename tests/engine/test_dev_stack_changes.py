"""Changes to the repository's own program with the real engine: another machine type, a zone less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from multinic.lab.pulumi import engine
from tests.engine.conftest import REPOSITORY, RunningLab, items

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_new_machine_type_rolls_and_a_zone_is_taken_out(lab: RunningLab, tmp_path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())["config"]
    said: list[str] = []
    deployment = engine.up(
        REPOSITORY,
        stack="dev",
        config=config,
        state=tmp_path / "state",
        endpoint=lab.endpoint,
        token=lab.token,
        progress=said.append,
    )
    try:
        (first,) = (template["name"] for template in items(lab, "global/instanceTemplates"))
        router = config["multinic:router"]
        larger = router | {"machine": router["machine"] | {"type": "n2-highcpu-8"}}
        said.clear()

        done = deployment.update(config | {"multinic:router": larger}, preview=False)

        # The groups, and the autoscalers: their CPU target follows from the machine type (docs/adr/0004).
        assert done == {"replace": 1, "update": 6}
        assert sum(line.startswith("updating Autoscaler") for line in said) == 3
        assert said.index("creating anew InstanceTemplate router-fleet-template") < said.index(
            "updating InstanceGroupManager router-fleet-group-us-central1-a"
        )
        assert said[-1] == "deleting replaced InstanceTemplate router-fleet-template"
        (second,) = (template["name"] for template in items(lab, "global/instanceTemplates"))
        assert second != first

        said.clear()
        fewer = config | {"multinic:router": larger, "multinic:zones": config["multinic:zones"][:2]}
        done = deployment.update(fewer, preview=False)

        # Both load balancers let go of the group before it is deleted.
        assert done == {"update": 2, "delete": 2}
        last_update = max(index for index, line in enumerate(said) if line.startswith("updating RegionBackendService"))
        assert last_update < said.index("deleting InstanceGroupManager router-fleet-group-us-central1-c")
        assert items(lab, "zones/us-central1-c/instanceGroupManagers") == []
    finally:
        deployment.destroy()
