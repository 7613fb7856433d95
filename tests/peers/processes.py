"""Starting and stopping the programs of the peer tests: servers until their port is open, peers to their end."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.install_peers import Peer, node_environment

READY_WITHIN = 30  # seconds from spawn to an open port, on a busy machine


def run_peer(peer: Peer, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a peer's command to its end; its exit code is the caller's to judge."""
    assert peer.installed, f"{peer.package} {peer.version} is not installed: run `make peers`"
    return subprocess.run(
        [*peer.command, *arguments],
        cwd=cwd,
        env=node_environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
        check=False,
    )


@contextmanager
def serving(command: Sequence[str], folder: Path) -> Iterator[str]:
    """Run `command --port N` in `folder` and yield the address of its MCP endpoint once that answers."""
    port = _free_port()
    log = folder / "server.log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=folder,
            env={**os.environ, "MCP_MEMORY_HOME": str(folder / "home")},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        _wait_until_open(port, server, log)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _wait_until_open(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            try:
                server.wait(timeout=0.05)  # the pause, and the end if the server died
            except subprocess.TimeoutExpired:
                continue
            break
    state = "did not open its port" if server.returncode is None else f"ended with {server.returncode}"
    pytest.fail(f"the server {state}:\n{log.read_text(errors='replace')}")
