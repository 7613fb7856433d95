"""Starting and stopping the programs of the peer tests: servers until they name their address, peers to their end."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

import pytest

from scripts.install_peers import Peer, node_environment

READY_WITHIN = 30  # seconds from spawn to a server that listens, on a busy machine
STOPPED_WITHIN = 10


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
    """Run a server in `folder` and yield the address that it says it listens on."""
    server = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "MCP_MEMORY_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    said: list[str] = []
    address: SimpleQueue[str | None] = SimpleQueue()
    listener = Thread(target=_listen, args=(server.stderr, said, address))
    listener.start()
    try:
        yield _wait_for(address, said)
    finally:
        server.terminate()
        try:
            server.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        listener.join()
        server.stderr.close()


def _listen(stderr: IO[str], said: list[str], address: SimpleQueue[str | None]) -> None:
    for line in stderr:
        said.append(line)
        if named := re.search(r"listens on (\S+)", line):
            address.put(named[1])
    address.put(None)


def _wait_for(address: SimpleQueue[str | None], said: list[str]) -> str:
    try:
        url = address.get(timeout=READY_WITHIN)
    except Empty:
        url = None
    if url is None:
        pytest.fail(f"the server does not listen; it said:\n{''.join(said)}")
    return url
