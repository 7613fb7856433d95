"""Formats of conversations and memories, one module each; the module's name is the name of the format.

A module has a `FORMAT` (`importers.format.Format`). Most are data: how a file is recognised, and the names of the
fields in which conversations, messages, roles, texts and times are (`importers.chat.Chat`). CONTRIBUTING.md says how to
add one.
"""

from __future__ import annotations

import pkgutil


def names() -> list[str]:
    """Return the names of all formats in alphabetical order, without loading their modules."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
