"""Home through AppTest: the loop, the verdicts, published beside measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.lesson_page import odd_checkpoints, open_page, sound, texts
from tinydec import ui
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.registry import TABLES
from tinydec.figures.log_axis import short
from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.html import digits

pytestmark = pytest.mark.filterwarnings("default")

PAGE = "pages/home.py"


def visit(repository: Path, upload: Checkpoint | None = None, /, **query: str) -> AppTest:
    return open_page(repository, PAGE, query, upload)


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return run_audit(load_checkpoint())


def button(app, label: str):
    return next(b for b in app.button if b.label == label)


def cards(app) -> str:
    """The figures and verdicts of the cards."""
    return "".join(e.proto.body for e in app.get("html") if 'class="td-card ' in e.proto.body)


def flow(app) -> str:
    return next(e.proto.body for e in app.get("html") if 'class="td-flow"' in e.proto.body)


def test_first_view_says_what_this_is_and_where_to_start(repository: Path) -> None:
    app = visit(repository)
    sound(app)
    shown = texts(app)
    assert "368 numbers, 8 tokens, 4 positions" in shown
    assert len(app.get("plotly_chart")) == 1
    labels = [link.proto.label for link in app.get("page_link")]
    assert labels[0] == "Start the lessons →"
    assert any(label.startswith("**1 Generation loop**: Start here") for label in labels)


def test_step_run_and_reset_move_the_shared_step(repository: Path) -> None:
    app = visit(repository)
    assert button(app, "Reset").disabled
    button(app, "Step").click().run()
    assert app.session_state["step"] == 1
    assert "B leads" in flow(app)
    button(app, "Run to end").click().run()
    assert app.session_state["step"] == 3
    assert button(app, "Step").disabled
    assert "The run stops with `eos`" in texts(app)
    button(app, "Reset").click().run()
    assert app.session_state["step"] == 0
    assert "A leads" in flow(app)
    sound(app)


def test_flow_extends_the_prefix_by_the_selected_token(repository: Path) -> None:
    trace = generate(load_checkpoint(), RunSpec())
    tokens = load_checkpoint().vocabulary.tokens
    for step in trace.steps:
        shown = flow(visit(repository, step=str(step.index)))
        extended = shown.split("Extended prefix</p>")[1]
        assert extended.count("<li>") == step.length_after + 1
        assert f'td-chip returned" title="{tokens[step.returned_id]}' in extended.replace(
            "&lt;", "<"
        ).replace("&gt;", ">")


def test_cards_show_the_audit_and_link_to_its_pages(repository: Path, report: AuditReport) -> None:
    app = visit(repository)
    shown = cards(app)
    assert "16 of 16" in shown
    assert digits(report.equivalence.max_abs_error, 3) in shown
    for name in ("positions-reset", "wrong-layer"):
        found = [f for f in report.failures if f.fault.name == name and f.cannot_act is None]
        assert digits(max(f.result.max_abs_error for f in found), 3) in shown
        acted = f"rejected on {len(found)} of {len(found)}"
        everywhere = len(found) == len(report.equivalence.prefixes)
        assert (f"{acted}</div>" if everywhere else f"{acted} longer than one token") in shown
    assert "256 bytes" in shown
    assert any(m.value.startswith("6 checks on this model") for m in app.markdown)
    assert shown.count('class="td-card good"') == 6
    links = {link.proto.label: link.proto.page for link in app.get("page_link")}
    assert links["Largest error"] == "equivalence"
    assert links["Wrong layer's cache"] == "fault_lab"
    assert links["Cache at 4 tokens"] == "memory"


def test_tolerance_below_the_noise_turns_the_cards(repository: Path) -> None:
    app = visit(repository, tolerance="1e-16")
    shown = cards(app)
    assert "beyond 1e−16" in shown
    assert shown.count('class="td-card bad"') == 2  # prefixes passed, largest error


def test_published_stands_beside_measured(
    repository: Path, report: AuditReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(
        ui, "download", lambda label, data, name, *, key: taken.__setitem__(name, data)
    )
    shown = texts(visit(repository))
    for text in ("4.7684e−6", "23.0252", "&lt;bos&gt; Y X Y &lt;eos&gt;", "256 bytes"):
        assert text in shown
    assert short(report.equivalence.max_abs_error, 6) in shown
    assert shown.count("✓ same<") == 7
    assert shown.count("other weights<") == 3
    name = "published_vs_measured.csv"
    assert taken[name]() == TABLES[name].csv(report)


@pytest.mark.parametrize("name", list(odd_checkpoints()))
def test_other_checkpoints_have_a_home_too(repository: Path, name: str) -> None:
    app = visit(repository, odd_checkpoints()[name], dtype="float16", policy="sample")
    sound(app)
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize(
    "query",
    [
        {"prompt": "<bos> A B D"},
        {"cache": "false", "dtype": "float64", "step": "3"},
        {"policy": "sample", "temperature": "0.05", "top_k": "1", "top_p": "0.05"},
        {"policy": "sample", "temperature": "5", "seed": str(2**53 - 1)},
        {"max_new_tokens": "1", "stop_tokens": "A B"},
        {"step": "junk", "temperature": "1e400", "prompt": "Q"},
    ],
)
def test_ends_of_the_controls_give_a_page(repository: Path, query: dict[str, str]) -> None:
    sound(visit(repository, **query))
