"""Settings inside a configuration: added, found and removed as trees of members. Pure.

A tree is an object of objects, whose leaves are values or lists; items of a list are added to the list that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

Tree = Mapping[str, Any]


class WrongShape(ValueError):
    """A member of a configuration has a type that the client does not accept; the text names it."""


def member(document: Tree, key: str, called: str | None = None) -> dict[str, Any]:
    """Return an object in a document, `{}` if it is missing. Raises WrongShape, naming it `called`, for other types."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongShape(f"{called or key} is {kind_of(value)} where an object belongs")
    return cast("dict[str, Any]", value)


def kind_of(value: object) -> str:
    """Return what a value is, as in "a list"."""
    match value:
        case list():
            return "a list"
        case dict():
            return "an object"
        case str() if type(value) is str:
            return "a text"
        case str():  # opaque, as `yaml_text` reads it
            return "in a form that cannot be edited here,"
        case None:
            return "null"
        case bool():
            return "true or false"
        case _:
            return "a number"


def tree_at(path: str, value: Any) -> dict[str, Any]:
    """Return the tree with a value at a dotted path."""
    first, _, rest = path.partition(".")
    return {first: tree_at(rest, value) if rest else value}


def with_value(document: Tree, path: str, value: Any) -> dict[str, Any]:
    """Return the document with a value in place of what is at a dotted path."""
    first, _, rest = path.partition(".")
    inner = document.get(first)
    return {**document, first: with_value(cast("Tree", inner or {}), rest, value) if rest else value}


def value_at(document: Tree, path: str) -> Any:
    """Return what is at a dotted path; None if a member is missing."""
    value: Any = document
    for key in path.split("."):
        value = cast("Tree", value).get(key) if isinstance(value, Mapping) else None
    return value


def add_settings(document: Tree, tree: Tree, path: str = "") -> dict[str, Any]:
    """Return the document with the leaves of the tree.

    Raises WrongShape if it has another type where the tree has an object or a list; `path` is the place of both, with a
    dot at its end.
    """
    return {**document, **{key: _added(document, key, value, path + key) for key, value in tree.items()}}


def _added(document: Tree, key: str, new: Any, path: str) -> Any:
    old: object = document.get(key)
    match new:
        case Mapping():
            return add_settings(member(document, key, path), cast("Tree", new), f"{path}.")
        case list() if old is not None and not isinstance(old, list):
            raise WrongShape(f"{path} is {kind_of(old)} where a list belongs")
        case list():
            items = cast("list[Any]", old or [])
            return [*items, *(item for item in cast("list[Any]", new) if item not in items)]
        case _:
            return new


def has_settings(document: Tree, tree: Tree) -> bool:
    """Return whether the document has all leaves of the tree. Raises WrongShape as `add_settings` does."""
    return bool(tree) and add_settings(document, tree) == document


def remove_settings(document: Tree, tree: Tree, before: Tree) -> dict[str, Any]:
    """Return the document without the leaves of the tree, except those that were there `before`.

    Objects and lists that become empty are removed too, unless they were there.
    """
    left = dict(document)
    for key in tree.keys() & document.keys():
        now, ours, old = document[key], tree[key], before.get(key)
        match now, ours:
            case dict(), Mapping():
                was = cast("Tree", old if isinstance(old, Mapping) else {})
                left[key] = remove_settings(cast("Tree", now), cast("Tree", ours), was)
            case list(), list():
                kept = cast("Sequence[Any]", old) if isinstance(old, list) else ()
                left[key] = [item for item in cast("list[Any]", now) if item not in ours or item in kept]
            case _:
                left[key] = old
        if not left[key] and key not in before:
            del left[key]
        elif not left[key] and not old:
            left[key] = old
    return left
