"""Uploads with finite weights whose numbers overflow on the way: one line, never a traceback."""

from __future__ import annotations

import pytest

from tests.app.page_checks import open_page
from tests.random_models import random_checkpoint
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.ui.pages import PAGES

pytestmark = pytest.mark.filterwarnings("default")

SIZES = ModelConfig(8, 4, 4, 2, 2, 8)


def scaled(dtype: str, factor: float, part: str = "") -> Checkpoint:
    """A random decoder, every tensor whose name contains ``part`` multiplied."""
    checkpoint = random_checkpoint(SIZES, 3, "float64")
    tensors = {
        name: (array * (factor if part in name else 1.0)).astype(dtype)
        for name, array in checkpoint.tensors.items()
    }
    return checkpoint.with_tensors(tensors)


OVERFLOWING = {
    "float32, all": scaled("float32", 1e19),
    "float32, c_attn": scaled("float32", 1e30, "c_attn"),
    "float16, all": scaled("float16", 1e4),
    "float64, all": scaled("float64", 1e60),
    "float64, all, more": scaled("float64", 1e100),
    "float64, wte": scaled("float64", 1e160, "wte"),
    "float64, c_fc": scaled("float64", 1e160, "c_fc"),
}


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.url_path)
@pytest.mark.parametrize("name", OVERFLOWING)
def test_page_says_what_is_not_finite_and_stands(info, name: str) -> None:
    app = open_page(info.url_path, {"dtype": name.split(",")[0]}, OVERFLOWING[name])
    assert not app.exception
    assert len(app.title) == 1
    assert len(app.error) <= 1
    for error in app.error:
        assert "expected finite values" in error.value
