"""Every error this package raises on purpose, each saying what to do next.

    McpMemoryError
    ├── InvalidInput      wrong arguments; nothing was written; call again, corrected
    ├── NotFound          an id, session, node, ref or cursor that this space does not hold
    ├── Refused           understood, but a rule forbids it (a token missing, a read-only home, a cap)
    ├── Damaged           a file no longer matches the hash that was stored with it
    ├── StoreUnavailable  the home cannot be used now (not writable, disk full, locked, from a newer version)
    │   ├── NoRoom        the disk is full, or a quota is used up; nothing is damaged
    │   ├── DamagedRow    the database has a value that cannot be read; `doctor --repair` mends it
    │   ├── NewerHome     written by a newer version; nothing is damaged
    │   └── HomeGone      the folder was removed or replaced while it was open; nothing is written back
    ├── EmbeddingFailed   the configured embedding model did not answer; lexical search goes on without it
    └── ModelFailed       the configured language model gave no usable answer; all else goes on without it
        └── NoUsableReply   to one question; others may be asked

The text of each is written for the agent or the person who reads it: the fault, then the next step. Anything that is
not one of these is a bug: the edges log it with its traceback and show no detail.
"""

from __future__ import annotations


class McpMemoryError(Exception):
    """Base of all of them; `str(error)` is a sentence or two for the reader."""


class InvalidInput(McpMemoryError):
    """An argument is wrong. The text names it and the allowed values; nothing was written."""


class NotFound(McpMemoryError):
    """Nothing in this space has that id, name or cursor."""


class Refused(McpMemoryError):
    """Understood, and not done: a rule forbids it. The text names the rule."""


class Damaged(McpMemoryError):
    """Stored bytes no longer match their hash. The damaged file is left where it is."""


class StoreUnavailable(McpMemoryError):
    """The store cannot be opened or written to now. Nothing that was acknowledged is lost."""


class NoRoom(StoreUnavailable):
    """The disk is full, or a quota is used up. Stored data is intact."""


class DamagedRow(StoreUnavailable):
    """A row of the database holds a value that cannot be read. Other rows are read all the same."""


class NewerHome(StoreUnavailable):
    """The store was written by a newer version. It is intact."""


class HomeGone(StoreUnavailable):
    """The folder of the memory was removed or replaced while this process had it open. Nothing is written there."""

    def __init__(self, home: object) -> None:
        super().__init__(
            f"The memory's folder {home} is gone or was replaced. Restart the client to begin a new one; "
            "nothing was written back."
        )


class EmbeddingFailed(McpMemoryError):
    """The embedding model failed. Turns are stored all the same and embedded later."""


class ModelFailed(McpMemoryError):
    """The language model did not answer, or not in the requested form. Nothing was changed.

    `passes`: temporary; the question may be answered later, after `wait_s` seconds where the provider said so.
    `billed`: the provider may have read the prompt and charge for it.
    """

    def __init__(self, text: str, *, passes: bool = False, wait_s: float | None = None, billed: bool = False) -> None:
        super().__init__(text)
        self.passes = passes
        self.wait_s = wait_s
        self.billed = billed


class NoUsableReply(ModelFailed):
    """The model answers, and gave no reply to this question that can be used. Other questions may be asked."""
