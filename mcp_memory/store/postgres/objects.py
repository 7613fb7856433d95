"""Stores the bytes of tool results: in rows of PostgreSQL, or in an S3-compatible bucket.

The row of an object says where its bytes are; the setting `objects` only selects where new objects go. A key in a
bucket is `FOLDER/SPACE/RANDOM` and is never used twice, so a deletion cannot hit a newer object. FOLDER belongs to one
database, so several databases can share a bucket (`object_upkeep`).

An object is stored before the transaction with its row is committed. If the transaction fails, the object is an orphan,
which upkeep deletes. This module does not verify the bytes that it reads: the reader of a result checks its hash.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import InvalidInput, StoreUnavailable

_ADDRESS = re.compile(r"s3://([^/\s]+)/?(\S*?)/*")
_CONNECT_S, _REQUEST_S, _RETRY_S = 3, 10, 5
_RETRIES = 3
_SLOW_S, _REST_S = 2, 15
_AT_ONCE = 16
_PAGE = 1_000  # the most that S3 lists at once, and deletes


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where a new object is: as `data` in its row, or under a `key` in the bucket, with its `length` in bytes."""

    data: bytes | None = None
    key: str | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A range of bytes of an object in the bucket, from `start` up to `end`."""

    key: str
    start: int
    end: int


class Objects(Protocol):
    """A storage of objects. Every method may raise StoreUnavailable."""

    @property
    def folder(self) -> str | None:
        """The folder of this database in the bucket; None where objects are rows."""
        ...

    def put(self, space: int, data: bytes) -> Stored:
        """Store the bytes of an object of a space, and return where they are."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key; None if it does not exist."""
        ...

    def get_parts(self, parts: Sequence[Part]) -> dict[Part, bytes]:
        """Return the parts that exist; only these ranges are read."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete the objects with these keys; missing objects are ignored."""
        ...

    def list_pages(self, folder: str) -> Iterator[list[tuple[str, int, datetime]]]:
        """Yield the objects of a folder in pages of up to 1,000: key, size in bytes, and time of storage."""
        ...


class Rows:
    """Objects in PostgreSQL, in the same transaction as the row of their result."""

    folder = None

    def put(self, space: int, data: bytes) -> Stored:
        return Stored(data=data)

    def get(self, key: str) -> bytes | None:
        raise _unset()

    def get_parts(self, parts: Sequence[Part]) -> dict[Part, bytes]:
        raise _unset()

    def delete(self, keys: Sequence[str]) -> None:
        raise _unset()

    def list_pages(self, folder: str) -> Iterator[list[tuple[str, int, datetime]]]:
        raise _unset()


