"""Checks of the fabric run inside a lab's namespaces."""

import sys
from pathlib import Path

# The rig and the runner are imported by name, here and inside.
for folder in (Path(__file__).parent, Path(__file__).parents[1]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
