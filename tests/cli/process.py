"""The environment in which the tests start the command line as a process."""

import os
from pathlib import Path


def variables(**added: str) -> dict[str, str]:
    """The environment, with this package on the path and standard output buffered."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])} | added
