"""The command beside a bundle, read back by the command line's own parser."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from tests.random_models import random_checkpoint
from tinydec.cli.options import audit_run
from tinydec.cli.parser import build_parser
from tinydec.evidence.audit import default_spec
from tinydec.evidence.commands import audit_command
from tinydec.evidence.reuse import spec_of_run
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy, RunSpec

FROZEN = load_checkpoint()
OTHER = random_checkpoint(ModelConfig(5, 3, 4, 1, 2, 7), 1, "float32")

RUNS = {
    "default": RunSpec(),
    "prompt": RunSpec(prompt=("<bos>", "X", "Y")),
    "all tokens": RunSpec(policy=Policy("sample")),
    "numbers": RunSpec(policy=Policy("sample", 0.1 + 0.2, 5, 0.9), seed=2**53 - 1),
    "format": RunSpec(dtype="float16", tolerance=2.5e-3),
}


@pytest.mark.parametrize("name", RUNS)
def test_command_reads_back_as_the_same_audit(name: str) -> None:
    spec = spec_of_run(FROZEN, RUNS[name])
    words = shlex.split(audit_command(FROZEN, spec, "a folder"))
    assert words[:3] == ["python", "-m", "tinydec"]
    given = build_parser().parse_args(words[3:])
    assert given.out == "a folder"
    assert audit_run(given, FROZEN) == spec


def test_defaults_are_left_out() -> None:
    assert audit_command(FROZEN, default_spec(FROZEN), "out") == (
        "python -m tinydec audit --out out"
    )


def test_another_checkpoint_is_named_and_quoted() -> None:
    spec = replace(default_spec(OTHER), seed=3)
    command = audit_command(OTHER, spec, "out", "my model.safetensors")
    assert command.endswith("--checkpoint 'my model.safetensors' --seed 3")
    given = build_parser().parse_args(shlex.split(command)[3:])
    assert audit_run(given, OTHER) == spec
