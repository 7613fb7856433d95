"""A tool result as it may be kept: with its secrets masked, in the file too unless the user wants them there."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.core.secrets import mask_bytes
from mcp_memory.core.types import MaskedPlace

__all__ = ["Raw", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """What goes into the file of a ref, and what may be shown and indexed of it."""

    data: bytes
    masked: tuple[MaskedPlace, ...]
    """Where in `data` a mask stands for a secret; none where secrets are kept."""
    shown: bytes


def raw(data: bytes, *, keep_secrets: bool) -> Raw:
    """Return the result to keep. With `keep_secrets` its bytes are as they came."""
    shown, secrets = mask_bytes(data)
    if keep_secrets:
        return Raw(data=data, masked=(), shown=shown)
    places = tuple(MaskedPlace(start=one.start, end=one.end, kind=one.kind) for one in secrets)
    return Raw(data=shown, masked=places, shown=shown)
