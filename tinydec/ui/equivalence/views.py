"""The four views of the page by name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence.choices import choices_view
from tinydec.ui.equivalence.prefixes import prefixes_view
from tinydec.ui.equivalence.tensors import tensors_view
from tinydec.ui.equivalence.tolerance import tolerance_view

VIEWS: MappingProxyType[str, Callable[[CurrentRun], None]] = MappingProxyType(
    {
        "Prefixes": prefixes_view,
        "Tensors": tensors_view,
        "Tolerance": tolerance_view,
        "Choices": choices_view,
    }
)
