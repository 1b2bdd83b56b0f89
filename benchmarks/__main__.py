"""Time the decoder beside its peer, in one run: ``make bench``, or ``python -m benchmarks``.

The peer is Hugging Face GPT-2 with the same weights, in evaluation mode under
``torch.inference_mode`` with a ``DynamicCache``; both of its CPU attention implementations are
timed and the faster one counts. ``benchmarks/requirements.txt`` holds it, and ``make bench``
installs it into an environment of its own.

What is compared, and how many times as fast as the peer the decoder has to be:

- a decode step of the frozen model, one thread: 6 times;
- the equivalence of the 16 prefixes with everything recorded, side by side, against the plain
  loop that keeps final logits alone, one thread: 6 times (batched against batched and one by one
  against one by one are printed too);
- a decode step of a model with the sizes of GPT-2 small (124 million random float32 weights),
  one and two threads: 1.2 times.

- a batch of 64 rows of the frozen model, in each layout, against the same requests one by one:
  10 times the throughput (here the peer is this project's own solo run).

The whole kill matrix, 42 faults on the frozen checkpoint, may take 2 seconds. Two more rows have
no peer: the equivalence in full (40 rows) and an audit end to end.

Every figure is the median of repetitions in which both sides take turns. On one thread the
clock counts processor time, which does not depend on how busy the machine is; with more threads,
and for the audit, it is wall time. Each group runs in a process of its own, in which BLAS picks
its kernel itself.

Exit codes: 0 every target is met, 1 one is missed, 2 the peer is not installed.

Examples:
    python -m benchmarks
    python -m benchmarks --json bench.json
    python -m benchmarks --ours-only --quick --group frozen
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.environment import blas_kernels, child_environment, installed, machine
from benchmarks.rows import Row, table

TARGET_MISSED = 1
NO_PEER = 2

_PEER_PACKAGES = ("torch", "transformers")
_RUNS = (("frozen", 1), ("gpt2-small", 1), ("gpt2-small", 2), ("alone", 1), ("lab", 1))
_TOP = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen groups, print the report and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.child is not None:
        print(json.dumps(_measure(options)))
        return 0
    missing = [name for name in (*_PEER_PACKAGES, "threadpoolctl") if not installed(name)]
    if missing and not options.ours_only:
        print(
            f"benchmarks: expected {missing[0]}, found none: run `make bench`, or leave the peer "
            "out with --ours-only",
            file=sys.stderr,
        )
        return NO_PEER
    results = [
        _run_group(options, group, threads)
        for group, threads in _RUNS
        if options.group in (None, group) and threads <= (os.cpu_count() or 1)
    ]
    rows = [_row(values) for result in results for values in result["rows"]]
    about = results[0]["machine"] | {
        f"{result['group']}, {result['threads']} thread(s)": result["blas"] for result in results
    }
    _print_report(about, rows)
    if options.json:
        _write_json(options.json, about, rows)
    return verdict(rows)


def verdict(rows: Sequence[Row]) -> int:
    """Return the exit code: 1 when a target is missed."""
    return TARGET_MISSED if any(row.met is False for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    about, _, examples = (__doc__ or "").partition("\nExamples:\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=about,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = sorted({group for group, _ in _RUNS})
    parser.add_argument("--group", choices=groups, help="run one group alone")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("--ours-only", action="store_true", help="leave the peer out")
    parser.add_argument("--quick", action="store_true", help="few repetitions, for a first look")
    parser.add_argument("--child", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    return parser


def _run_group(options: argparse.Namespace, group: str, threads: int) -> dict[str, Any]:
    """Run a group in a process of its own and return what it measured."""
    print(f"timing {group} on {threads} thread(s) ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks", "--group", group, "--child", str(threads)]
    command += [flag for flag in ("--quick", "--ours-only") if getattr(options, _name(flag))]
    done = subprocess.run(
        command,
        cwd=_TOP,
        env=child_environment(os.environ, threads),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.groups import GROUPS

    rows = GROUPS[options.group](options.child, options.quick, not options.ours_only)
    about = machine()
    if not options.ours_only:
        from benchmarks.peer import versions

        about |= versions()
    return {
        "group": options.group,
        "threads": options.child,
        "machine": about,
        "blas": blas_kernels() if installed("threadpoolctl") else "unknown",
        "rows": [asdict(row) for row in rows],
    }


def _row(values: dict[str, Any]) -> Row:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Row(**fields)


def _print_report(about: dict[str, str], rows: Sequence[Row]) -> None:
    for name, value in about.items():
        print(f"{name}: {value}")
    print()
    print(table(rows))


def _write_json(path: str, about: dict[str, str], rows: Sequence[Row]) -> None:
    values = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    text = json.dumps({"machine": about, "rows": values}, indent=2) + "\n"
    Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
