"""The helpers beside these tests are imported by name, here and in the processes that the tests start."""

import sys
from pathlib import Path

if str(Path(__file__).parents[3]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parents[3]))
