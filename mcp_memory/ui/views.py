"""The input and the output of a page: the same for the browser and for the MCP App.

A page is a function of a `View` that returns a `Page`. `pages` lists them by address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_memory.core.rights import Right, includes
from mcp_memory.ui.elements import Element

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A request for a page: whose memory, with which parts of the address and of its query, by whom.

    `form_token` is empty where nothing can be changed, as in the App: there pages have no forms that change anything.
    `is_owner`: the reader has this machine, so pages may name other spaces, tokens and folders.
    """

    memory: Memory
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    right: Right = "admin"
    form_token: str = ""
    is_owner: bool = False

    def may(self, right: Right) -> bool:
        """Return whether the reader may change what needs this right."""
        return bool(self.form_token) and includes(self.right, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A title and the content below it. `here` is the entry of the navigation that the page belongs to."""

    title: str
    body: tuple[Element | str, ...]
    here: str = ""