class Bucket:
    """Objects in a bucket; its credentials, region and endpoint are in the variables `AWS_…`.

    If the bucket does not answer, a request fails after some 10 s, and further requests fail at once for a while, so
    that their callers do not occupy connections to the database.
    """

    def __init__(self, address: str, folder: str | None) -> None:
        """Open the bucket at `address` (`s3://BUCKET/PREFIX`); without a `folder` it can only be read.

        Raises InvalidInput if the address is malformed, or if the extra `s3` is not installed.
        """
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise InvalidInput("Setting 'objects' (MCP_MEMORY_OBJECTS) is wrong: its form is s3://BUCKET/PREFIX.")
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError:
            raise InvalidInput(
                f"Setting 'objects' names a bucket, and its client is not installed: `{install_hint('s3')}`."
            ) from None
        self.name = address
        self._resting = (0.0, "")  # until when, and why
        self.folder = folder
        self._client: Any = obstore
        with self._translate_errors():
            self._store = S3Store(
                match[1],
                prefix=match[2] or None,
                client_options={
                    "allow_http": True,  # by the scheme of the endpoint; the default endpoint is https
                    "connect_timeout": timedelta(seconds=_CONNECT_S),
                    "timeout": timedelta(seconds=_REQUEST_S),
                },
                retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_S)},
            )

    def put(self, space: int, data: bytes) -> Stored:
        if self.folder is None:
            raise StoreUnavailable("The database can only be read. Nothing was written.")
        key = f"{self.folder}/{space}/{secrets.token_hex(16)}"
        with self._translate_errors():
            self._client.put(self._store, key, data)
        return Stored(key=key, length=len(data))

    def get(self, key: str) -> bytes | None:
        with self._translate_errors():
            try:
                return bytes(self._client.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

    def get_parts(self, parts: Sequence[Part]) -> dict[Part, bytes]:
        of_key = [list(of_key) for _, of_key in groupby(sorted(parts), attrgetter("key"))]
        if not of_key:
            return {}
        with ThreadPoolExecutor(min(_AT_ONCE, len(of_key))) as threads:  # a search reads parts of up to 40
            return {part: data for contents in threads.map(self._parts_of_one, of_key) for part, data in contents}

    def _parts_of_one(self, parts: Sequence[Part]) -> list[tuple[Part, bytes]]:
        starts, ends = [part.start for part in parts], [part.end for part in parts]
        with self._translate_errors():
            try:
                contents = self._client.get_ranges(self._store, parts[0].key, starts=starts, ends=ends)
            except FileNotFoundError:
                return []
            except self._client.exceptions.BaseError as error:
                if "416 Range Not Satisfiable" in str(error):  # it is shorter than it was
                    return []
                raise
        return list(zip(parts, map(bytes, contents), strict=True))

    def delete(self, keys: Sequence[str]) -> None:
        with self._translate_errors():
            for start in range(0, len(keys), _PAGE):
                self._client.delete(self._store, list(keys[start : start + _PAGE]))

    def list_pages(self, folder: str) -> Iterator[list[tuple[str, int, datetime]]]:
        with self._translate_errors():
            for page in self._client.list(self._store, f"{folder}/", chunk_size=_PAGE):
                yield [(entry["path"], entry["size"], entry["last_modified"]) for entry in page]

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Raise failures of the bucket as StoreUnavailable.

        The message leaves out the body of the response, because it may contain the id of the access key.
        """
        exceptions = self._client.exceptions
        start = time.monotonic()
        until, why = self._resting
        if start < until:
            raise StoreUnavailable(why)
        try:
            yield
        except (exceptions.BaseError, FileNotFoundError, ValueError) as error:
            reason = str(error).split("\n", 1)[0].partition("<")[0].rstrip(": ")[:300]
            why = (
                f"The bucket {self.name} cannot be used ({reason}). Nothing was written to it. Check that it exists,"
                " the variables AWS_ENDPOINT_URL, AWS_REGION and the credentials, and the rights of these credentials."
            )
            if time.monotonic() - start > _SLOW_S:
                self._resting = (time.monotonic() + _REST_S, why)
            raise StoreUnavailable(why) from None


class NotUploaded(Exception):
    """Rolls back a transaction, so that it has no locks during `upload`; then the transaction has to be retried."""

    def __init__(self, uploads: Uploads, *place: Any) -> None:
        super().__init__("an object is stored before its transaction")
        self._uploads = uploads
        self._place = place

    def upload(self) -> None:
        self._uploads.store(*self._place)


class Uploads:
    """The objects of a write, each stored only once, even if the transaction is retried.

    With `early`, the first object for a bucket raises NotUploaded, so that the object is stored before the transaction
    is retried. Further objects are stored within the transaction.
    """

    def __init__(self, objects: Objects, *, early: bool = False) -> None:
        self.objects = objects
        self._early = early and objects.folder is not None
        self._stored: dict[tuple[int, str, bytes], Stored] = {}

    def put(self, space: int, path: str, data: bytes, *, is_new: bool) -> Stored:
        """Store an object, unless it was stored already, and return where it is.

        Raises NotUploaded for the first object with `early`. Pass `is_new` if the space was created in this
        transaction; the object is then stored at once, because the space may get another number in a retry.
        """
        if self.objects.folder is None:
            return self.objects.put(space, data)
        stored = self._stored.get((space, path, sha256(data).digest()))
        if stored is None and self._early and not is_new:
            self._early = False
            raise NotUploaded(self, space, path, data)
        return stored or self.store(space, path, data)

    def store(self, space: int, path: str, data: bytes) -> Stored:
        stored = self._stored[space, path, sha256(data).digest()] = self.objects.put(space, data)
        return stored


def open_bucket(address: str | None, folder: str | None) -> Objects:
    """Return the storage of new objects: `Rows` if `address` is None, else a `Bucket`, which may raise InvalidInput."""
    return Rows() if address is None else Bucket(address, folder)


def _unset() -> StoreUnavailable:
    return StoreUnavailable(
        "The bytes of this are in a bucket, and none is set here. Set MCP_MEMORY_OBJECTS as on the other servers of"
        " this memory."
    )
