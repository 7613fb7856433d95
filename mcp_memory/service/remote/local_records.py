"""What a machine notes of its own files while its memory is on a server: how far each was read, in a file each.

A projection: if it is lost, files are read again from their start, and the server recognises what it has. The names of
files and their digests are keyed with a secret of this machine; the server learns neither.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.private_files import make_folder, replace_private
from mcp_memory.core.regular_files import read_regular
from mcp_memory.store.values import FollowedLog, Imported

_SECRET_BYTES = 32
_LOGS, _FILES = TypeAdapter(FollowedLog), TypeAdapter(Imported)


class LocalRecords:
    """The records in a folder of a home, which must exist when something is noted. They raise StoreUnavailable."""

    def __init__(self, folder: Path, *, home: Path) -> None:
        self._folder, self._home = folder, home

    def secret(self, purpose: str) -> bytes:
        """Return the secret for a purpose, made at its first use."""
        file = self._folder / "secret"
        try:
            return self._keyed(read_regular(file), purpose)
        except FileNotFoundError:
            self._write(file, secrets.token_bytes(_SECRET_BYTES))
            return self._keyed(read_regular(file), purpose)
        except OSError as error:
            raise StoreUnavailable(f"{file} cannot be read: {error.strerror}.") from None

    def followed_logs(self, path: str | None = None) -> list[FollowedLog]:
        """Return the logs that were read (or only the log at a path), latest read first."""
        files = self._all("logs") if path is None else [self._file("logs", path)]
        logs = [log for log in map(self._reader(_LOGS), files) if log is not None]
        return sorted((log for log in logs if path in (None, log.path)), key=lambda log: log.at, reverse=True)

    def note_followed(self, log: FollowedLog) -> None:
        self._write(self._file("logs", log.path), _LOGS.dump_json(log))

    def imported(self) -> list[Imported]:
        """Return files that were imported, latest first."""
        files = [file for file in map(self._reader(_FILES), self._all("files")) if file is not None]
        return sorted(files, key=lambda file: file.at, reverse=True)

    def note_import(self, file: Imported) -> None:
        self._write(self._file("files", file.sha256), _FILES.dump_json(file))

    @staticmethod
    def _keyed(secret: bytes, purpose: str) -> bytes:
        return blake2b(purpose.encode(), key=secret[:64]).digest()

    def _file(self, kind: str, name: str) -> Path:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        return self._folder / kind / f"{digest}.json"

    def _all(self, kind: str) -> Iterator[Path]:
        yield from (self._folder / kind).glob("*.json")

    def _reader(self, adapter: TypeAdapter[Any]) -> Any:
        def read(file: Path) -> Any:
            try:
                return adapter.validate_json(read_regular(file))
            except (OSError, ValidationError):  # missing or torn: the file is read from its start
                return None

        return read

    def _write(self, file: Path, data: bytes) -> None:
        try:
            make_folder(self._home)
            make_folder(file.parent, root=self._home)
            replace_private(file, data)
        except OSError as error:
            raise StoreUnavailable(f"{file} cannot be written: {error.strerror}.") from None
