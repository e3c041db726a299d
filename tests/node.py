"""Node.js programs for tests (TypeScript, pyright, Pulumi's SDK), installed once as pinned in tools/node."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from multinic.lab.pulumi import cli
from tests.unit.conftest import REPOSITORY

PINNED = REPOSITORY / "tools" / "node"


def packages() -> Path:
    """Returns the folder of the packages in the user's cache; installs them if they are not there."""
    digest = hashlib.sha256((PINNED / "npm-shrinkwrap.json").read_bytes()).hexdigest()[:12]
    folder = cli.cache().with_name("node") / digest
    if not folder.is_dir():
        unfinished = folder.with_name(f".{digest}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        try:
            for name in ("package.json", "npm-shrinkwrap.json"):
                shutil.copy(PINNED / name, unfinished)
            install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(install, cwd=unfinished, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            if not folder.is_dir():  # another process may have been as quick
                unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder / "node_modules"
