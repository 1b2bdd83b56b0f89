"""Shared controls that a page switch lost: which of them are set again."""

from __future__ import annotations

import pytest

from tinydec.model.storage import load_checkpoint
from tinydec.ui.domains import Limits
from tinydec.ui.page_switch import lost_values
from tinydec.ui.parameters import defaults

DEFAULTS = defaults(Limits.of(load_checkpoint()))
KEPT = DEFAULTS | {"seed": 7, "policy": "sample", "tolerance": 1e-6}
ALL = {"seed": "7", "policy": "sample", "tolerance": "1e-6"}


@pytest.mark.parametrize(
    ("query", "session", "lost"),
    [
        (ALL, KEPT, {}),
        ({}, {}, {"seed": 7, "policy": "sample", "tolerance": 1e-6}),
        ({}, KEPT, {"seed": 7, "policy": "sample", "tolerance": 1e-6}),
        ({}, DEFAULTS, {"seed": 7, "policy": "sample", "tolerance": 1e-6}),
        ({"policy": "sample", "tolerance": "1e-6"}, DEFAULTS, {"seed": 7}),
        ({"policy": "sample", "tolerance": "1e-6"}, KEPT | {"seed": 8}, {}),
    ],
)
def test_only_what_nobody_changed_is_lost(query: dict, session: dict, lost: dict) -> None:
    assert lost_values(KEPT, query, session, DEFAULTS) == lost


def test_defaults_are_never_lost() -> None:
    assert lost_values(DEFAULTS, {}, {}, DEFAULTS) == {}
