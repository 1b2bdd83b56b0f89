"""The benchmark's own parts, without the peers: turns, medians, verdicts and the report."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ours
from benchmarks.__main__ import TARGET_MISSED, main, verdict
from benchmarks.environment import child_environment, machine
from benchmarks.groups import GROUPS
from benchmarks.rows import Row, compared, seconds, table
from benchmarks.timing import CPU, Job, Timing, interleave
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.equivalence import verify_prefixes

SMALL = ModelConfig(vocab_size=11, n_positions=13, n_embd=6, n_layer=3, n_head=2, n_inner=7)


def row_with(ours_seconds: float, peer_seconds: float | None, target: float | None) -> Row:
    peers = {} if peer_seconds is None else {"sdpa": Timing((peer_seconds,))}
    return compared("some work", Timing((ours_seconds,)), peers, target, 1, CPU, ("ours: f()",))


class FakeClock:
    """Each call to `spend` moves the time on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def __call__(self) -> float:
        return self.now

    def spend(self, name: str, *durations: float) -> Job:
        left = list(durations)

        def run() -> None:
            self.log.append(name)
            self.now += left.pop(0)

        return Job(run, 2, lambda: self.log.append(f"prepare {name}"))


def test_jobs_take_turns_and_the_first_run_of_each_is_not_counted():
    clock = FakeClock()
    jobs = {"a": clock.spend("a", 100, 2, 4, 60), "b": clock.spend("b", 100, 8, 10, 12)}
    found = interleave(jobs, 3, clock)
    assert [name for name in clock.log if "prepare" not in name] == list("abababab")
    assert clock.log[:2] == ["prepare a", "a"]
    # two units of work per run: half the seconds; preparing is not timed
    assert found["a"].samples == (1, 2, 30)
    assert found["b"].samples == (4, 5, 6)
    assert found["a"].median == 2  # one disturbed sample does not move it


def test_quartiles_of_five_samples_are_the_second_and_the_fourth():
    assert Timing((5.0, 1.0, 3.0, 2.0, 4.0)).quartiles == (2.0, 4.0)
    assert Timing((7.0,)).quartiles == (7.0, 7.0)


def test_the_faster_setting_of_the_peer_counts():
    peers = {"eager": Timing((9.0, 9.0, 9.0)), "sdpa": Timing((1.0, 6.0, 8.0))}
    row = compared("work", Timing((2.0,)), peers, 3.5, 1, CPU, ())
    assert (row.setting, row.peer, row.ratio, row.met) == ("sdpa", 6.0, 3.0, False)


@pytest.mark.parametrize(
    ("peer", "target", "met", "code"),
    [
        (12.0, 6.0, True, 0),  # exactly the target
        (11.99, 6.0, False, TARGET_MISSED),
        (1.0, None, None, 0),
        (None, 6.0, None, 0),
    ],
)
def test_a_missed_target_fails_and_a_row_without_one_does_not(peer, target, met, code):
    row = row_with(2.0, peer, target)
    assert row.met is met
    assert verdict([row_with(1.0, 100.0, 6.0), row]) == code


def test_table_shows_both_sides_the_ratio_and_the_verdict():
    text = table(
        [row_with(50e-6, 400e-6, 6.0), row_with(2e-3, 3e-3, 6.0), row_with(1.5, None, None)]
    )
    lines = text.splitlines()
    figures = ["1", "cpu", "50", "us", "400", "us", "sdpa", "8.00", "x", "6", "x", "met"]
    assert lines[1].split()[-12:] == figures
    assert lines[2].endswith("NOT MET")
    assert "1.5 s" in lines[3]
    assert "1  ours: f()" in lines


@pytest.mark.parametrize(
    ("value", "text"), [(4.56e-5, "45.6 us"), (1e-3, "1 ms"), (0.0213, "21.3 ms"), (2.5, "2.5 s")]
)
def test_times_come_in_the_unit_that_suits_them(value, text):
    assert seconds(value) == text


def test_child_lets_blas_choose_its_kernel_and_limits_its_threads():
    outer = {"PATH": "/bin", "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "9"}
    inner = child_environment(outer, 2)
    assert inner["PATH"] == "/bin"
    assert "OPENBLAS_CORETYPE" not in inner
    assert inner["OPENBLAS_NUM_THREADS"] == inner["OMP_NUM_THREADS"] == "2"
    assert "OPENBLAS_CORETYPE" in outer


def test_machine_names_what_timings_depend_on():
    about = machine()
    assert about["numpy"] == np.__version__
    assert {"processor", "cores", "load", "python"} <= set(about)


def test_our_jobs_do_the_work_they_are_named_for():
    checkpoint = ours.random_checkpoint(SMALL)
    job = ours.decode_context(checkpoint, (0, 1, 2), passes=5)
    assert job.units == 15
    job.run()
    decoder = ours.GreedyDecoder(checkpoint, (1, 2, 3), 7)
    job = decoder.job()
    assert job.prepare is not None
    job.prepare()
    assert len(decoder.token_ids) == 1
    job.run()
    assert len(decoder.token_ids) == 8
    assert job.units == 7


def test_a_context_that_is_too_short_is_refused_in_the_timed_call_too():
    job = ours.GreedyDecoder(ours.random_checkpoint(SMALL), (1, 2, 3), 11).job()
    assert job.prepare is not None
    job.prepare()
    with pytest.raises(RuntimeError, match="consumed inputs"):
        job.run()


def test_the_timed_equivalence_must_pass(monkeypatch):
    ours.verify(load_checkpoint(), every_split=False, side_by_side=True, passes=2).run()
    strict = partial(verify_prefixes, tolerance=1e-12)
    monkeypatch.setattr(ours, "verify_prefixes", strict)
    with pytest.raises(RuntimeError, match="of 16 prefixes pass"):
        ours.verify(load_checkpoint(), every_split=False, side_by_side=True, passes=1).run()


def test_gpt2_small_has_the_published_number_of_parameters():
    assert ours.GPT2_SMALL.parameter_count() == 124_439_808
    assert ours.gigabytes(ours.GPT2_SMALL) == pytest.approx(0.4978, abs=1e-4)


def test_without_the_peers_one_line_says_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.__main__.installed", lambda name: name != "torch")
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "expected torch, found none" in captured.err


def test_frozen_group_runs_without_the_peers(repository: Path, tmp_path: Path):
    out = tmp_path / "bench.json"
    command = [sys.executable, "-m", "benchmarks", "--ours-only", "--quick", "--group", "frozen"]
    done = subprocess.run(
        [*command, "--json", str(out)],
        cwd=repository, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "decode step, frozen model" in done.stdout
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 4
    assert all(row["ours"] > 0 and row["peer"] is None and row["met"] is None for row in rows)


def test_a_time_beyond_its_limit_is_not_met():
    row = compared("t", Timing((0.5, 0.6, 0.7)), {}, None, 1, "cpu", ())
    assert row.met is None
    assert replace(row, limit=1.0).met is True
    assert replace(row, limit=0.55).met is False
    assert "at most 550 ms" in table([replace(row, limit=0.55)])
    assert "NOT MET" in table([replace(row, limit=0.55)])


def test_the_lab_group_times_the_matrix_and_all_layouts():
    found = GROUPS["lab"](1, True, False)
    assert [row.limit for row in found] == [2.0, None, None, None]
    assert [row.target for row in found] == [None, 10.0, 10.0, 10.0]
    assert all(row.ours > 0 for row in found)
    assert "42 faults" in found[0].title
