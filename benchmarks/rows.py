"""One row of the report: ours beside the peer, their ratio and whether it reaches its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.timing import Timing


@dataclass(frozen=True)
class Row:
    """Seconds per unit of work on both sides.

    Attributes:
        title: what is timed.
        ours: median of this project's samples.
        ours_quartiles: a quarter and three quarters of the way up.
        peer: median of the faster peer setting, or None without a peer.
        peer_quartiles: of the same setting.
        setting: that setting's name.
        target: least ratio, or None where none is promised.
        threads: compute threads of both sides.
        clock: ``cpu`` or ``wall``.
        repetitions: samples behind each median.
        calls: what each side calls.
        limit: most seconds, or None where none is promised.
    """

    title: str
    ours: float
    ours_quartiles: tuple[float, float]
    peer: float | None
    peer_quartiles: tuple[float, float] | None
    setting: str | None
    target: float | None
    threads: int
    clock: str
    repetitions: int
    calls: tuple[str, ...]
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the peer."""
        return None if self.peer is None else self.peer / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the ratio reaches the target, or the time the limit; None without either."""
        if self.limit is not None:
            return self.ours <= self.limit
        if self.ratio is None or self.target is None:
            return None
        return self.ratio >= self.target


def compared(
    title: str,
    ours: Timing,
    peers: Mapping[str, Timing],
    target: float | None,
    threads: int,
    clock: str,
    calls: Sequence[str],
) -> Row:
    """Return the row of a job and of its peer's settings, of which the fastest counts."""
    setting = min(peers, key=lambda name: peers[name].median, default=None)
    best = None if setting is None else peers[setting]
    return Row(
        title=title,
        ours=ours.median,
        ours_quartiles=ours.quartiles,
        peer=None if best is None else best.median,
        peer_quartiles=None if best is None else best.quartiles,
        setting=setting,
        target=target,
        threads=threads,
        clock=clock,
        repetitions=len(ours.samples),
        calls=tuple(calls),
    )


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a text table with what each side calls below it."""
    head = ("", "what", "threads", "clock", "ours", "peer", "setting", "ratio", "target", "")
    lines = [head] + [_cells(number, row) for number, row in enumerate(rows, 1)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    notes = [f"{number}  {call}" for number, row in enumerate(rows, 1) for call in row.calls]
    return "\n".join([*text, "", *notes])


def _cells(number: int, row: Row) -> tuple[str, ...]:
    verdict = {None: "", True: "met", False: "NOT MET"}[row.met]
    return (
        str(number),
        row.title,
        str(row.threads),
        row.clock,
        seconds(row.ours),
        "-" if row.peer is None else seconds(row.peer),
        row.setting or "-",
        "-" if row.ratio is None else f"{row.ratio:.2f} x",
        _promise(row),
        verdict,
    )


def _promise(row: Row) -> str:
    if row.limit is not None:
        return f"at most {seconds(row.limit)}"
    return "-" if row.target is None else f"{row.target:g} x"


def seconds(value: float) -> str:
    """Return a time with three digits in the unit that suits it."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"
