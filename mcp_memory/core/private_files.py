"""Creates files and folders for their owner alone: modes 0600 and 0700, whatever the umask is.

Everything in a home, and every copy of it (backups, exports), is created here. An existing file that is opened for
writing loses the permissions of other users. In a folder set up for sharing (set-group-id), its group gets the same
rights as the owner: 0660 and 0770. On Windows modes have no effect. Nothing is written through a symbolic link.
Standard library only, because hooks import this module.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import IO, Literal

from mcp_memory.core import regular_files

_OWNER_FILE, _OWNER_FOLDER = 0o600, 0o700
_GROUP_FILE, _GROUP_FOLDER = 0o660, 0o2770

WriteMode = Literal["wb", "xb", "ab", "r+b", "w+b", "x+b"]


def open_private(path: Path, mode: WriteMode) -> IO[bytes]:
    """Open a regular file for writing, and create it unless the mode says otherwise. Raises OSError like `opener`."""
    return open(path, mode, opener=opener)


def opener(path: str, flags: int, *, within: regular_files.OpenedFolder | None = None) -> int:
    """Open a regular file, as the `opener` of `open` and `io.FileIO`; for writing, make it private.

    `within` is a folder above it that must not have been replaced since it was opened.

    Raises OSError: ESPIPE for other types of file, ELOOP for a symbolic link, ENOENT if `within` was deleted.
    """
    open_file = within.opener if within else regular_files.own_opener
    handle = open_file(path, flags)
    try:
        if os.name != "nt" and flags & (os.O_WRONLY | os.O_RDWR):
            _set_mode(handle, _GROUP_FILE if _is_shared(os.path.dirname(path) or ".") else _OWNER_FILE)  # noqa: PTH120
    except BaseException:
        os.close(handle)
        raise
    return handle


def touch(path: Path) -> None:
    """Create an empty file, or set the modification time of an existing file to now. Raises OSError like `opener`."""
    with io.FileIO(path, "ab", opener=opener):
        os.utime(path)


def replace_private(file: Path, data: bytes) -> None:
    """Replace a file atomically, readable for this user alone. Raises OSError."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    with open_private(temporary, "wb") as opened:
        opened.write(data)
    temporary.replace(file)


def make_folder(path: Path, *, root: Path | None = None) -> None:
    """Create a folder and its missing parents. Raises OSError, also if a file has the name.

    `root` is a parent that is not created: FileNotFoundError is raised if it was deleted. In a home, raises OSError
    (ELOOP) if a parent is a symbolic link.
    """
    regular_files.require_own(path)
    try:
        path.mkdir(mode=_OWNER_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        if path.parent == root or path.parent.is_dir():  # is_dir: a file system that takes no folders, such as /proc
            raise
        make_folder(path.parent, root=root)
        make_folder(path, root=root)
        return
    if os.name != "nt":
        mode = _GROUP_FOLDER if _is_shared(str(path.parent)) else _OWNER_FOLDER
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def _is_shared(folder: str) -> bool:
    return bool(os.stat(folder).st_mode & stat.S_ISGID)  # noqa: PTH116 this runs for every file that is written


def _set_mode(handle: int, mode: int) -> None:
    status = os.fstat(handle)
    if stat.S_IMODE(status.st_mode) != mode and status.st_uid == os.geteuid():
        os.fchmod(handle, mode)
