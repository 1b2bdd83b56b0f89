"""The repository itself: its files, pins, commands and settings."""

import importlib.metadata
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIRED = (
    ".ci/run",
    ".gitignore",
    ".streamlit/config.toml",
    "Makefile",
    "README.md",
    "app.py",
    "assets/frozen.safetensors",
    "assets/kv_models.csv",
    "assets/published.json",
    "benchmarks/__main__.py",
    "benchmarks/requirements.txt",
    "constraints.txt",
    "pages/equivalence.py",
    "pyproject.toml",
    "requirements-test.txt",
    "requirements.txt",
    "tests",
    "tinydec/__init__.py",
    "tinydec/__main__.py",
)
REQUIREMENT_FILES = (
    "requirements.txt",
    "requirements-test.txt",
    "constraints.txt",
    "benchmarks/requirements.txt",
)
APP_PACKAGES = {"numpy", "pandas", "plotly", "pytest", "safetensors", "streamlit"}
SOURCE_SUFFIXES = {".css", ".js", ".py", ".sh", ".toml"}
LONGEST_SOURCE = 320
GENERATED = {".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__"}
# Home folders, this or that checkout, and folders beside the project.
MACHINE_PATHS = re.compile(
    r"/roo[t]/|/home/\w|/Users/\w|[A-Z]:\\Users|(?<![\w.])/wor[k]/|\.\./shared"
)


def tracked_files(repository: Path) -> list[Path]:
    """Files under version control, or all but generated ones where there is no git."""
    command = ["git", "-C", str(repository), "ls-files", "-z"]
    if (repository / ".git").exists() and shutil.which("git") is not None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            names = [name for name in done.stdout.split("\0") if name]
            return [repository / name for name in names if (repository / name).is_file()]
    return [
        path
        for path in repository.rglob("*")
        if path.is_file() and not any(p in GENERATED or p.startswith(".venv") for p in path.parts)
    ]


def pins(path: Path) -> Iterator[tuple[str, str]]:
    """(name, version) of each line of a requirements file that names a package."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.split(" #")[0].strip()
        if text and not text.startswith(("#", "-")):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)", text)
            if match is None:
                raise ValueError(f"{path.name}: expected NAME==VERSION, found {text!r}")
            yield canonicalize_name(match[1]), match[2]


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUIRED)
def test_required_file_is_there(repository: Path, name: str) -> None:
    assert (repository / name).exists()


def test_ci_script_is_executable_bash(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_no_tracked_file_names_a_place_on_one_machine(repository: Path) -> None:
    found = []
    for path in tracked_files(repository):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(repository)}: {m[0]}" for m in MACHINE_PATHS.finditer(text)]
    assert found == []


@pytest.mark.parametrize("place", ["/" + "root/x", "cd /" + "work/tree", "../" + "shared/seeds"])
def test_machine_path_pattern_finds_such_places(place: str) -> None:
    assert MACHINE_PATHS.search(place)
    assert not MACHINE_PATHS.search(
        "network/" + "work/step, shared/, homes/a, https://a.org/" + "work/x"
    )


def test_no_source_file_is_long(repository: Path) -> None:
    lengths = {
        str(path.relative_to(repository)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked_files(repository)
        if path.suffix in SOURCE_SUFFIXES or path.name in {"Makefile", "run"}
    }
    assert len(lengths) > 20
    assert {name: n for name, n in lengths.items() if n > LONGEST_SOURCE} == {}


# Requirements -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUIREMENT_FILES)
def test_every_requirement_is_pinned_exactly(repository: Path, name: str) -> None:
    found = list(pins(repository / name))
    assert found
    assert len(dict(found)) == len(found)


@pytest.mark.parametrize("line", ["numpy", "numpy>=2.4.6", "numpy==2.*", "numpy==2.4.6,<3"])
def test_loose_pin_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"# app\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected NAME==VERSION"):
        list(pins(tmp_path / "requirements.txt"))


def test_app_requirements_hold_the_app_alone(repository: Path) -> None:
    assert set(dict(pins(repository / "requirements.txt"))) == APP_PACKAGES


def test_test_requirements_start_with_those_of_the_app(repository: Path) -> None:
    lines = (repository / "requirements-test.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "-r requirements.txt"
    tools = set(dict(pins(repository / "requirements-test.txt")))
    assert not tools & {"torch", "transformers"}


def test_pins_agree_between_files(repository: Path) -> None:
    seen: dict[str, set[str]] = {}
    for name in REQUIREMENT_FILES:
        for package, version in pins(repository / name):
            seen.setdefault(package, set()).add(version)
    assert {package: found for package, found in seen.items() if len(found) > 1} == {}


def test_installed_packages_are_the_pinned_ones_down_to_the_last_dependency(
    repository: Path,
) -> None:
    pinned: dict[str, str] = {}
    for name in ("requirements.txt", "requirements-test.txt", "constraints.txt"):
        pinned |= dict(pins(repository / name))
    direct = list(dict(pins(repository / "requirements-test.txt"))) + sorted(APP_PACKAGES)
    installed: dict[str, str] = {}
    while direct:
        package = direct.pop()
        if package in installed:
            continue
        distribution = importlib.metadata.distribution(package)
        installed[package] = distribution.version
        for text in distribution.requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                direct.append(canonicalize_name(needed.name))
    assert installed == {package: pinned.get(package) for package in installed}


def test_package_itself_asks_for_numpy_and_safetensors_alone(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(text).name for text in project["dependencies"]} == {"numpy", "safetensors"}
    app = {Requirement(text).name for text in project["optional-dependencies"]["app"]}
    assert app == APP_PACKAGES - {"numpy", "safetensors"}
    for text in project["dependencies"] + project["optional-dependencies"]["app"]:
        requirement = Requirement(text)
        version = dict(pins(repository / "requirements.txt"))[requirement.name]
        assert requirement.specifier.contains(version)


# Commands ---------------------------------------------------------------------------------------


def test_commands_in_the_readme_exist(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\s*(?:\$ )?make ([a-z-]+)|`make ([a-z-]+)", readme, re.MULTILINE))
    targets = {a or b for a, b in named}
    assert {"run", "test"} <= targets
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    assert targets <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def test_streamlit_settings_fit_a_public_demo(repository: Path) -> None:
    text = (repository / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["enableXsrfProtection"] is True
    assert settings["server"]["enableCORS"] is True
    assert settings["server"]["maxUploadSize"] == 1
    assert settings["client"]["showErrorDetails"] == "none"
    # Hides the file names that a cold server lists; the app shows its own list by an option.
    assert settings["client"]["showSidebarNavigation"] is False
    assert "http" not in re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
