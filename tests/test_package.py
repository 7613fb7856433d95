"""What is published: the names, the size and the contents of the wheel, the pins."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

import mcp_memory

ROOT = Path(__file__).resolve().parent.parent
LARGEST_WHEEL = 41_000_000
LARGEST_MODEL = 46_000_000
SOURCES = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "mcp_memory").rglob("*.py")]
MODULES = sorted(".".join(path.parts).removesuffix(".__init__") for path in SOURCES if path.name != "__main__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel as the build backend makes it, offline."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = folder.glob("*.whl")
    return zipfile.Path(path)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports(name: str) -> None:
    import_module(name)


def test_the_package_says_what_it_offers() -> None:
    assert mcp_memory.__all__ == sorted(mcp_memory.__all__)


def test_the_version_is_the_one_that_was_installed() -> None:
    assert mcp_memory.__version__ == version("memory-pyramid")


@pytest.mark.parametrize("command", ["mcp-memory", "memory-pyramid"])
def test_the_console_script_is_installed_under_its_name_and_that_of_the_distribution(command: str) -> None:
    [script] = entry_points(group="console_scripts", name=command)
    assert callable(script.load())


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_data_file_of_the_package(wheel: zipfile.Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "mcp_memory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [name for name in tracked.stdout.splitlines() if not wheel.joinpath(name).is_file()] == []


@pytest.mark.slow
def test_the_wheel_brings_the_embedding_model_with_its_licence_and_stays_small(wheel: zipfile.Path) -> None:
    model = {path.name: len(path.read_bytes()) for path in wheel.joinpath("mcp_memory/models/embed/model").iterdir()}
    assert {"NOTICE", "config.json", "model.safetensors", "tokenizer.json"} <= set(model)
    assert sum(model.values()) <= LARGEST_MODEL
    assert Path(str(wheel.root.filename)).stat().st_size <= LARGEST_WHEEL


@pytest.mark.slow
def test_the_wheel_holds_nothing_but_the_package_and_its_metadata(wheel: zipfile.Path) -> None:
    tops = {path.name for path in wheel.iterdir()}
    assert tops == {"mcp_memory", f"memory_pyramid-{version('memory-pyramid')}.dist-info"}


def test_every_pin_is_a_name_and_a_version_and_none_brings_a_training_framework() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin)] == []
    assert {pin.partition("==")[0].lower() for pin in pins} & {"torch", "tensorflow", "jax"} == set()
