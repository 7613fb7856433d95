"""The economy of contexts: message lists are compressed, and what all of it saved is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import safe_name
from mcp_memory.service.memory.verbs import Verbs, in_thread

if TYPE_CHECKING:
    from mcp_memory.service.compression.plan import Level
    from mcp_memory.service.compression.run import Compressed
    from mcp_memory.store.economy import Saved

__all__ = ["Economy"]


class Economy(Verbs):
    """Compression and the ledger of savings."""

    @in_thread
    def compress(
        self,
        messages: Sequence[Any],
        *,
        window: int,
        session: str | None = None,
        overhead: int = 0,
        level: Level | None = None,
        **rules: Any,
    ) -> Compressed:
        """Return a list of messages that fits a window of so many tokens, in the form of OpenAI or Anthropic it has.

        Call it before each call of the model, with the whole list or with what it returned, grown. What leaves the
        list is stored first: results open with `expand_node`, what was said is found by `conversation_search`.
        `overhead`: tokens that go to the model beside the list. `level` asks for a level whatever the size, as after
        a provider refused a prompt. `rules` are fields of `compression.rules.Rules`, `session` is whose canvas and
        turns these are; without it the conversation has one of its own.
        Raises InvalidInput for what is no list of messages, and for a rule that cannot be.
        """
        from mcp_memory.service.compression.plan import LEVELS
        from mcp_memory.service.compression.rules import make_rules
        from mcp_memory.service.compression.run import compress_list

        if not isinstance(overhead, int) or overhead < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"overhead is {overhead!r}; it can be 0 or more tokens.")
        if level not in (None, *LEVELS):
            raise InvalidInput(f"level {level!r} is unknown. Allowed: {', '.join(LEVELS)}, or none given.")
        done = compress_list(
            self._parts.store,
            self.space,
            messages,
            rules=make_rules(window, rules),
            counter=self._parts.counter,
            now=self._parts.now,
            session=None if session is None else safe_name(session, what="session"),
            overhead=overhead,
            level=level,
            keep_secrets=self.settings.keep_secrets,
        )
        if done.edits:
            self._parts.stored()
        return done

    @in_thread
    def savings(self, since: datetime | None = None) -> list[Saved]:
        """Return what offloading, expanding, showing canvases and compressing came to, by kind."""
        return self._parts.store.savings(self.space, since=since)
