"""The audit log: who called which verb, when, on which rows, and how it ended. It never has contents.

A line is a JSON object. The log is a file that is only appended to, or standard error; it is off unless the setting
`audit_log` names one. A file that was renamed or deleted is opened anew, so that the system's tools can rotate it;
several processes may write to one file. A line that cannot be written is logged and counted, and the request goes on.

Of a request, only ids are recorded: values of known fields that have the form of an id of this memory.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.metrics import Counter
from mcp_memory.core.personal_ids import MARK
from mcp_memory.core.private_files import open_private

logger = logging.getLogger(__name__)

STDERR = "stderr"
MOST_IDS = 100
_FAILURES = Counter("mcp_memory_audit_failures_total", "Lines of the audit log that could not be written.")
_ID = re.compile(
    rf"(?:{re.escape(MARK)})?(?:[tawx][1-9]\d{{0,17}}|r-[0-9a-f]{{12,64}}(?::\d+(?:-\d+)?)?|\d{{3,6}}(?:-[NF]\d{{1,6}})?|[0-9a-f]{{8}})",
    re.ASCII,
)
"""Ids of turns, statements, jobs, tombstones, results, canvases and their nodes, and tokens."""
_ID_FIELDS = {
    *("id", "ids", "stored", "ref", "refs", "node", "nodes", "canvas", "tombstone", "tombstones", "undo", "work_id"),
    *("supersedes", "cites", "after", "along", "also", "at", "evidence", "number", "contradicting", "unsure", "which"),
}


class AuditLog:
    """An open audit log; thread-safe."""

    def __init__(self, target: str) -> None:
        """`target` is the path of a file, or `stderr`. Raises InvalidInput if the file cannot be written."""
        self._path = None if target == STDERR else Path(target).expanduser().absolute()
        self._file: IO[bytes] | None = None
        self._lock = Lock()
        try:
            with self._lock:
                self._open()
        except OSError as error:
            raise InvalidInput(
                f"Setting 'audit_log': {target} cannot be written ({error.strerror}). Name a file in a folder that"
                " exists, or `stderr`."
            ) from None

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def write(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        try:
            with self._lock:
                file = self._open()
                file.write(data)
                file.flush()
        except (OSError, ValueError) as error:
            _FAILURES.add()
            logger.error("a line of the audit log was lost: %s", error)

    def _open(self) -> IO[bytes]:
        """Return the file, opened anew if another file or none has its name now."""
        if self._path is None:
            self._file = self._file or open(2, "ab", closefd=False)  # noqa: SIM115 - kept open
            return self._file
        if self._file is not None:
            opened = os.fstat(self._file.fileno())
            try:
                named = self._path.stat()
            except FileNotFoundError:
                named = None
            if named is not None and (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino):
                return self._file
            self._file.close()
            self._file = None
        self._file = open_private(self._path, "ab")
        return self._file


_log: AuditLog | None = None
_now: Callable[[], datetime] = partial(datetime.now, UTC)


def set_up(target: str | None) -> None:
    """Write the audit log of this process to `target` from now on; None for no log. Raises InvalidInput."""
    global _log
    if _log is not None:
        _log.close()
    _log = None if target is None else AuditLog(target)


def is_on() -> bool:
    return _log is not None


def use_clock(now: Callable[[], datetime]) -> None:
    """Date lines by the clock of an open memory; before that, by this machine's."""
    global _now
    _now = now


def write(
    *,
    who: str,
    verb: str,
    outcome: str,
    space: str | None = None,
    ids: tuple[str, ...] = (),
) -> None:
    """Write a line, if the log is on. `who` and `space` are names; `verb` and `outcome` are words of this program."""
    if _log is None:
        return
    at = _now().astimezone(UTC).isoformat(timespec="milliseconds")
    line: dict[str, Any] = {"at": at, "who": who, "space": space, "verb": verb, "outcome": outcome, "ids": ids}
    if len(ids) > MOST_IDS:
        line |= {"ids": ids[:MOST_IDS], "more_ids": len(ids) - MOST_IDS}
    _log.write({name: value for name, value in line.items() if value is not None})


def local_user() -> str:
    """Return the name of the user of this machine who runs this process, as a line's `who`."""
    import getpass

    try:
        return f"user {getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user database
        return f"user {os.getuid()}" if os.name != "nt" else "user"


def ids_in(value: object, *, nested: bool = True) -> tuple[str, ...]:
    """Return the ids in an answer or in arguments, in order; `nested` looks into objects in lists and fields too."""
    return tuple(dict.fromkeys(_ids_in(value, "", nested=nested)))


def _ids_in(value: object, field: str, *, nested: bool) -> Iterator[str]:
    match value:
        case str():
            if field in _ID_FIELDS and _ID.fullmatch(value):
                yield value
        case Mapping():
            if nested or not field:
                for name, inner in cast("Mapping[str, object]", value).items():
                    yield from _ids_in(inner, name, nested=nested)
        case list() | tuple():
            for inner in cast("list[object]", value):
                yield from _ids_in(inner, field, nested=nested)
        case _:
            pass
