"""Hypothesis strategies: logits rows with ties and extremes, and policies for them."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tinydec.runspec import Policy

EXTREMES = (0.0, -0.0, 1.0, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 1e30, -1e30, 700.0, -746.0)
UNIFORMS = st.floats(0, 1, exclude_max=True, allow_subnormal=True)
TEMPERATURES = st.one_of(
    st.floats(0.05, 20), st.sampled_from((1, 1e-308, 5e-324, 1e308, 1e-3, 1e5))
)
FLOAT_LIMITS = {"float16": 60000.0, "float32": 1e30, "float64": 1e300}


@st.composite
def rows(draw: st.DrawFn, max_size: int = 13, dtype: str | None = None) -> NDArray:
    """Draw a logits row (V,) in one of the three formats; ties are common."""
    kind = draw(st.sampled_from(tuple(FLOAT_LIMITS))) if dtype is None else dtype
    value = st.one_of(st.floats(-20, 20), st.sampled_from(EXTREMES), st.integers(-3, 3).map(float))
    values = draw(st.lists(value, min_size=1, max_size=max_size))
    limit = FLOAT_LIMITS[kind]
    return np.clip(np.array(values), -limit, limit).astype(kind)


@st.composite
def policies(draw: st.DrawFn, size: int, kind: str | None = None) -> Policy:
    """Draw a policy for V = ``size`` logits."""
    return Policy(
        draw(st.sampled_from(("greedy", "sample"))) if kind is None else kind,
        draw(TEMPERATURES),
        draw(st.none() | st.integers(1, size)),
        draw(
            st.none()
            | st.floats(0, 1, exclude_min=True)
            | st.sampled_from((0.1, 0.3, 0.5, 0.8, 0.9, 1.0))
        ),
    )


@st.composite
def cases(draw: st.DrawFn, kind: str | None = None) -> tuple[NDArray, Policy]:
    row = draw(rows())
    return row, draw(policies(len(row), kind))
