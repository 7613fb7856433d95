"""Reads and atomically replaces a configuration file, keeping its first original beside it.

Links are followed: their target is replaced, and the link stays. Mode and, if possible, owner of the file stay. If
another program wrote to the file in between, nothing is written.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_memory.core.errors import InvalidInput, Refused, StoreUnavailable

MAX_BYTES = 16 * 2**20  # bytes
NEW_FILE = 0o600  # an entry may hold a key


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file as it was read. `path`: its given name; `target`: the file behind links; `data`: None if there is none."""

    path: Path
    target: Path
    data: bytes | None
    mode: int = NEW_FILE


def backup_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.mcp-memory-backup")


def read_config(path: Path) -> ConfigFile:
    """Read a file. Raises Refused for one that must not be edited, StoreUnavailable for one that cannot be read."""
    try:
        target = path.resolve()
        if not target.exists():
            if path.is_symlink() and not target.parent.is_dir():
                raise Refused(f"{path} is a link to {target}, and there is no such folder. Mend or remove the link.")
            return ConfigFile(path, target, None)
        about = target.stat()
        if not stat.S_ISREG(about.st_mode):
            raise Refused(f"{path} is not a file. Move it away, or name another place.")
        if about.st_size > MAX_BYTES:
            raise Refused(
                f"{path} has {about.st_size:,} bytes, and more than {MAX_BYTES:,} are no settings of a person. Put the "
                "entry in by hand: `mcp-memory install --print` shows it."
            )
        return ConfigFile(path, target, target.read_bytes(), stat.S_IMODE(about.st_mode))
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        raise StoreUnavailable(f"{path} cannot be read: {_reason(error)}. Nothing was changed.") from None


def decode(data: bytes | None, path: Path) -> str:
    """Return a file as text. Raises InvalidInput for another encoding than UTF-8."""
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 (byte {error.start:,}), so it was left as it is. Save it as UTF-8 and try again."
        ) from None


def check_writable(file: ConfigFile) -> None:
    """Raise Refused when the file is there for reading only, even where this user could replace it all the same."""
    if file.data is not None and not (file.mode & stat.S_IWUSR and os.access(file.target, os.W_OK)):
        raise Refused(
            f"{file.path} is read-only, so it was left as it is. Make it writable, or put the entry in by hand: "
            "`mcp-memory install --print` shows it."
        )


def write_config(file: ConfigFile, data: bytes, *, backup: bool = False) -> None:
    """Replace or create the file; with `backup`, keep the old one beside it first.

    Raises Refused if it has changed since it was read, StoreUnavailable if it cannot be written. It is unchanged then.
    """
    check_writable(file)
    new = [(file.target, data)]
    if backup and file.data is not None:
        new.insert(0, (backup_path(file.target), file.data))
    beside = [(path.with_name(f".{path.name}.{os.getpid()}.tmp"), path, held) for path, held in new]
    try:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        _check_unchanged(file)
        for made, _, held in beside:
            _write(made, held, file)
        _check_unchanged(file)
        for made, path, _ in beside:  # all there is room for is written by now
            made.replace(path)
        _fsync_folder(file.target.parent)
    except OSError as error:
        raise StoreUnavailable(f"{file.path} cannot be written: {_reason(error)}. It was left as it is.") from None
    finally:
        for made, _, _ in beside:
            with suppress(OSError):
                made.unlink(missing_ok=True)


def delete_config(file: ConfigFile) -> None:
    """Delete the file. Raises as `put`."""
    check_writable(file)
    try:
        _check_unchanged(file)
        file.target.unlink()
    except OSError as error:
        raise StoreUnavailable(f"{file.path} cannot be removed: {_reason(error)}. It was left as it is.") from None


def _write(path: Path, data: bytes, like: ConfigFile) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if like.data is not None:
        if hasattr(os, "chown"):
            about = like.target.stat()
            with suppress(OSError):
                os.chown(path, about.st_uid, about.st_gid)
        path.chmod(like.mode)


def _check_unchanged(file: ConfigFile) -> None:
    now = file.target.read_bytes() if file.target.exists() else None
    if now != file.data:
        raise Refused(f"Another program changed {file.path} in the meantime, so it was left as it is. Try again.")


def _fsync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system opens folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is a link that leads to itself"
