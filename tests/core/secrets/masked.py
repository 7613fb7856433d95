"""What is stored of a text, as the tests of secrets look at it."""

from __future__ import annotations

from mcp_memory.core.secrets.masking import mask, mask_result


def stored_result(text: str) -> str:
    """Return what is stored of a tool's result."""
    return mask_result(text.encode())[0].decode()


def stored(text: str) -> set[str]:
    """Return what is stored of a text: as a message, and as a tool's result."""
    return {mask(text), stored_result(text)}
