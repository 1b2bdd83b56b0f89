"""Files to write: what may be replaced, and what is refused before any work."""

import os
from pathlib import Path

import pytest

from tinydec.errors import InputError
from tinydec.model.output import check_file_output, write_whole
from tinydec.model.storage import load_checkpoint, save_checkpoint

posix = pytest.mark.skipif(os.name != "posix", reason="needs devices, pipes and symbolic links")


def refused(path: Path, words: str) -> None:
    """Both functions refuse the path in one line."""
    for act in (check_file_output, lambda place: write_whole(place, b"new")):
        with pytest.raises(InputError) as info:
            act(path)
        (line,) = str(info.value).splitlines()
        assert words in line


def test_new_file_and_old_file_are_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for data in (b"one", b"two"):
        assert check_file_output(path) == path
        write_whole(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_file_output(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@posix
def test_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    refused(path, "expected a file to write, found a device, pipe or socket")
    assert path.is_fifo()


@posix
def test_device_and_link_to_it_are_refused(tmp_path: Path) -> None:
    refused(Path(os.devnull), "found a device, pipe or socket")
    link = tmp_path / "link"
    link.symlink_to(os.devnull)
    refused(link, "found a device, pipe or socket")
    assert link.is_symlink()


@posix
def test_link_to_a_file_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    file.write_bytes(b"old")
    link.symlink_to(file)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


@posix
def test_links_to_nowhere_and_in_a_circle_are_refused(tmp_path: Path) -> None:
    lost, circle = tmp_path / "lost", tmp_path / "circle"
    lost.symlink_to(tmp_path / "none")
    circle.symlink_to(circle)
    refused(lost, "found a link to none")
    refused(circle, "expected a file to write, found")
    assert lost.is_symlink()


def test_read_only_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    path.chmod(0o444)
    refused(path, "found a read-only file")
    assert path.read_bytes() == b"old"


def test_directory_missing_folder_and_impossible_names_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "expected a file to write, found a directory")
    refused(tmp_path / "none" / "out", "expected a folder that can be written")
    refused(tmp_path / "a\0b", "expected a file to write, found: embedded null")
    refused(tmp_path / ("a" * 300), "expected a file to write, found: File name too long")


def test_name_as_long_as_the_system_allows_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


# Checkpoints ------------------------------------------------------------------------------------


def test_output_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file to write, found a directory"):
        save_checkpoint(load_checkpoint(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_output_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder that can be written, found No such"):
        save_checkpoint(load_checkpoint(), tmp_path / "none" / "a.safetensors")


def test_output_below_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"x")
    with pytest.raises(InputError, match="found Not a directory"):
        save_checkpoint(load_checkpoint(), path / "a.safetensors")


def test_interrupted_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def full_disk(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(InputError, match="found No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]
