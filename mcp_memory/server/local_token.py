"""The token of a server that listens on this machine only.

Every user and program of a machine can reach its loopback addresses, so clients need a token there too. It is made at
the first start without another one, printed once, and kept in `<home>/http-token`, for the owner of the home alone. It
gives the rights of the setting `token`.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
from pathlib import Path

from mcp_memory.core.errors import Refused
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import read_regular

logger = logging.getLogger(__name__)

_FILE = "http-token"
_TOKEN = re.compile(r"mcm_local_[\w-]{43}")
_MOST = 1_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def token_file(home: Path) -> Path:
    """Return the path of the token, which may not exist yet."""
    return home / _FILE


def read_token(home: Path) -> str | None:
    """Return the token of a home; None if it has none. Raises Refused if the file cannot be used."""
    path = token_file(home)
    try:
        token = read_regular(path, _MOST).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(
            f"{path} cannot be read ({error.strerror}). Remove it: the next start makes a new token."
        ) from None
    if not _TOKEN.fullmatch(token):
        raise Refused(f"{path} is damaged: it holds no token. Remove it: the next start makes a new one.")
    if os.name != "nt" and path.stat().st_mode & _OTHERS:
        logger.warning(
            "%s could be read by other users of this machine. Remove it: the next start makes a new one.", path
        )
        path.chmod(0o600)
    return token


def make_token(home: Path) -> str:
    """Make the token of a home and return it, or the one that another process has just made.

    Raises Refused if it cannot be stored.
    """
    path, token = token_file(home), f"mcm_local_{secrets.token_urlsafe(32)}"
    beside = path.with_name(f".{_FILE}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        make_folder(home)
        try:
            with open_private(beside, "xb") as file:
                file.write(token.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            path.hardlink_to(beside)  # fails if the file exists; a rename would replace the token of another process
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError:
        return read_token(home) or token
    except OSError as error:
        raise Refused(
            f"The token of this server cannot be stored in {path} ({error.strerror}). Set MCP_MEMORY_TOKEN to a long "
            "random secret, or start it with --no-token if every user of this machine may use the memory."
        ) from None
    return token
