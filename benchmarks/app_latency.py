"""Time a changed control on every page of the app, in the server and in a browser.

Server: a visitor opens a page, then changes its controls one after another: the shared ones and
the page's own, each at least three times, at least 15 changes in all. What counts is the span
from the message that asks for a run to the one that says that the run has finished, over the
websocket protocol. The median has to be at most 100 ms. The processor time beside it does not
depend on how busy the machine is.

Browser: Chromium without a graphics card opens the same page; a control is clicked at least 15
times. What counts is the span from the click to the last change that it made to the page. The
median has to be at most 400 ms, and at most 300 ms on a page with one chart.

Nothing leaves this machine: the server is started here, on a port of its own.

Exit codes: 0 every target is met, 1 one is missed, 2 there is no Chromium.

Examples:
    python -m benchmarks.app_latency
    python -m benchmarks.app_latency --page kv_cache --page memory
    python -m benchmarks.app_latency --server-only --json latency.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.app_browser import PageTiming, find_chromium, time_in_browser
from benchmarks.app_client import Control, Visit, visiting
from benchmarks.app_server import AppServer, app_server
from benchmarks.environment import machine
from tinydec.ui.pages import CATALOGUE, PageInfo

TARGET_MISSED = 1
NO_CHROMIUM = 2
SERVER_TARGET = 100.0
BROWSER_TARGET = 400.0
ONE_CHART_TARGET = 300.0
LEAST_CHANGES = 15
_SHARED = ("prompt", "step", "seed", "temperature")


@dataclass(frozen=True)
class Row:
    """One page's figures, in milliseconds.

    Attributes:
        page: its ``url_path``.
        changes: how many changes were timed in the server.
        redrawn: how many of them drew something else than the run before.
        server: median span in the server.
        processor: mean processor time of the server for a change, or None if unknown.
        slowest: the control with the largest median, and that median.
        charts: charts on the page, or None without a browser.
        browser: median span in the browser, or None.
    """

    page: str
    changes: int
    redrawn: int
    server: float
    processor: float | None
    slowest: tuple[str, float]
    charts: int | None = None
    browser: float | None = None

    @property
    def browser_target(self) -> float:
        """What the browser's median may be at most."""
        return ONE_CHART_TARGET if self.charts == 1 else BROWSER_TARGET

    @property
    def met(self) -> bool:
        """Whether both medians are within their targets."""
        return self.server <= SERVER_TARGET and (self.browser or 0) <= self.browser_target


def main(arguments: Sequence[str] | None = None) -> int:
    """Time the chosen pages, print the table and return the exit code."""
    options = _parser().parse_args(arguments)
    chromium = None if options.server_only else find_chromium()
    if chromium is None and not options.server_only:
        print("app_latency: expected Chromium, found none (or use --server-only)", file=sys.stderr)
        return NO_CHROMIUM
    chosen = [i for i in CATALOGUE.existing() if options.page in (None, []) or _named(i, options)]
    before = machine()
    with app_server() as server:
        rows = [asyncio.run(time_in_server(server, info, options.changes)) for info in chosen]
        if chromium is not None:
            timings = time_in_browser(server, chosen, chromium, options.clicks)
            rows = [_with_browser(row, timings[row.page]) for row in rows]
    for name, value in (before | {"load afterwards": machine()["load"]}).items():
        print(f"{name}: {value}")
    print(f"\n{table(rows)}")
    if options.json:
        text = json.dumps([asdict(row) | {"met": row.met} for row in rows], indent=2) + "\n"
        Path(options.json).write_text(text, encoding="utf-8")
    return verdict(rows)


def verdict(rows: Sequence[Row]) -> int:
    """Return the exit code: 1 when a target is missed."""
    return 0 if all(row.met for row in rows) else TARGET_MISSED


def _named(info: PageInfo, options: argparse.Namespace) -> bool:
    return info.url_path in options.page


def _parser() -> argparse.ArgumentParser:
    about, _, examples = (__doc__ or "").partition("\nExamples:\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.app_latency",
        description=about,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    pages = [info.url_path for info in CATALOGUE.existing()]
    parser.add_argument("--page", action="append", choices=pages, help="time this page (again)")
    parser.add_argument("--server-only", action="store_true", help="leave the browser out")
    parser.add_argument("--changes", type=int, default=LEAST_CHANGES, help="server: at least")
    parser.add_argument("--clicks", type=int, default=LEAST_CHANGES, help="browser: at least")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    return parser


# Server ------------------------------------------------------------------------------------------


async def time_in_server(server: AppServer, info: PageInfo, least: int = LEAST_CHANGES) -> Row:
    """Open a page and change its controls in turn."""
    async with visiting(server) as visit:
        await visit.open("", {})
        await visit.open(info.url_path, {"policy": "sample"})
        names = [name for name in (*_SHARED, *info.parameters) if _usable(visit, name)]
        rounds = max(3, -(-least // len(names)))
        spans: dict[str, list[float]] = {name: [] for name in names}
        redrawn, used = 0, server.processor_seconds()
        for turn in range(rounds):
            for name in names:
                control = visit.controls.get(name)
                if control is None:  # another control took it away
                    continue
                states = control.states()
                before = visit.drawn
                spans[name].append(1000 * await visit.change(states[(turn + 1) % len(states)]))
                redrawn += visit.drawn != before
        after = server.processor_seconds()
        if visit.exceptions:
            raise RuntimeError(f"{info.url_path}: expected a page, found {visit.exceptions[0]}")
    every = [span for found in spans.values() for span in found]
    medians = {name: median(found) for name, found in spans.items() if found}
    slowest = max(medians, key=lambda name: medians[name])
    processor = None if used is None or after is None else 1000 * (after - used) / len(every)
    return Row(
        info.url_path,
        len(every),
        redrawn,
        median(every),
        processor,
        (slowest, medians[slowest]),
    )


def _usable(visit: Visit, name: str) -> bool:
    control: Control | None = visit.controls.get(name)
    return control is not None and len(control.states()) > 1


def _with_browser(row: Row, timing: PageTiming) -> Row:
    return replace(row, charts=timing.charts, browser=1000 * median(timing.spans))


# Report ------------------------------------------------------------------------------------------

_HEAD = (
    "page", "changes", "redrawn", "server ms", "(processor)", "slowest control", "charts",
    "browser ms", "target", "met",
)  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Return the figures as text, one line for each page."""
    lines = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    name, slowest = row.slowest
    browser = "-" if row.browser is None else f"{row.browser:.0f}"
    return (
        row.page,
        str(row.changes),
        str(row.redrawn),
        f"{row.server:.0f}",
        "-" if row.processor is None else f"({row.processor:.0f})",
        f"{name} {slowest:.0f}",
        "-" if row.charts is None else str(row.charts),
        browser,
        f"{SERVER_TARGET:.0f}" + ("" if row.browser is None else f", {row.browser_target:.0f}"),
        "met" if row.met else "not met",
    )


if __name__ == "__main__":
    sys.exit(main())
