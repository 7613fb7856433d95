"""The files of a home: their formats, byte for byte, and how they are written.

The file of a ref is YAML front matter followed by raw bytes; that of a scene is front matter followed by Markdown. A
record and a journal entry are one JSON line each. Values in the front matter are JSON, which YAML can read.

Results are evidence, so they are on the disk before their rows are committed. The other files are copies of rows,
written after the commit (`sqlite.copies`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
from datetime import UTC
from pathlib import Path
from typing import IO, Any

from mcp_memory.core.errors import Damaged
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import open_own, read_own, remove_own
from mcp_memory.core.text import iso
from mcp_memory.core.types import Ref, Scene

_FENCE = b"---\n"


def database_is_gone(home: Path) -> str | None:
    """Return an error message if a home has the files of a memory but no database; None for any other home.

    If such a home were opened as new, its content would be lost and its ids would be used again. The files are checked
    before the database, because another process that creates a home creates the database before the files.
    """
    has_files = any(path.is_file() and path.stat().st_size for path in (home / "spaces").glob("*/**/*"))
    database = home / "memory.db"
    if not has_files or (database.exists() and database.stat().st_size):
        return None
    return (
        f"{home} holds the files of a memory, and its memory.db is {'empty' if database.exists() else 'gone'}. "
        "`mcp-memory doctor --repair` makes it anew of them. To begin an empty memory, move the folder spaces away."
    )


def ref_name(tool: str, day: str, digest: str) -> str:
    """Return `refs/<date>-<tool>-<hash12>.md`; a tool's name keeps letters, digits, `_` and `-`."""
    slug = re.sub(r"[^\w-]+", "-", tool, flags=re.ASCII).strip("-")[:40] or "tool"
    return f"refs/{day}-{slug}-{digest[:12]}.md"


def ref_file(ref: Ref, data: bytes) -> bytes:
    """Return the content of the file of a ref: front matter, a line `---`, then the data unchanged."""
    fields: dict[str, Any] = {
        "ref": ref.id,
        "tool": ref.tool,
        "arguments": ref.arguments,
        "tool_call_id": ref.tool_call_id,
        "session": ref.session,
        "timestamp": iso(ref.timestamp),
        "bytes": ref.bytes,
        "sha256": ref.sha256,
        "content_type": ref.content_type,
    }
    if ref.masked:
        fields["masked"] = [[place.start, place.end, place.kind] for place in ref.masked]
    # ASCII keeps the front matter valid UTF-8 and YAML for any arguments, even with lone surrogates.
    head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
    return _FENCE + head.encode("ascii") + _FENCE + data


def scene_file(scene: Scene) -> bytes:
    """Return the content of a scene's file: front matter, then its title and body in Markdown. Times are in UTC."""
    fields: dict[str, Any] = {
        "created": iso(scene.created.astimezone(UTC)),
        "updated": iso(scene.updated.astimezone(UTC)),
        "summary": scene.summary,
        "heat": scene.heat,
        "entities": scene.entities,
        "atoms": scene.atoms,
    }
    head = "".join(f"{key}: {_json(value)}\n" for key, value in fields.items())
    return _FENCE + f"{head}---\n\n# {scene.title}\n\n{scene.body.strip()}\n".encode("utf-8", "backslashreplace")


def read_ref_file(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Parse the file of a ref into front matter and data.

    Raises Damaged if the front matter cannot be read, or if the data does not match the hash in it.
    """
    end = content.find(b"\n" + _FENCE, len(_FENCE))
    if not content.startswith(_FENCE) or end < 0:
        raise Damaged("it has no front matter")
    fields: dict[str, Any] = {}
    try:
        for line in content[len(_FENCE) : end + 1].decode("ascii").splitlines():
            key, _, value = line.partition(": ")
            fields[key] = json.loads(value)
    except (ValueError, RecursionError):
        raise Damaged("its front matter cannot be read") from None
    data = content[end + 1 + len(_FENCE) :]
    if hashlib.sha256(data).hexdigest() != fields.get("sha256"):
        raise Damaged(f"its {len(data)} bytes do not match the hash stored with them")
    return fields, data


def with_session(content: bytes, session: str) -> bytes:
    """Return the content of the file of a ref with another session in its front matter."""
    end = content.find(b"\n" + _FENCE, len(_FENCE))
    head, rest = content[: max(end, 0)], content[max(end, 0) :]
    return (
        re.sub(rb"(?m)^session: .*$", f"session: {json.dumps(session)}".encode().replace(b"\\", rb"\\\\"), head) + rest
    )


def is_scene_file(content: bytes) -> bool:
    return content.startswith(_FENCE + b'created: "') and b"\natoms: [" in content.partition(b"\n" + _FENCE)[0]


def json_line(fields: dict[str, Any]) -> bytes:
    """Return fields as a line of a `.jsonl` file."""
    return _line(fields)


def _line(fields: dict[str, Any]) -> bytes:
    return _json(fields, _COMPACT).encode("utf-8", "backslashreplace") + b"\n"


_SPACED = json.JSONEncoder(ensure_ascii=False)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _json(value: Any, encoder: json.JSONEncoder = _SPACED) -> str:
    text = encoder.encode(value)
    # Readers that split at Unicode line breaks would split at these three.
    for char in "\x85\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def write_whole(path: Path, data: bytes, *, durable: bool = True, root: Path | None = None) -> None:
    """Write a file by renaming a temporary file, so that it always has either the old or the new content.

    With `durable`, the new content is on the disk when this returns. Missing folders are created, except `root`.
    """
    make_folder(path.parent, root=root)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open_private(temporary, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        remove_own(temporary)
    if durable:
        sync_folder(path.parent)


_NO_FILE = {errno.ENOENT, errno.EISDIR, errno.ESPIPE, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""Errors of opening a missing path, a folder, a pipe, a device, a socket or a dangling link."""


def open_regular(path: Path) -> IO[bytes] | None:
    """Open a file to read; None if it is missing or not a regular file."""
    try:
        return open_own(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def content_of(path: Path) -> bytes | None:
    """Return the content of a file; None if it is missing or not a regular file."""
    try:
        return read_own(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def is_there(path: Path) -> bool:
    """Return whether a file, folder or link has this name, even a broken link."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def append(path: Path, data: bytes, *, offset: int) -> None:
    """Write data after the first `offset` bytes of an existing file, over the bytes there, if any."""
    with open_private(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def sync_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there, and renames are journalled
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
