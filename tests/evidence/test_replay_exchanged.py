"""Replay of a bundle whose manifest or checkpoint was exchanged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evidence_files import with_true_hashes
from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.replay import read_bundle, replay_bundle
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes

pytestmark = pytest.mark.usefixtures("one_audit")


def tampered(files: dict[str, bytes], change: Callable[[dict[str, Any]], Any]) -> dict[str, bytes]:
    manifest = json.loads(files["manifest.json"])
    change(manifest)
    return files | {"manifest.json": json.dumps(manifest).encode()}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(dtype="float64"),
        lambda m: m.update(tolerance=1.0),
        lambda m: m.update(passed=False),
        lambda m: m.update(checkpoint_digest="0" * 64),
        lambda m: m.update(context_prompt=["<bos>", "A", "A", "X"]),
        lambda m: m.update(context_prompt=["Q"]),
        lambda m: m["run"].update(seed=42),
        lambda m: m["run"].update(tolerance=1.0),
        lambda m: m["run"].update(dtype="float16"),
        lambda m: m["run"].update(prompt=["<bos>", "Q"]),
        lambda m: m["run"].update(checkpoint="other"),
        lambda m: m["run"].update(cache=False),
        lambda m: m["run"]["policy"].update(top_k=9),
        lambda m: m["files"].update({"../x": m["files"]["traces.csv"]}),
        lambda m: m["files"]["traces.csv"].update(rows=29),
    ],
)
def test_tampered_manifest_fails(files: dict[str, bytes], change: Any) -> None:
    found = replay_bundle(tampered(files, change))
    assert not found.passed
    assert found.first_difference is not None
    assert "\n" not in str(found.first_difference)


def test_another_machine_is_remarked_and_not_failed(files: dict[str, bytes]) -> None:
    found = replay_bundle(tampered(files, lambda m: m["environment"].update(numpy="1.0")))
    assert found.passed
    assert [text[:16] for text in found.elsewhere if "sha256" not in text] == ["numpy: 1.0 there"]


def test_checkpoint_that_was_exchanged_is_named(files: dict[str, bytes]) -> None:
    config = ModelConfig(vocab_size=7, n_positions=5, n_embd=6, n_layer=2, n_head=2, n_inner=11)
    other = random_checkpoint(config, 3)
    files["checkpoint.safetensors"] = checkpoint_bytes(other)
    found = replay_bundle(with_true_hashes(files))
    assert str(found.first_difference).startswith("checkpoint.safetensors: expected the digest")
    files["checkpoint.safetensors"] = b"junk"
    found = replay_bundle(with_true_hashes(files))
    assert "checkpoint.safetensors: expected a checkpoint, found none" in str(
        found.first_difference
    )


def test_given_checkpoint_must_have_the_recorded_digest(
    files: dict[str, bytes], report: AuditReport
) -> None:
    assert replay_bundle(files, report.checkpoint).passed
    other = random_checkpoint(ModelConfig(7, 5, 6, 2, 2, 11), 3)
    found = replay_bundle(files, other)
    assert str(found.first_difference).startswith("checkpoint.safetensors: expected the digest")


@pytest.mark.parametrize("files", [{}, {"traces.csv": b""}])
def test_bundle_without_manifest_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a manifest.json, found none"):
        replay_bundle(files)
    with pytest.raises(InputError, match=r"expected a manifest.json, found none"):
        read_bundle(tmp_path)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for name, found in (("file", "a file"), ("none", "none")):
        with pytest.raises(InputError, match=f"expected a directory, found {found}"):
            read_bundle(tmp_path / name)
