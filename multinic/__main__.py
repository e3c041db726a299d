"""Runs the command line as ``python -m multinic``."""

from multinic.cli import main

if __name__ == "__main__":
    main()
