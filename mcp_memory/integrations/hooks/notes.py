"""Notes of what is still to be read: which conversation, which log, no words of it.

A hook leaves one when no resident takes its event, and a resident for all that it has yet to read, so that whatever
kills either of them, the next resident of the same space finds it. Standard library only, as in `client`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from mcp_memory.core.regular_files import read_regular
from mcp_memory.integrations.hooks.rendezvous import Place, make_folders

__all__ = ["Note", "notes_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A log to be read, and whose. `flushed`: extraction is asked for then, for the talk is over or to be summed up."""

    log: str
    client: str
    conversation: str
    """The client's own id of it; empty where it is not known."""
    flushed: bool = False

    def leave(self, place: Place) -> None:
        """Write it down for the place's space; a later note of the same log takes its place. Raises OSError."""
        make_folders(place)
        file = self._file(place)
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        beside.write_bytes(self._told(place))
        beside.replace(file)

    def withdraw(self, place: Place) -> None:
        """Take it away, unless another was left meanwhile."""
        file = self._file(place)
        try:
            if read_regular(file) == self._told(place):
                file.unlink()
        except OSError:
            return

    def _file(self, place: Place) -> Path:
        about = f"{place.space or ''}\n{self.log}".encode("utf-8", "surrogatepass")
        return place.waiting / f"{blake2b(about, digest_size=8).hexdigest()}.json"

    def _told(self, place: Place) -> bytes:
        return json.dumps({**asdict(self), "space": place.space}).encode()


def notes_in(place: Place) -> list[Note]:
    """Return the notes that were left for the place's space; what makes no sense is removed."""
    found: list[Note] = []
    for file in sorted(place.waiting.glob("*.json")):
        try:
            held = json.loads(read_regular(file))
            log, client, conversation = (str(held[name]) for name in ("log", "client", "conversation"))
            note = Note(log=log, client=client, conversation=conversation, flushed=held["flushed"] is True)
            found += [note] if held["space"] == place.space else []
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            file.unlink(missing_ok=True)
    return found
