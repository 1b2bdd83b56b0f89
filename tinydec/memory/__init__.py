"""Cache payload and work formulas, with presets of real models. Exact integers throughout."""

from tinydec.memory.dtypes import DTYPE_BYTES, dtype_bytes, format_bytes
from tinydec.memory.layout import ATTENTION_KINDS, AttentionLayout, LayoutError, dense_layout
from tinydec.memory.payload import (
    PayloadCheck,
    allocated_scalars,
    cache_bytes,
    cache_scalars,
    check_payload,
    growth_scalars,
    requests_that_fit,
    valid_scalars,
)
from tinydec.memory.presets import PRESETS_FILE, find_preset, load_presets
from tinydec.memory.report import (
    MemoryReport,
    PayloadFormula,
    layout_report,
    memory_report,
    payload_formula,
)
from tinydec.memory.work import (
    CONVENTION,
    DecoderSizes,
    GenerationStep,
    StepWork,
    Work,
    decode_work,
    generation_work,
    prefill_work,
    uncached_work,
)

__all__ = [
    "ATTENTION_KINDS",
    "CONVENTION",
    "DTYPE_BYTES",
    "PRESETS_FILE",
    "AttentionLayout",
    "DecoderSizes",
    "GenerationStep",
    "LayoutError",
    "MemoryReport",
    "PayloadCheck",
    "PayloadFormula",
    "StepWork",
    "Work",
    "allocated_scalars",
    "cache_bytes",
    "cache_scalars",
    "check_payload",
    "decode_work",
    "dense_layout",
    "dtype_bytes",
    "find_preset",
    "format_bytes",
    "generation_work",
    "growth_scalars",
    "layout_report",
    "load_presets",
    "memory_report",
    "payload_formula",
    "prefill_work",
    "requests_that_fit",
    "uncached_work",
    "valid_scalars",
]
