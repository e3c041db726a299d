"""The `multinic` command: thin, over operate, measure and the lab.

Exit codes: 0 done, or nothing to do · 1 could not (an API, no permission, no stack) · 2 wrong words · 3 refused for
the traffic's sake · 4 begun and not finished · 5 looked, and something is wrong · 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; what a user can mend is told in one sentence, without a traceback."""
    from multinic.lab.errors import LabError
    from multinic.operate.errors import OperateError

    try:
        # The library is installed without what the commands need.
        from multinic.cli.app import app

        app()
    except (LabError, OperateError) as error:
        print(f"multinic: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
    except ModuleNotFoundError as error:
        if (error.name or "multinic").partition(".")[0] == "multinic":
            raise
        print(
            f"multinic: the package {error.name} is missing: in a clone, pip install '.[operate]' for the commands,"
            " '.[lab]' for the lab, '.[operate,lab,measure]' for all",
            file=sys.stderr,
        )
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
