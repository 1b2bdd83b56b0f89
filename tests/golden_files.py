"""Readers of the golden logits in tests/golden (see tests/golden/make_logits.py)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.random_models import random_checkpoint
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig

GOLDEN = Path(__file__).resolve().parent / "golden"
#: Folders that `save_pretrained` of transformers wrote.
SAVED = ("separate_head", "tied_head")


def read_golden(name: str) -> Any:
    """Return the values of a JSON file in tests/golden."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def random_cases() -> dict[str, tuple[Checkpoint, list[int], NDArray[np.float64]]]:
    """Return checkpoint, token ids and golden logits (T, V) of each random decoder, by name."""
    return {
        case["name"]: (
            random_checkpoint(ModelConfig.from_dict(case["config"]), case["seed"]),
            case["token_ids"],
            np.array(case["float64"]),
        )
        for case in read_golden("random_logits.json")["cases"]
    }
