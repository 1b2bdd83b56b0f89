"""The evidence page through AppTest."""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from pathlib import Path

import pytest

from tests.app.page_checks import html, open_page, sound, take_downloads
from tests.random_models import random_checkpoint
from tinydec.__main__ import main
from tinydec.evidence.audit import run_audit
from tinydec.evidence.registry import TABLES
from tinydec.evidence.replay import read_bundle, replay_bundle
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.filterwarnings("default")

FROZEN = load_checkpoint()


def unpacked(data: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return folder / "tinydec-evidence"


def command_of(drawn: str) -> list[str]:
    """The audit command on the page, as a shell would split it."""
    line = re.search(r"python -m tinydec (audit[^<]*)<", drawn)
    assert line is not None
    return shlex.split(line.group(1).replace("&lt;", "<").replace("&gt;", ">").replace(
        "&#x27;", "'"))  # fmt: skip


def test_page_has_a_contract_a_picture_tables_and_an_exercise() -> None:
    app = open_page("evidence")
    sound(app)
    drawn = html(app)
    assert drawn.count('class="td-contract"') == 1
    assert "5 of 5 conditions hold" in drawn
    assert "Look for:" in drawn
    assert len(app.get("plotly_chart")) == 1
    assert "python -m tinydec replay tinydec-evidence" in drawn
    assert "What a replay accepts" in [h.value for h in app.header]


def test_five_conditions_stand_with_their_figures() -> None:
    drawn = html(open_page("evidence"))
    table = re.search(r"<caption>Acceptance conditions.*?</table>", drawn, re.DOTALL)
    assert table is not None
    for condition in run_audit(FROZEN).gate:
        assert condition.measure in table.group()
    assert table.group().count("✓ yes") == 5
    assert "160" in table.group()


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"dtype": "float64", "prompt": "<bos> X", "seed": "7"},
        {"policy": "sample", "temperature": "0.7", "top_p": "0.9", "tolerance": "2e-06"},
    ],
)
def test_zip_is_the_command_lines_bundle_and_replays(
    query: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    taken = take_downloads(monkeypatch)
    app = open_page("evidence", query)
    sound(app)
    data = taken["tinydec-evidence.zip"]()
    assert data == taken["tinydec-evidence.zip"]()
    folder = unpacked(data, tmp_path)
    command = command_of(html(app))
    command[command.index("tinydec-evidence")] = str(tmp_path / "written")
    assert main(command) in (0, 1)
    written = read_bundle(tmp_path / "written")
    assert read_bundle(folder) == written
    assert main(["replay", str(folder)]) == 0


def test_another_run_gives_another_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    open_page("evidence")
    before = taken["tinydec-evidence.zip"]()
    open_page("evidence", {"seed": "1"})
    assert taken["tinydec-evidence.zip"]() != before


def test_a_changed_cell_does_not_replay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = take_downloads(monkeypatch)
    open_page("evidence")
    files = read_bundle(unpacked(taken["tinydec-evidence.zip"](), tmp_path))
    files["stops.csv"] = files["stops.csv"].replace(b",eos", b",context", 1)
    assert not replay_bundle(files).passed


@pytest.mark.parametrize("file", TABLES)
def test_every_table_can_be_read_and_downloaded(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    app = open_page("evidence", {"ev_table": file})
    sound(app)
    assert taken[file]() == TABLES[file].csv(run_audit(FROZEN))
    rows = taken[file]().count(b"\n") - 1
    shown = re.search(rf"<caption>{re.escape(file)}, .*?</table>", html(app), re.DOTALL)
    assert shown is not None
    assert shown.group().count("<tr>") - 1 == min(rows, 50)


def test_the_last_part_of_a_long_table_is_its_last_rows() -> None:
    app = open_page("evidence", {"ev_table": "prefix_logits.csv"})
    slider = app.slider(key="_ev.part.prefix_logits.csv")
    assert slider.max == 6
    slider.set_value(6).run()
    sound(app)
    assert "rows 251 to 256 of 256" in html(app)


def test_manifest_names_the_digest_and_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    app = open_page("evidence", {"ev_view": "Manifest"})
    sound(app)
    drawn = html(app)
    assert FROZEN.digest in drawn
    for file in TABLES:
        assert file in drawn
    assert FROZEN.digest.encode() in taken["manifest.json"]()


def test_a_tolerance_below_the_noise_breaks_the_gate() -> None:
    drawn = html(open_page("evidence", {"tolerance": "1e-09"}))
    assert "5 of 5" not in drawn
    assert "✗ no" in drawn


def test_an_uploaded_checkpoint_has_its_own_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    own = random_checkpoint(ModelConfig(5, 3, 4, 1, 2, 7), 1, "float32")
    save_checkpoint(own, tmp_path / "own.safetensors")
    taken = take_downloads(monkeypatch)
    app = open_page("evidence", uploaded=own)
    sound(app)
    folder = unpacked(taken["tinydec-evidence.zip"](), tmp_path)
    command = command_of(html(app))
    command[command.index("tinydec-evidence")] = str(tmp_path / "written")
    command[command.index("own.safetensors")] = str(tmp_path / "own.safetensors")
    assert main(command) in (0, 1)
    assert read_bundle(folder) == read_bundle(tmp_path / "written")


OTHERS = {
    "one layer, one position": ModelConfig(2, 1, 2, 1, 1, 3),
    "too large to write down": ModelConfig(251, 64, 60, 6, 5, 300),
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_checkpoint_of_the_architecture_has_its_page(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take_downloads(monkeypatch)
    app = open_page("evidence", uploaded=random_checkpoint(OTHERS[name], 3, "float32"))
    sound(app)
    assert ("tinydec-evidence.zip" in taken) == (name == "one layer, one position")
    assert "--checkpoint own.safetensors" in html(app)


@pytest.mark.parametrize("query", [{"ev_table": "x"}, {"ev_view": ""}, {"ev_view": "y"}])
def test_junk_in_the_url_gives_the_page(query: dict[str, str]) -> None:
    sound(open_page("evidence", query))
