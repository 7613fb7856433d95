"""Notes of what is still to be read: which conversation, which log, no words of it.

A hook leaves one when no resident takes its event, and a resident for all that it has yet to read, so that whatever
kills either of them, the next resident of the same space finds it. Standard library only, as in `client`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from mcp_memory.hooks.rendezvous import Place, make_folders

__all__ = ["Note", "notes_in"]

_FLUSHING = frozenset({"SessionEnd", "PreCompact"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A log to be read, whose it is, and the event that asked for it, whatever client's."""

    event: str
    client: str
    conversation: str
    log: str

    @property
    def is_flushed(self) -> bool:
        """Whether the conversation is over, or about to be summed up."""
        return self.event in _FLUSHING

    def leave(self, place: Place) -> None:
        """Write it down for the place's space; a later note of the same log takes its place."""
        make_folders(place)
        file = self.file_in(place)
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        beside.write_bytes(self._told(place))
        beside.replace(file)

    def withdraw(self, place: Place) -> None:
        """Take it away, unless another was left meanwhile."""
        file = self.file_in(place)
        try:
            if file.read_bytes() == self._told(place):
                file.unlink()
        except OSError:
            return

    def file_in(self, place: Place) -> Path:
        about = f"{place.space or ''}\n{self.log}".encode("utf-8", "surrogatepass")
        return place.waiting / f"{blake2b(about, digest_size=8).hexdigest()}.json"

    def _told(self, place: Place) -> bytes:
        given = {"session_id": self.conversation, "transcript_path": self.log}
        return json.dumps({"event": self.event, "client": self.client, "space": place.space, "input": given}).encode()


def notes_in(place: Place) -> list[Note]:
    """Return the notes that were left for the place's space, for whoever takes them up to leave them anew.

    What makes no sense is removed.
    """
    found: list[Note] = []
    for file in sorted(place.waiting.glob("*.json")):
        try:
            held = json.loads(file.read_bytes())
            about, space = held["input"], held.get("space")
            told = str(about["session_id"]), str(about["transcript_path"])
            note = Note(event=str(held["event"]), client=str(held["client"]), conversation=told[0], log=told[1])
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            file.unlink(missing_ok=True)
            continue
        if space == place.space:
            found.append(note)
            if file != note.file_in(place):  # of another version
                file.unlink(missing_ok=True)
    return found
