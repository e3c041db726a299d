"""What a shell or the engine driver needs in its environment for plain ``pulumi`` commands on a lab."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from multinic.lab.pulumi import cli, providers
from multinic.lab.pulumi.stand_in import ENDPOINT_VARIABLE, TOKEN_VARIABLE

FOLDER_VARIABLE = "MULTINIC_LAB_FOLDER"
"""Where programs in guests are started from; see `multinic.lab.guests.exec`."""

# A lab holds no secrets: the passphrase only keeps the CLI from asking for one.
_PASSPHRASE = "lab"  # noqa: S105


def environment(endpoint: str, token: str, folder: Path) -> dict[str, str]:
    """Return what ``multinic lab env`` exports; starts the stand-ins for the plugins beside the lab if need be.

    Args:
        endpoint: The lab's front door, ``http://127.0.0.1:PORT``.
        token: Its token.
        folder: The lab's folder; the state of the stacks is kept below it.

    Raises:
        multinic.lab.pulumi.providers.ProvidersError: If the lab does not run.
    """
    attached = providers.beside(folder, endpoint, token)
    return settings(endpoint, token, folder / "pulumi", attached) | {FOLDER_VARIABLE: str(folder.resolve())}


def settings(
    endpoint: str, token: str, home: Path, attached: str, base: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables themselves.

    Args:
        endpoint: The lab's front door.
        token: Its token.
        home: Folder for the CLI's own files and for the state of the stacks; made if it is not there.
        attached: Value of PULUMI_DEBUG_PROVIDERS.
        base: Where PATH is taken from.
    """
    state = home / "state"
    state.mkdir(parents=True, exist_ok=True)
    commands = [str(launcher(home / "bin"))]
    found = cli.find()
    if found:
        commands.append(str(found.parent))
    return {
        ENDPOINT_VARIABLE: endpoint,
        TOKEN_VARIABLE: token,
        "PATH": ":".join([*commands, base.get("PATH", os.defpath)]),
        "PULUMI_HOME": str(home / "home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DEBUG_PROVIDERS": attached,
        **google(endpoint, token),
    }


def google(endpoint: str, token: str) -> dict[str, str]:
    """Return what points the real pulumi-gcp plugin, or Google's Terraform provider, at a lab.

    Each endpoint ends with a slash, and compute's is the beta one, as the plugin's own default is.
    """
    base = endpoint.rstrip("/")
    return {
        "GOOGLE_PROJECT": "lab",
        "GOOGLE_OAUTH_ACCESS_TOKEN": token,
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"{base}/compute/beta/",
        "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT": f"{base}/iam/v1/",
        "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT": f"{base}/crm/v1/",
        "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": f"{base}/serviceusage/v1/",
        "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"{base}/logging/v2/",
        "GOOGLE_MONITORING_CUSTOM_ENDPOINT": f"{base}/monitoring/",
        "PULUMI_GCP_SKIP_REGION_VALIDATION": "true",
    }


def launcher(folder: Path) -> Path:
    """Write ``pulumi-language-python``, which runs programs with this interpreter, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pulumi-language-python"
    package_root = Path(__file__).parents[3]
    text = (
        "#!/bin/sh\n"
        "# Runs Pulumi programs with the interpreter that has the lab's packages.\n"
        f'PYTHONPATH={shlex.quote(str(package_root))}"${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        "export PYTHONPATH\n"
        f'exec {shlex.quote(sys.executable)} -m multinic.lab.pulumi.language_host "$@"\n'
    )
    if not path.exists() or path.read_text() != text:
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(0o755)
        unfinished.rename(path)
    return folder
