"""The four views of the page by name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from tinydec.ui.current import CurrentRun
from tinydec.ui.memory.left_out import left_out_view
from tinydec.ui.memory.models import models_view
from tinydec.ui.memory.payload import payload_view
from tinydec.ui.memory.work import work_view

VIEWS: MappingProxyType[str, Callable[[CurrentRun], None]] = MappingProxyType(
    {
        "Payload": payload_view,
        "Left out": left_out_view,
        "Real models": models_view,
        "Work": work_view,
    }
)
