"""Formats of conversations and memories, one module each; the module's name is the name of the format.

A module has a `FORMAT` (`importers.format.Format`). Most are data: tests that recognise a file, and the names of the
fields of conversations and messages (`importers.chat.Chat`). CONTRIBUTING.md explains how to add a format.
"""

from __future__ import annotations

import pkgutil


def names() -> list[str]:
    """Return the names of all formats in alphabetical order, without loading their modules."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
