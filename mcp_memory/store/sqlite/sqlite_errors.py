"""What SQLite and the file system say of a home, as a sentence with the next step."""

from __future__ import annotations

import errno
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mcp_memory.core.errors import NoRoom, StoreUnavailable
from mcp_memory.store.sqlite import home as homes

__all__ = ["BUSY_MS", "explained"]

BUSY_MS = 30_000
_NOT_TAKEN = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_SHMSIZE}
"""What SQLite calls a used-up quota or too large a file: only ENOSPC does it know for what it is."""

_NOT_WRITTEN = re.compile(
    r"Internal sqlite-vec error: could not (?:insert|write|mark|update)"
    r"|could not write to \w+ blob|Error inserting \w+ into \w+ shadow table|Could not create \S+ shadow table",
    re.IGNORECASE,
)
"""How sqlite-vec says that it could not write to its tables; it keeps SQLite's reason to itself."""


@contextmanager
def explained(home: Path, *, so: str = "Nothing was written") -> Generator[None]:
    """Raise what goes wrong as StoreUnavailable, or as NoRoom where the disk is full. `so` says what became of it."""
    path = home / homes.DATABASE
    try:
        yield
    except apsw.BusyError:
        raise StoreUnavailable(
            f"{path} has been locked by another program for {BUSY_MS // 1000} s. {so}; try again."
        ) from None
    except (apsw.FullError, apsw.NoMemError):
        raise NoRoom(_no_room(home, "the disk is full", so)) from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreUnavailable(
            f"{path} is damaged ({error}). `mcp-memory doctor --repair` makes it anew, and keeps this one."
        ) from None
    except apsw.SQLError as error:
        if not _NOT_WRITTEN.match(str(error)):
            raise
        raise NoRoom(_no_room(home, "the disk or a quota takes no more", so)) from None
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) in _NOT_TAKEN:
            raise NoRoom(_no_room(home, "the disk or a quota takes no more", so)) from None
        raise StoreUnavailable(_not_usable(home, str(error), so)) from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.AuthError, apsw.PermissionsError) as error:
        raise StoreUnavailable(_not_usable(home, str(error), so)) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoRoom(_no_room(home, error.strerror or str(error), so)) from None
        raise StoreUnavailable(_not_usable(home, error.strerror or str(error), so)) from None


def _not_usable(home: Path, why: str, so: str) -> str:
    return (
        f"The home {home} cannot be used ({why}). {so}. Make it a folder you can write to, or choose another with "
        "MCP_MEMORY_HOME."
    )


def _no_room(home: Path, why: str, so: str) -> str:
    return f"No room to write in {home} ({why}). {so}; free some disk space and try again."
