"""What a home looks like from outside: its files by kind, who holds it, which keys open it. Changes nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_memory.core.process_registry import Present, everyone

if TYPE_CHECKING:
    from mcp_memory.store.access import Token

__all__ = ["connected", "disk", "keys"]

_KINDS = {"refs": "results", "conversations": "journal", "mmds": "canvases", "scenes": "scenes"}


def disk(home: Path) -> dict[str, int]:
    """Return the bytes that lie in a home, by kind; of all spaces. Kinds of which nothing is there are left out.

    `database`, `results` (raw tool results), `journal`, `records`, `canvases`, `scenes`, `backups`, `hooks` (their
    logs and notes) and `other`.
    """
    sizes: Counter[str] = Counter()
    for parts, size in _files(str(home), ()):
        sizes[_kind(parts)] += size
    return {kind: size for kind, size in sizes.most_common() if size}


def _kind(parts: tuple[str, ...]) -> str:
    match parts:
        case (name,) if name.startswith("memory.db"):
            return "database"
        case ("spaces", _, folder, *_) if folder in _KINDS:
            return _KINDS[folder]
        case ("spaces", _, name) if name.endswith(".jsonl"):
            return "records"
        case (("backups" | "hooks") as folder, *_):
            return folder
        case _:
            return "other"


def _files(folder: str, parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the files below a folder, as the parts of their paths, with their sizes; links are not followed."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, (*parts, entry.name))
                else:
                    yield (*parts, entry.name), entry.stat(follow_symlinks=False).st_size
    except OSError:  # gone since it was listed, or not ours to read
        return


def connected(home: Path) -> list[dict[str, Any]]:
    """Return who holds the home now, this process left out where it only came to look."""
    return [_told(one) for one in everyone(home) if one.pid != os.getpid() or one.what.startswith("serve")]


def _told(one: Present) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "what": one.what,
        "space": one.space,
        "clients": list(one.clients),
        "since": one.since.isoformat() if one.since else None,
        "version": one.version,
    }


def keys(tokens: Sequence[Token], *, now: datetime) -> dict[str, int]:
    """Return how many tokens of HTTP clients open something now, how many are past their time, how many revoked."""
    revoked, valid = sum(1 for one in tokens if one.revoked_at), sum(1 for one in tokens if one.is_good(now))
    return {"valid": valid, "expired": len(tokens) - valid - revoked, "revoked": revoked}
