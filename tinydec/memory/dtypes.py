"""Bytes of one cached scalar, and byte counts in words."""

from collections.abc import Mapping
from types import MappingProxyType

from tinydec.errors import InputError
from tinydec.memory._checks import whole_number

# float8 covers e4m3 and e5m2. The scales that float8 and int8 caches keep besides are not counted:
# their number depends on the implementation.
DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8": 1, "int8": 1}
)

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def dtype_bytes(dtype: str) -> int:
    """Return the bytes of one scalar of `dtype`; InputError lists the valid names."""
    given: object = dtype  # may come unchecked from a command line or a file
    if not isinstance(given, str) or given not in DTYPE_BYTES:
        raise InputError(f"dtype: expected one of {', '.join(DTYPE_BYTES)}, found {dtype!r}")
    return DTYPE_BYTES[dtype]


def format_bytes(count: int) -> str:
    """Return bytes in the largest binary unit that fits, at most two decimals, rounded half up.

    Integer arithmetic only. Cached payloads are quoted in powers of 1024.

    >>> format_bytes(256), format_bytes(2147483648), format_bytes(1536)
    ('256 bytes', '2 GiB', '1.5 KiB')
    """
    count = whole_number("bytes", count, 0)
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    unit = 1024**power
    hundredths = (count * 200 + unit) // (2 * unit)
    if hundredths == 102_400 and power < len(_UNITS) - 1:  # 1024 of a unit is 1 of the next
        power, hundredths = power + 1, 100
    text = f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")
    return f"{text} {'byte' if count == 1 else _UNITS[power]}"
