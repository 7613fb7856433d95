"""The server as a person starts it, and servers on HTTP that live as long as the tests of a module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.peers.processes import serving


@pytest.fixture(scope="session")
def server_command() -> list[str]:
    """The console script of this environment: what a client's configuration names."""
    return [str(Path(sys.executable).with_name("mcp-memory")), "serve"]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Sequence[str]], str]]:
    """Start a server; the answer is the address of its MCP endpoint."""
    with ExitStack() as running:

        def start(command: Sequence[str]) -> str:
            return running.enter_context(serving(command, tmp_path_factory.mktemp("server")))

        yield start
