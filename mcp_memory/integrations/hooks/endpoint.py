"""Where a hook and the daemon find and authenticate each other; logs still to be read; the health of hooks.

A daemon listens on loopback and writes its port and a token to `<home>/hooks/<key>.json`, readable for its user alone.
The key is a hash of all settings, so hooks with other settings have their own daemon. The file may be left from a
killed process, whose port another program may use by now. So each side first proves that it knows the token, without
sending it: a caller sends nothing before the daemon has proven itself.

A hook leaves a `PendingLog` if no daemon takes its event, and the daemon one for everything it has yet to read, so that
the next daemon of the same space reads it. Standard library only, because every hook waits for these imports.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from mcp_memory import __version__
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.paths import HOME_VARIABLE, expand_path, home_of_environment, home_problem
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import read_regular, remove_own

PROTOCOL = b"mcp-memory-hook/1"
"""What a hook says first, with a nonce. See `client` and `resident` for what follows."""

ACKNOWLEDGED = b"\n"
"""What a hook says last, when it has the answer."""

_PREFIX = "MCP_MEMORY_"
_LARGEST_CONFIG = 2**20


@dataclass(frozen=True, slots=True)
class DaemonFiles:
    """The files of a home's daemon: home, the space named by command line or environment, and the settings key."""

    home: Path
    space: str | None
    key: str

    @property
    def folder(self) -> Path:
        return _folder_of(self.home)

    @property
    def file(self) -> Path:
        return self.folder / f"{self.key}.json"

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.key}.lock"

    @property
    def failed(self) -> Path:
        """A file whose age says when a resident was last started in vain."""
        return self.folder / f"{self.key}.failed"

    @property
    def waiting(self) -> Path:
        """The folder of what hooks could not hand over; the next resident works it off."""
        return self.folder / "waiting"

    @property
    def log(self) -> Path:
        return log_of(self.home)


def _folder_of(home: Path) -> Path:
    return home / "hooks"


def log_of(home: Path) -> Path:
    """Return the file that the residents of a home tell their failures in."""
    return _folder_of(home) / "hooks.log"


def endpoint_files(home: Path) -> list[Path]:
    """Return the files of all daemons of a home, whatever their settings; some may be stale."""
    return sorted(_folder_of(home).glob("*.json"))


def make_folders(place: DaemonFiles) -> None:
    """Make the folders of a place that are not there, the home too. Raises OSError."""
    make_folder(place.waiting)


def is_older(version: str, than: str) -> bool:
    """Return whether a version was released before another one, as far as their numbers tell."""
    one, other = ([int(number) for number in re.findall(r"\d+", text)] for text in (version, than))
    return one < other


def daemon_files(home: Path | str | None, space: str | None) -> DaemonFiles | None:
    """Return the place that the command line and the environment name; None if that is no path for a home."""
    try:
        named = expand_path(str(home), "--home") if home else home_of_environment(os.environ.get(HOME_VARIABLE))
    except InvalidInput:
        return None
    folder, space = named.absolute(), space or os.environ.get(f"{_PREFIX}SPACE") or None
    if home_problem(folder) and not os.environ.get(f"{_PREFIX}STORE"):
        return None
    try:
        config = read_regular(folder / "config.toml", _LARGEST_CONFIG)
    except OSError:
        config = b""
    variables = sorted(item for item in os.environ.items() if item[0].startswith(_PREFIX))
    told = json.dumps([__version__, str(folder), space, variables]).encode("utf-8", "surrogatepass")
    return DaemonFiles(folder, space, blake2b(told + config, digest_size=8).hexdigest())


