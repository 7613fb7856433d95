"""Checks of a home folder that need no open store: its identity file, its permissions, files of other programs."""

from __future__ import annotations

from mcp_memory.store.sqlite.home import exposed, foreign, identity_problem

__all__ = ["exposed", "foreign", "identity_problem"]
