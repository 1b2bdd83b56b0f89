"""The shipped presets load whole; every kind of bad row is refused with row and column."""

import csv
import io
from pathlib import Path

import pytest

from tinydec.errors import InputError
from tinydec.memory import PRESETS_FILE, find_preset, load_presets
from tinydec.memory.presets import COLUMNS

GOOD = {
    "name": "Tiny, the first",
    "attention": "sliding",
    "global_layers": "2",
    "window_layers": "3",
    "window": "7",
    "query_heads": "6",
    "kv_heads": "2",
    "head_dim": "5",
    "latent_dim": "",
    "max_context": "101",
    "dtype": "float16",
    "verified": "yes",
    "notes": "a, note",
    "source": "a paper",
}


def write(path: Path, *rows: dict[str, str], header: tuple[str, ...] = COLUMNS) -> Path:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([row[column] for column in COLUMNS] for row in rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def test_every_row_of_the_shipped_file_is_loaded_as_written() -> None:
    with PRESETS_FILE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    presets = load_presets()
    assert list(presets) == [row["name"] for row in rows]
    assert len(rows) >= 30
    for row in rows:
        layout = presets[row["name"]]
        for column, text in row.items():
            value = getattr(layout, column)
            if column == "verified":
                assert value is (text == "yes")
            else:
                assert ("" if value is None else str(value)) == text


def test_presets_not_verified_are_marked() -> None:
    presets = load_presets()
    assert {layout.verified for layout in presets.values()} == {True, False}
    for layout in presets.values():
        assert layout.label.endswith("(not verified)") is not layout.verified
        assert layout.source != ""


def test_the_mapping_of_presets_is_read_only() -> None:
    presets = load_presets()
    with pytest.raises(TypeError):
        presets["x"] = presets["GPT-2 small"]  # type: ignore[index]


def test_a_good_file_loads(tmp_path: Path) -> None:
    presets = load_presets(write(tmp_path / "p.csv", GOOD, GOOD | {"name": "Other"}))
    assert list(presets) == ["Tiny, the first", "Other"]
    assert presets["Other"].notes == "a, note"
    assert load_presets(str(tmp_path / "p.csv")) == presets


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(load_presets(path)) == ["Tiny, the first"]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("name", ""),
        ("name", "first"),  # used before
        ("name", "FIRST"),  # used before, but for its case
        ("attention", "MHA"),
        ("attention", ""),
        ("attention", "mha"),  # contradicts the window layers
        ("global_layers", ""),
        ("global_layers", "2.0"),
        ("global_layers", "-2"),
        ("global_layers", " 2"),
        ("global_layers", "٢"),
        ("global_layers", "1e1"),
        ("global_layers", "9" * 5000),
        ("window_layers", "0"),
        ("window", ""),
        ("window", "0"),
        ("query_heads", "5"),  # not a multiple of 2
        ("query_heads", "0"),
        ("kv_heads", ""),
        ("kv_heads", "two"),
        ("head_dim", ""),
        ("head_dim", "0"),
        ("latent_dim", "3"),
        ("max_context", "0"),
        ("max_context", ""),
        ("dtype", "half"),
        ("dtype", ""),
        ("verified", "maybe"),
        ("verified", "True"),
        ("source", "  "),
    ],
)
def test_a_bad_cell_is_refused_by_row_and_column(tmp_path: Path, column: str, text: str) -> None:
    first = GOOD | {"name": "first"}
    path = write(tmp_path / "p.csv", first, GOOD | {column: text})
    with pytest.raises(InputError) as caught:
        load_presets(path)
    message = str(caught.value)
    blamed = {("attention", "mha"): "window_layers", ("query_heads", "5"): "kv_heads"}
    assert message.startswith("p.csv, row 3")
    assert f"column {blamed.get((column, text), column)}: expected " in message
    assert ", found " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "row 1: expected columns name,attention,.*found an empty file"),
        (",".join(COLUMNS) + "\n", "at least one model, found the header alone"),
        (",".join(COLUMNS[:-1]) + "\n", "row 1: expected columns"),
        (",".join(reversed(COLUMNS)) + "\n", "row 1: expected columns"),
        (",".join(COLUMNS) + "\nGPT,mha,12\n", "row 2.*expected 14 cells, found 3"),
        (",".join(COLUMNS) + "\n" + "x," * 14 + "x\n", "row 2.*expected 14 cells, found 15"),
        (",".join(COLUMNS) + "\n\n", "row 2.*expected 14 cells, found 0"),
        (",".join(COLUMNS) + '\n"open', "expected a UTF-8 CSV file of presets"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        load_presets(path)
    assert "\n" not in str(caught.value)


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.csv: expected a UTF-8 CSV file"):
        load_presets(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="expected a UTF-8 CSV file"):
        load_presets(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"name,\xe9\n")
    with pytest.raises(InputError, match=r"latin.csv: .* found: UnicodeDecodeError"):
        load_presets(tmp_path / "latin.csv")


def test_a_preset_is_found_in_upper_or_lower_case() -> None:
    presets = load_presets()
    assert find_preset("llama-2-7b", presets) is presets["Llama-2-7B"]
    assert find_preset(" GPT-2 small ", presets) is presets["GPT-2 small"]


@pytest.mark.parametrize("name", ["GPT-5", "", "Llama-2", None, 7])
def test_an_unknown_model_lists_the_valid_names(name: str) -> None:
    presets = load_presets()
    with pytest.raises(InputError, match="model: expected one of ") as caught:
        find_preset(name, presets)
    assert all(valid in str(caught.value) for valid in presets)
    assert str(caught.value).endswith(f"found {name!r}")
