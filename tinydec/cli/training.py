"""``train``: from a seed to a checkpoint file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinydec.cli import options
from tinydec.cli.text import Outcome, one_line
from tinydec.evidence.audit import SEEDED_POLICY
from tinydec.evidence.environment import blas
from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.output import check_file_output
from tinydec.runspec import RunSpec


def run(given: Namespace) -> Outcome:
    """Train, write the file whole or not at all, and say how far it is from another checkpoint."""
    from tinydec.training import TrainingSettings, train_to_file

    other = options.checkpoint(given)
    settings = TrainingSettings()
    seed = options.integer("seed", given.seed)
    if seed is not None:
        settings = replace(settings, seed=seed)
    check_file_output(Path(given.out))
    found = train_to_file(settings, given.out, {"blas_kernel": blas()})
    checkpoint, wrote = found.checkpoint, f"Wrote {one_line(given.out)}"
    lines = [
        (
            f"Trained {checkpoint.config.parameter_count()} parameters from seed {settings.seed} "
            f"in {settings.steps} steps; loss {found.losses[0]:.4f} -> {found.final_loss:.4f}"
        ),
        f"Digest: {checkpoint.digest}",
        *(f"{name}: {text}" for name, text in _traces(checkpoint)),
        f"Compared with checkpoint {other.digest[:12]}: {_distance(checkpoint, other)}",
        wrote,
    ]
    return Outcome("\n".join(lines), written=wrote)


def _traces(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    specs = (("Greedy", RunSpec()), ("Sampled, top-k 3, seed 41", RunSpec(policy=SEEDED_POLICY)))
    traces = [(name, generate(checkpoint, spec)) for name, spec in specs]
    decode = checkpoint.vocabulary.decode
    return [(name, f"{decode(t.token_ids)} (stop: {t.stop_reason})") for name, t in traces]


def _distance(one: Checkpoint, other: Checkpoint) -> str:
    if one.digest == other.digest:
        return "the same, bit for bit"
    if one.config != other.config:
        return "another config"
    largest = max(
        float(np.abs(array.astype(np.float64) - other.tensors[name].astype(np.float64)).max())
        for name, array in one.tensors.items()
    )
    return f"largest difference of a tensor {largest:.3g}"
