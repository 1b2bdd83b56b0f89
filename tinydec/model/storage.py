"""Read and write checkpoints as safetensors files.

A tinydec file carries config and vocabulary as JSON under the one metadata key ``tinydec``
(several keys would come out in varying order, and the bytes would differ from run to run).
A Hugging Face GPT-2 file has no such key; its ``config.json`` must stand beside it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from tinydec.errors import InputError
from tinydec.model.checkpoint import EVALUATION, Array, Checkpoint, canonical_json
from tinydec.model.config import ModelConfig
from tinydec.model.hugging_face import read_hugging_face
from tinydec.model.output import write_whole
from tinydec.model.provenance import plain_json
from tinydec.model.vocabulary import Vocabulary

METADATA_KEY = "tinydec"
FORMAT = 1

#: The shipped 368-parameter checkpoint.
FROZEN_PATH = Path(__file__).resolve().parents[2] / "assets" / "frozen.safetensors"


def load_checkpoint(path: str | os.PathLike[str] = FROZEN_PATH) -> Checkpoint:
    """Read a checkpoint file and check all of it.

    Raises:
        InputError: no such file, not safetensors, truncated, no or contradictory config, missing,
            extra or misshapen tensors, values that are not finite.
    """
    file = Path(path)
    found = _kind(file)
    if found != "a file":
        raise InputError(f"checkpoint {file}: expected a safetensors file, found {found}")
    tensors, metadata = _read(file)
    try:
        if METADATA_KEY in metadata:
            return _from_metadata(metadata[METADATA_KEY], tensors)
        return read_hugging_face(file, tensors)
    except InputError as error:
        raise InputError(f"checkpoint {file}: {error}") from None


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the file's bytes; equal checkpoints with equal provenance give equal bytes."""
    header = {
        "format": FORMAT,
        "config": checkpoint.config.to_dict(),
        "vocabulary": checkpoint.vocabulary.to_dict(),
        "mode": checkpoint.mode,
        "provenance": plain_json(checkpoint.provenance),
    }
    return serialise(dict(checkpoint.tensors), metadata={METADATA_KEY: canonical_json(header)})


def save_checkpoint(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> None:
    """Write a checkpoint file, whole or not at all.

    Raises:
        InputError: nothing can be written there, see ``write_whole``.
    """
    write_whole(Path(path), checkpoint_bytes(checkpoint))


def _kind(path: Path) -> str:
    """Say what stands at a path: ``a file``, ``a directory``, ``none`` or the system's refusal."""
    try:
        if path.is_file():
            return "a file"
        kinds = (("a directory", path.is_dir), ("a device, pipe or socket", path.exists))
        return next((name for name, stands in kinds if stands()), "none")
    except OSError as error:  # a name that is too long, a folder that may not be searched
        return str(error.strerror).lower()


def _read(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    try:
        with safe_open(file, framework="numpy") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return tensors, dict(opened.metadata() or {})
    except (SafetensorError, OSError, TypeError, AttributeError, KeyError) as error:
        # NumPy has no bfloat16 or float8: safetensors says so with one of the last three types.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"checkpoint {file}: expected a whole safetensors file of float16, float32 or "
            f"float64 tensors, found: {reason}"
        ) from None


def _from_metadata(text: str, tensors: dict[str, Array]) -> Checkpoint:
    try:
        header: Any = json.loads(text)
    except (ValueError, RecursionError):  # the latter for thousands of nested brackets
        header = None
    if not isinstance(header, dict) or "config" not in header or "vocabulary" not in header:
        raise InputError(
            f"metadata {METADATA_KEY!r}: expected JSON with config and vocabulary, "
            f"found {text[:40]!r}"
        )
    version = header.get("format")
    if version != FORMAT:
        raise InputError(
            f"metadata {METADATA_KEY!r}: expected format {FORMAT}, found {version!r:.60}"
        )
    mode = header.get("mode", EVALUATION)
    if mode != EVALUATION:
        raise InputError(f"model mode: expected {EVALUATION!r}, found {mode!r:.60}")
    config = ModelConfig.from_dict(header["config"])
    vocabulary = Vocabulary.from_dict(header["vocabulary"])
    provenance = header.get("provenance", {})
    if provenance is None:  # to ``build`` that would mean: none given
        raise InputError("provenance: expected a JSON object, found None")
    return Checkpoint.build(config, vocabulary, tensors, provenance, mode)
