"""What tests of hooks share."""

from __future__ import annotations

import pytest

from mcp_memory.integrations.clients.description import client_names, describe


@pytest.fixture(autouse=True, scope="session")
def _read_descriptions() -> None:
    """Read the descriptions of clients before any event loop runs; the daemon parses events in a thread."""
    for name in client_names():
        describe(name)
