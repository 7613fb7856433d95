"""The path through a tree of messages, of which each names the message before it. No I/O, no state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from mcp_memory.integrations.importers.records import find_first, list_of

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

T = TypeVar("T")


def messages_before(
    nodes: Mapping[str | int, Mapping[str, Any]],
    places: Mapping[str, str | int],
    parent: Sequence[str],
    roots: Sequence[str | None],
) -> dict[str | int, str | int | None]:
    """Return the key of the message before each node, None for a first message.

    That is the node whose id (by `places`) is in the field `parent`, or the node that has this node in its `children`.
    In a list, a node without either follows the node before it, unless its `parent` is in `roots`.
    """
    before: dict[str | int, str | int | None] = {}
    previous: str | int | None = None
    for key, node in nodes.items():
        id = find_first(node, parent)
        place = places.get(id) if isinstance(id, str) else None
        is_root = isinstance(key, str) or id in roots
        before[key] = place if place is not None or is_root else previous
        previous = key
    for key, node in nodes.items():
        for child in list_of(node.get("children")) or []:
            if isinstance(child, str) and before.get(child, "") is None and child != key:
                before[child] = key
    return before


def walk_path(before: Mapping[T, T | None], last: T | None, time: Callable[[T], datetime | None]) -> list[T]:
    """Return the messages from the first to `last`, or to the newest leaf if that is None.

    `before` maps each message to its parent, None for a first message.
    """
    at = last
    if at is None and before:
        inner = set(before.values())
        leaves = [key for key in before if key not in inner] or list(before)
        at = max(enumerate(leaves), key=lambda leaf: (time(leaf[1]) or _LONG_AGO, leaf[0]))[1]
    path: dict[T, None] = {}
    while at is not None and at in before and at not in path:
        path[at] = None
        at = before[at]
    return list(reversed(path))
