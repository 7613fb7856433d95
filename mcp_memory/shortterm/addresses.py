"""The address of a result or a canvas: a file in the folder of its space, else the URI of a resource.

A memory in PostgreSQL has no files; clients get no path that they cannot open.
"""

from __future__ import annotations

from mcp_memory.shortterm.canvas.flowchart import padded
from mcp_memory.store.protocol import Store


def ref_address(store: Store, id: str, path: str) -> str:
    return path if store.has_files else f"memory://ref/{id}"


def canvas_address(store: Store, number: int, label: str) -> str:
    return mmd_path(number, label) if store.has_files else canvas_uri(number)


def canvas_uri(number: int) -> str:
    return f"memory://canvas/{padded(number)}"


def mmd_path(number: int, label: str) -> str:
    """Return where a canvas is, within the folder of its space."""
    return f"mmds/{padded(number)}-{label}.mmd"
