"""Sizes of two published GPT-2 models, to show work where it is no longer tiny.

Source: Radford et al. 2019, and the hyperparameters in the repository openai/gpt-2; the MLP is
four times as wide as the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tinydec.memory.work import DecoderSizes

SHAPES: Mapping[str, DecoderSizes] = MappingProxyType(
    {
        "GPT-2 small": DecoderSizes(12, 768, 12, 64, 3072, 50257, 1024),
        "GPT-2 XL": DecoderSizes(48, 1600, 25, 64, 6400, 50257, 1024),
    }
)