@dataclass(frozen=True, slots=True)
class DaemonEndpoint:
    """The content of an endpoint file: where a daemon listens, and the token that proves it is the right one."""

    pid: int
    port: int
    token: str
    version: str

    @classmethod
    def read(cls, file: Path) -> DaemonEndpoint | None:
        """Return the content of a file; None if it is missing or invalid."""
        try:
            held = json.loads(read_regular(file, _LARGEST_CONFIG))
            there = cls(int(held["pid"]), int(held["port"]), str(held["token"]), str(held["version"]))
        except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return None
        return there if 0 < there.port < 2**16 else None

    def write(self, file: Path) -> None:
        """Write the file whole, for this user alone."""
        beside = file.with_name(f".{file.name}.{self.pid}.tmp")
        told = {"pid": self.pid, "port": self.port, "token": self.token, "version": self.version}
        with open_private(beside, "wb") as opened:
            opened.write(json.dumps(told).encode())
        beside.replace(file)


def proof(token: str, role: str, nonce: bytes) -> bytes:
    """Return what only a holder of the token can answer to a nonce; the roles cannot answer for each other."""
    return blake2b(nonce, key=token.encode(), person=role.encode()[:16], digest_size=16).hexdigest().encode()


def same(one: bytes, other: bytes) -> bool:
    """Compare two proofs in constant time; `hmac` takes too long to import."""
    return len(one) == len(other) and not sum(a ^ b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLog:
    """A log to be read, and whose. `flushed`: extraction is asked for then, for the talk is over or to be summed up."""

    log: str
    client: str
    conversation: str
    """The client's own id of it; empty where it is not known."""
    flushed: bool = False

    def leave(self, place: DaemonFiles) -> None:
        """Write it down for the place's space; a later note of the same log takes its place.

        Raises OSError, also if the folders of the place are gone: a running daemon must not make a deleted home again.
        """
        file = self._file(place)
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        with open_private(beside, "wb") as opened:
            opened.write(self._told(place))
        beside.replace(file)

    def withdraw(self, place: DaemonFiles) -> None:
        """Take it away, unless another was left meanwhile."""
        file = self._file(place)
        try:
            if read_regular(file) == self._told(place):
                remove_own(file)
        except OSError:
            return

    def _file(self, place: DaemonFiles) -> Path:
        about = f"{place.space or ''}\n{self.log}".encode("utf-8", "surrogatepass")
        return place.waiting / f"{blake2b(about, digest_size=8).hexdigest()}.json"

    def _told(self, place: DaemonFiles) -> bytes:
        return json.dumps({**asdict(self), "space": place.space}).encode()


def pending_logs(place: DaemonFiles) -> list[PendingLog]:
    """Return the notes that were left for the place's space; what makes no sense is removed."""
    found: list[PendingLog] = []
    for file in sorted(place.waiting.glob("*.json")):
        try:
            held = json.loads(read_regular(file))
            log, client, conversation = (str(held[name]) for name in ("log", "client", "conversation"))
            note = PendingLog(log=log, client=client, conversation=conversation, flushed=held["flushed"] is True)
            found += [note] if held["space"] == place.space else []
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            with suppress(OSError):  # a folder of that name stays
                remove_own(file)
    return found


_LATELY = timedelta(days=7)
_LARGEST_LOG = 2**24
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (?:WARNING|ERROR) [\w.]+: (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The hooks of a home: how many daemons seem to run, and the failures of the last week, oldest first."""

    used: bool
    residents: int
    failures: list[str]
    log: Path


def health(home: Path, *, now: datetime) -> Health:
    """Return how the hooks of a home are. `now` is the local time, as in the log."""
    log = log_of(home)
    lines, unreadable = list[str](), list[str]()
    try:
        lines = read_regular(log, _LARGEST_LOG).decode(errors="replace").splitlines()
    except FileNotFoundError:
        pass
    except OSError as error:
        unreadable = [f"{now:%Y-%m-%d %H:%M:%S} The log of the hooks cannot be read: {error.strerror}"]
    entries = [entry for entry in map(_ENTRY.fullmatch, lines) if entry]
    failures = [f"{entry[1]} {entry[2]}" for entry in entries if datetime.fromisoformat(entry[1]) > now - _LATELY]
    residents = sum(1 for file in endpoint_files(home) if DaemonEndpoint.read(file))
    return Health(used=log.parent.is_dir(), residents=residents, failures=[*failures, *unreadable], log=log)
