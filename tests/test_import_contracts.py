"""Which module may import which: the contracts in pyproject.toml hold, and a breach is seen."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT_ALONE = """
import sys
ALLOWED = {"numpy", "safetensors", "tinydec"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and top not in sys.stdlib_module_names:
            raise ImportError(f"refused: {name}")
sys.meta_path.insert(0, Refuse())
import MODULE
found = {"pandas", "plotly", "pyarrow", "streamlit", "torch", "transformers"} & set(sys.modules)
sys.exit(f"imported: {sorted(found)}" if found else 0)
"""
CORE = (
    "tinydec",
    "tinydec.corpus",
    "tinydec.errors",
    "tinydec.generation",
    "tinydec.memory",
    "tinydec.model",
    "tinydec.runspec",
    "tinydec.training",
    "tinydec.verification",
)


def import_alone(module: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Import a module where NumPy, safetensors and the standard library are all there is."""
    code = IMPORT_ALONE.replace("MODULE", module)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the import contracts of the tree in `folder`."""
    code = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True))"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def package_copy(repository: Path, tmp_path: Path) -> Path:
    """A folder with the package and pyproject.toml, to break."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(repository / "tinydec", tmp_path / "tinydec", ignore=ignore)
    shutil.copy(repository / "pyproject.toml", tmp_path)
    return tmp_path


def add_import(folder: Path, module: str, imported: str) -> None:
    """Append `import imported` to a module of the package in `folder`."""
    path = folder / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"\nimport {imported}\n")


@pytest.mark.parametrize("module", CORE)
def test_core_imports_with_numpy_and_safetensors_alone(repository: Path, module: str) -> None:
    done = import_alone(module, repository)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("imported", ["pandas", "streamlit"])
def test_further_dependency_of_the_core_is_detected(package_copy: Path, imported: str) -> None:
    add_import(package_copy, "tinydec", imported)
    done = import_alone("tinydec", package_copy)
    assert done.returncode == 1
    assert f"refused: {imported}" in done.stderr


def test_import_contracts_hold(repository: Path) -> None:
    done = lint_imports(repository)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("tinydec.model.config", "tinydec.generation", "Each floor imports only floors below it"),
        ("tinydec.figures", "tinydec.evidence", "Each floor imports only floors below it"),
        ("tinydec.__main__", "tinydec.ui", "The command line works without the page"),
        ("tinydec.verification", "pandas", "The core needs NumPy and safetensors alone"),
        ("tinydec.figures", "streamlit", "Figures and evidence know no Streamlit"),
        ("tinydec.model.full", "tinydec.model.cache", "The full forward knows no cache"),
        (
            "tinydec.model.decode",
            "tinydec.model.full",
            "The cached path never calls the full forward",
        ),
        (
            "tinydec.verification.scalar_loop",
            "tinydec.model.operations",
            "The scalar-loop oracle shares no arithmetic with what it judges",
        ),
        (
            "tinydec.verification.audit.checks",
            "tinydec.verification.lab.fault",
            "The audit knows nothing of faults",
        ),
    ],
)
def test_broken_import_contract_is_detected(
    package_copy: Path, module: str, imported: str, contract: str
) -> None:
    add_import(package_copy, module, imported)
    done = lint_imports(package_copy)
    assert done.returncode == 1, done.stdout
    assert re.search(rf"^{re.escape(contract)}\s+BROKEN", done.stdout, re.MULTILINE), done.stdout
