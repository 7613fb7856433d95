"""Where `mcp-memory ui` serves, and who is signed in there: kept in the home, so that both outlast a restart.

The file `ui.json` is readable by its owner alone. It has port and process of the last run, a random path, the secret
that signs keys and cookies, and the sign-ins that have not ended. Only one `mcp-memory ui` runs for a memory
(`only_one`); a second one signs a key with the secret and opens the first. If the file cannot be written, everything
ends with the process. If it cannot be read, it is replaced, and everybody is signed out.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from mcp_memory.core.config import Settings
from mcp_memory.core.private_files import make_folder, replace_private
from mcp_memory.core.process_registry import sole_holder
from mcp_memory.core.regular_files import read_regular

logger = logging.getLogger(__name__)
_MAX_FILE_BYTES = 2**20
_MAX_SIGN_INS = 100
_PATH_BYTES, _SECRET_BYTES = 16, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAddress:
    """The contents of the file. `sign_ins` have their end in seconds since 1970.

    `port` and `pid` are those of the last run, 0 before the first.
    """

    port: int = 0
    pid: int = 0
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(_PATH_BYTES)}")
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_SECRET_BYTES), repr=False)
    sign_ins: Mapping[str, float] = field(default_factory=dict[str, float])


class AddressFile:
    """The file, and its contents."""

    def __init__(self, path: Path | None) -> None:
        """Read the file. Without a path nothing is kept."""
        self._path, self._lock = path, Lock()
        self.address = LocalAddress() if path is None else _read(path)

    @classmethod
    def of(cls, settings: Settings) -> AddressFile:
        """Return the file of a memory."""
        return cls(_path(settings))

    def change(self, **fields: Any) -> None:
        """Replace fields of the contents; `save` writes them."""
        self.address = replace(self.address, **fields)

    def save(self) -> None:
        """Write the file. Blocks."""
        if self._path is None:
            return
        with self._lock:
            data = {
                "port": self.address.port,
                "pid": self.address.pid,
                "base": self.address.base,
                "secret": b64encode(self.address.secret).decode(),
                "sign_ins": dict([*self.address.sign_ins.items()][-_MAX_SIGN_INS:]),
            }
            try:
                make_folder(self._path.parent)
                replace_private(self._path, json.dumps(data).encode())
            except OSError as error:
                logger.warning("%s cannot be written (%s): sign-ins end with this process", self._path, error.strerror)

    def renew(self) -> None:
        """Choose a new path and a new secret, which ends all sign-ins and links."""
        new = LocalAddress()
        self.change(base=new.base, secret=new.secret, sign_ins=new.sign_ins)


@contextmanager
def only_one(settings: Settings) -> Generator[bool]:
    """Yield whether no other process serves the pages of this memory; none starts to until the block ends."""
    with suppress(OSError):
        make_folder(settings.home / "run")
    with sole_holder(settings.home, _path(settings).stem) as is_only:
        yield is_only


def _path(settings: Settings) -> Path:
    """Return the path of a memory's file. Each database of a team has its own in the home."""
    store = "" if settings.store is None else f"-{hashlib.sha256(settings.store.encode()).hexdigest()[:12]}"
    return settings.home / f"ui{store}.json"


def _read(path: Path) -> LocalAddress:
    try:
        fields = json.loads(read_regular(path, _MAX_FILE_BYTES))
        return LocalAddress(
            port=int(fields["port"]),
            pid=int(fields["pid"]),
            base=str(fields["base"]),
            secret=b64decode(fields["secret"]),
            sign_ins={str(id): float(until) for id, until in fields["sign_ins"].items()},
        )
    except FileNotFoundError:
        return LocalAddress()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        logger.warning("%s cannot be read, and is replaced: sign in again", path)
        return LocalAddress()
