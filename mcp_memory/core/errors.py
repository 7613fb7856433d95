"""Errors that this package raises deliberately. Each text names the problem and the next step.

    McpMemoryError
    ├── InvalidInput      wrong arguments; nothing was written; correct them and call again
    ├── NotFound          this space has no such id, session, node, ref or cursor
    ├── Refused           understood, but a rule forbids it (a missing token, a read-only home, a cap)
    │   └── ServerRefused   by the server of the setting `server`: the token, its rights, an older version
    ├── Damaged           a file no longer matches the hash that was stored with it
    ├── StoreUnavailable  the home cannot be used now (not writable, disk full, locked, from a newer version)
    │   ├── NoRoom        the disk is full, or a quota is used up; nothing is damaged
    │   ├── DamagedRow    the database has a value that cannot be read; `doctor --repair` mends it
    │   ├── NewerHome     written by a newer version; nothing is damaged
    │   ├── ServerAway    the server of the setting `server` cannot be reached, is late or failed
    │   └── HomeGone      the folder was removed or replaced while it was open; nothing is written back
    ├── EmbeddingFailed   the embedding model did not answer; lexical search continues without it
    └── ModelFailed       the language model gave no usable answer; everything else continues without it
        └── NoUsableReply   to this question; other questions may still be answered

Any other exception is a bug: the edges log it with its traceback and show no details.
"""

from __future__ import annotations


class McpMemoryError(Exception):
    """Base class. `str(error)` is one or two sentences for the agent or person who reads it.

    `public` is what clients of a server read instead, if that names hosts or users of its database; else None.
    """

    public: str | None = None


class InvalidInput(McpMemoryError):
    """Wrong argument. The text names it and the allowed values; nothing was written."""


class NotFound(McpMemoryError):
    """Unknown id, name or cursor in this space."""


class Refused(McpMemoryError):
    """A rule forbids the request. The text names the rule."""


class ServerRefused(Refused):
    """The server does not accept what this machine asks for. `cause` says why in a few words, without any contents."""

    def __init__(self, text: str, cause: str) -> None:
        super().__init__(text)
        self.cause = cause


class Damaged(McpMemoryError):
    """Stored bytes no longer match their hash. The damaged file is left unchanged."""


class StoreUnavailable(McpMemoryError):
    """The store cannot be opened or written to now. No acknowledged data is lost."""


class NoRoom(StoreUnavailable):
    """The disk is full, or a quota is used up. Stored data is intact."""


class DamagedRow(StoreUnavailable):
    """A row of the database has an unreadable value. Other rows can still be read."""


class NewerHome(StoreUnavailable):
    """The store was written by a newer version of this program. It is intact."""


class ServerAway(StoreUnavailable):
    """The server cannot be used now; a later request may succeed. `cause` says why in a few words."""

    def __init__(self, text: str, cause: str) -> None:
        super().__init__(text)
        self.cause = cause


class HomeGone(StoreUnavailable):
    """The folder of the memory was removed or replaced while it was open. Nothing is written to it."""

    def __init__(self, home: object) -> None:
        super().__init__(
            f"The memory's folder {home} is gone or was replaced. Restart the client to begin a new one; "
            "nothing was written back."
        )


class EmbeddingFailed(McpMemoryError):
    """The embedding model failed. Turns are stored anyway and embedded later."""


class ModelFailed(McpMemoryError):
    """The language model did not answer, or not in the requested form. Nothing was changed.

    If `passes`, the failure is temporary; `wait_s` is the delay in seconds that the provider asked for, if it gave one.
    If `billed`, the provider may have read the prompt and may charge for it.
    """

    def __init__(self, text: str, *, passes: bool = False, wait_s: float | None = None, billed: bool = False) -> None:
        super().__init__(text)
        self.passes = passes
        self.wait_s = wait_s
        self.billed = billed


class NoUsableReply(ModelFailed):
    """The model answered, but its reply to this question is unusable. Other questions may still be asked."""
