"""Fifty visitors at once: how long each waits for the server after changing a control.

Every visitor opens a page of the app over the websocket protocol, thinks for about five seconds
(drawn evenly from half to one and a half times that), then changes a control or, one time in six,
goes to another page. What counts is the span from asking for a run to its end. First views are
shown apart, and one visitor has seen every view before: a server computes some of it only once.
At the target load, 95 of 100 waits have to be at most 600 ms.

The server is started here, on a port of its own, and runs on as many processors as the visitors
leave it; nothing leaves this machine. At most 200 visitors, at most 300 seconds.

Exit codes: 0 the target is met, 1 it is missed or a page failed.

Examples:
    python -m benchmarks.app_visitors
    python -m benchmarks.app_visitors --visitors 20 --seconds 30
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from benchmarks.app_client import PROMPTS, Visit, visiting
from benchmarks.app_server import AppServer, app_server
from benchmarks.environment import machine
from tinydec.ui.pages import CATALOGUE, PageInfo

TARGET = 0.6
MOST_VISITORS = 200
MOST_SECONDS = 300
_SHARED = ("prompt", "step", "seed", "temperature", "policy")
_SWITCHES = 1 / 6  # the share of actions that go to another page


@dataclass
class Waits:
    """Seconds that visitors waited, by what they did, and what went wrong."""

    opened: list[float] = field(default_factory=list)
    changed: dict[str, list[float]] = field(default_factory=dict)
    switched: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def counted(self) -> list[float]:
        """All waits but those for a visitor's first view."""
        groups = (*self.changed.values(), *self.switched.values())
        return [wait for found in groups for wait in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Let the visitors in, print what they waited for and return the exit code."""
    options = _parser().parse_args(arguments)
    visitors = min(max(options.visitors, 1), MOST_VISITORS)
    seconds = min(max(options.seconds, 1.0), MOST_SECONDS)
    before = machine()
    with app_server() as server:
        asyncio.run(warm(server))
        used, start = server.processor_seconds(), time.perf_counter()
        waits = asyncio.run(crowd(server, visitors, seconds, options.thinking, options.seed))
        took, after = time.perf_counter() - start, server.processor_seconds()
    for name, value in (before | {"load afterwards": machine()["load"]}).items():
        print(f"{name}: {value}")
    print(f"visitors: {visitors}, thinking {options.thinking:g} s, for {took:.0f} s")
    if used is not None and after is not None:
        print(f"processors used by the server: {(after - used) / took:.2f}")
    print(f"\n{report(waits)}")
    return 0 if met(waits) else 1


def met(waits: Waits) -> bool:
    """Whether nothing failed and 95 of 100 waits were within the target."""
    return not waits.failures and bool(waits.counted) and percentile(waits.counted) <= TARGET


def percentile(waits: Sequence[float], share: int = 95) -> float:
    """Return the wait that ``share`` of 100 waits do not exceed."""
    if len(waits) == 1:
        return waits[0]
    return quantiles(waits, n=100, method="inclusive")[share - 1]


def report(waits: Waits) -> str:
    """Return the figures as text: first views, changes by page, page switches, all."""
    lines = [f"{'':22}{'waits':>7}{'median':>9}{'p95':>9}{'longest':>9}   ms"]
    lines.append(_line("first view", waits.opened))
    lines += [_line(f"changed {page}", waits.changed[page]) for page in sorted(waits.changed)]
    switched = [wait for found in waits.switched.values() for wait in found]
    lines += [_line("another page", switched), _line("all but first views", waits.counted)]
    verdict = "met" if met(waits) else "not met"
    lines.append(f"target: p95 of {TARGET * 1000:.0f} ms or less: {verdict}")
    lines += [f"failed: {text[:150]}" for text in sorted(set(waits.failures))]
    return "\n".join(lines)


def _line(name: str, waits: Sequence[float]) -> str:
    if not waits:
        return f"{name:22}{0:>7}"
    figures = (median(waits), percentile(waits), max(waits))
    return f"{name:22}{len(waits):>7}" + "".join(f"{1000 * figure:>9.0f}" for figure in figures)


# Visitors ----------------------------------------------------------------------------------------


async def warm(server: AppServer) -> None:
    """Open every view of every page once, as the first visitors of the day do."""
    async with visiting(server) as visit:
        await visit.open("", {})
        for info in CATALOGUE.existing():
            await visit.open(_path(info), {})
            for name in info.parameters:
                control = visit.controls.get(name)
                if control is not None and control.kind == "button_group":
                    for state in control.states():
                        await visit.change(state)


async def crowd(
    server: AppServer, visitors: int, seconds: float, thinking: float, seed: int
) -> Waits:
    """Let visitors come in over one thinking time, and act until the time is over."""
    waits = Waits()
    end = time.perf_counter() + thinking + seconds
    tasks = [
        _visitor(server, waits, random.Random(f"{seed}/{number}"), end, thinking)
        for number in range(visitors)
    ]
    await asyncio.gather(*tasks)
    return waits


async def _visitor(
    server: AppServer, waits: Waits, rng: random.Random, end: float, thinking: float
) -> None:
    await asyncio.sleep(rng.uniform(0, thinking))
    async with visiting(server) as visit:
        info = rng.choice(CATALOGUE.existing())
        waits.opened.append(await visit.open("", _link(rng)))
        await visit.go_to(_path(info))
        while True:
            await asyncio.sleep(rng.uniform(0.5, 1.5) * thinking)
            if time.perf_counter() > end:
                break
            if rng.random() < _SWITCHES:
                info = rng.choice(CATALOGUE.existing())
                wait = await visit.go_to(_path(info))
                waits.switched.setdefault(info.url_path, []).append(wait)
            else:
                wait = await _change(visit, info, rng)
                waits.changed.setdefault(info.url_path, []).append(wait)
        waits.failures += [f"{info.url_path}: {text}" for text in visit.exceptions]


async def _change(visit: Visit, info: PageInfo, rng: random.Random) -> float:
    names = [name for name in (*_SHARED, *info.parameters) if name in visit.controls]
    states = [state for name in names for state in visit.controls[name].states()]
    return await visit.change(rng.choice(states))


def _path(info: PageInfo) -> str:
    return "" if info is CATALOGUE.existing()[0] else info.url_path


def _link(rng: random.Random) -> dict[str, str]:
    return {"policy": rng.choice(("greedy", "sample")), "prompt": rng.choice(PROMPTS)}


def _parser() -> argparse.ArgumentParser:
    about, _, examples = (__doc__ or "").partition("\nExamples:\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.app_visitors",
        description=about,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--visitors", type=int, default=50, help=f"at most {MOST_VISITORS}")
    parser.add_argument("--seconds", type=float, default=60, help=f"at most {MOST_SECONDS}")
    parser.add_argument("--thinking", type=float, default=5, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=0, help="of what the visitors do")
    return parser


if __name__ == "__main__":
    sys.exit(main())
