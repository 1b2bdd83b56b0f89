"""Run the command line in this process and read what it prints."""

import json
from typing import Any

import pytest

from tinydec.__main__ import main

SAMPLED = ["generate", "--policy", "sample", "--temperature", "1", "--top-k", "3", "--seed", "41"]


def printed(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def values(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> Any:
    return json.loads(printed(capsys, [*arguments, "--json"]))
