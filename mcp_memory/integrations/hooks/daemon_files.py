"""Where a hook and the daemon find and authenticate each other; pending logs; the health of hooks.

A daemon listens on loopback and writes its port and a token to `<home>/hooks/<key>.json`, readable for its user alone.
The key is a hash of all settings, and of the variables with keys of models' providers if a model is set, so hooks and
clients with others have another daemon. The file may be left from a killed process, whose port another program may use
by now. So each side first proves that it knows the token, without sending it: a caller sends nothing before the daemon
has proven itself.

A hook saves a `PendingLog` if no daemon takes its event, and the daemon saves a note for every log it has yet to read,
so that the next daemon of the same space reads it. Standard library only, because every hook waits for these imports.
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
from mcp_memory.core.config_file import PREFIX, read_config
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.hook_outcomes import hooks_folder, outcomes_log
from mcp_memory.core.paths import HOME_VARIABLE, expand_path, home_of_environment, home_problem
from mcp_memory.core.private_files import make_folder, replace_private
from mcp_memory.core.regular_files import read_regular, remove_own

PROTOCOL = b"mcp-memory-hook/1"
"""The first word of a hook, followed by a nonce. For the reply see `daemon_client.connect` and `Daemon._serve`."""

CLIENT_PROTOCOL = b"mcp-memory-stdio/1"
"""The same of a bridge. After the proofs it sends the default session of its client, then the client's lines."""

SHARED = f"{PREFIX}SHARED"
"""The variable of the setting `shared`."""

ACKNOWLEDGED = b"\n"
"""The last byte from a hook: it has received the answer."""

NO_ANSWER = b"-1 %b\n"
"""In place of an answer's length: the answer is late, or failed, with the cause in a few words."""
MAX_HEAD = 300
"""Bytes of the line with the length or the cause."""

_MAX_CONFIG = 2**20
_PROVIDER = re.compile(
    r"^PATH$|_(API_KEY|API_BASE|BASE_URL|REGION|ACCESS_KEY(_ID)?|SESSION_TOKEN|CREDENTIALS|PROXY)$", re.IGNORECASE
)
"""Variables from which models' libraries take keys and addresses, or that find the client that acts as a model."""


@dataclass(frozen=True, slots=True)
class DaemonFiles:
    """The files of a daemon of `home` with the settings `key`; the command line or environment may name a `space`."""

    home: Path
    space: str | None
    key: str

    @property
    def folder(self) -> Path:
        return hooks_folder(self.home)

    @property
    def file(self) -> Path:
        return self.folder / f"{self.key}.json"

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.key}.lock"

    @property
    def failed(self) -> Path:
        """An empty file whose modification time is that of the last failed start."""
        return self.folder / f"{self.key}.failed"

    @property
    def waiting(self) -> Path:
        """The folder of pending logs."""
        return self.folder / "waiting"

    @property
    def log(self) -> Path:
        return log_of(self.home)


def log_of(home: Path) -> Path:
    """Return the log file of a home's daemons."""
    return hooks_folder(home) / "hooks.log"


def endpoint_files(home: Path) -> list[Path]:
    """Return the endpoint files of all daemons of a home, whatever their settings; some may be stale."""
    return sorted(hooks_folder(home).glob("*.json"))


def make_folders(files: DaemonFiles) -> None:
    """Create missing folders, including the home. Raises OSError if that fails."""
    make_folder(files.waiting)


def is_older(version: str, than: str) -> bool:
    """Return whether `version` is older than `than`, comparing only their numbers."""
    numbers, other_numbers = ([int(number) for number in re.findall(r"\d+", text)] for text in (version, than))
    return numbers < other_numbers


def daemon_files(home: Path | str | None, space: str | None) -> DaemonFiles | None:
    """Return the files for a home and space, by default those of the environment; None if the path cannot be a home."""
    try:
        named = expand_path(str(home), "--home") if home else home_of_environment(os.environ.get(HOME_VARIABLE))
    except InvalidInput:
        return None
    folder, space = named.absolute(), space or os.environ.get(f"{PREFIX}SPACE") or None
    if home_problem(folder) and not os.environ.get(f"{PREFIX}STORE"):
        return None
    try:
        config = read_regular(folder / "config.toml", _MAX_CONFIG)
    except OSError:
        config = b""
    has_model = re.search(b"llm|embedder", config) or {f"{PREFIX}LLM", f"{PREFIX}EMBEDDER"} & os.environ.keys()
    variables = sorted(
        item for item in os.environ.items() if item[0].startswith(PREFIX) or (has_model and _PROVIDER.search(item[0]))
    )
    identity = json.dumps([__version__, str(folder), space, variables]).encode("utf-8", "surrogatepass")
    return DaemonFiles(folder, space, blake2b(identity + config, digest_size=8).hexdigest())


def is_shared(home: Path) -> bool:
    """Return whether the clients of a home share a server: the setting `shared`, unless the memory is on a server.

    Settings that cannot be read are not shared: the client's own server says what is wrong.
    """
    try:
        config = read_config(home)
    except InvalidInput:
        return False
    shared = os.environ.get(SHARED) or str(config.get("shared", True))
    return shared.lower() in ("true", "1", "yes", "on", "t", "y") and not (
        os.environ.get(f"{PREFIX}SERVER") or config.get("server")
    )


@dataclass(frozen=True, slots=True)
class DaemonEndpoint:
    """The content of an endpoint file: where a daemon listens, and the token that authenticates it."""

    pid: int
    port: int
    token: str
    version: str

    @classmethod
    def read(cls, file: Path) -> DaemonEndpoint | None:
        """Read an endpoint file; None if it is missing or invalid."""
        try:
            fields = json.loads(read_regular(file, _MAX_CONFIG))
            endpoint = cls(int(fields["pid"]), int(fields["port"]), str(fields["token"]), str(fields["version"]))
        except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return None
        return endpoint if 0 < endpoint.port < 2**16 else None

    def write(self, file: Path) -> None:
        """Replace the file atomically, readable for this user alone."""
        replace_private(file, json.dumps(asdict(self)).encode())


def proof(token: str, role: str, nonce: bytes) -> bytes:
    """Return the proof of the token for a nonce; the role is part of it, so no side can replay the proof it got."""
    return blake2b(nonce, key=token.encode(), person=role.encode()[:16], digest_size=16).hexdigest().encode()


def equal(first: bytes, second: bytes) -> bool:
    """Compare two proofs in constant time; `hmac` takes too long to import."""
    return len(first) == len(second) and not sum(a ^ b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLog:
    """A note that a client's log is to be read.

    If `flushed`, extraction is requested afterwards, because the conversation has ended or was compacted.
    """

    log: str
    client: str
    conversation: str
    """The client's id of the conversation, empty if unknown."""
    flushed: bool = False
    folder: str = ""
    """The folder in which the client runs, empty if unknown."""

    def save(self, files: DaemonFiles) -> None:
        """Save the note for the files' space; it replaces an earlier note of the same log.

        Raises OSError, also if the folders are gone: a running daemon must not recreate a deleted home.
        """
        replace_private(self._file(files), self._payload(files))

    def discard(self, files: DaemonFiles) -> None:
        """Delete the note, unless it was replaced meanwhile."""
        file = self._file(files)
        try:
            if read_regular(file) == self._payload(files):
                remove_own(file)
        except OSError:
            return

    def _file(self, files: DaemonFiles) -> Path:
        about = f"{files.space or ''}\n{self.log}".encode("utf-8", "surrogatepass")
        return files.waiting / f"{blake2b(about, digest_size=8).hexdigest()}.json"

    def _payload(self, files: DaemonFiles) -> bytes:
        return json.dumps({**asdict(self), "space": files.space}).encode()


def pending_logs(files: DaemonFiles) -> list[PendingLog]:
    """Delete invalid notes, and return the notes of the files' space."""
    notes: list[PendingLog] = []
    for file in sorted(files.waiting.glob("*.json")):
        try:
            fields = json.loads(read_regular(file))
            log, client, conversation = (str(fields[name]) for name in ("log", "client", "conversation"))
            flushed, folder = fields["flushed"] is True, str(fields.get("folder", ""))
            note = PendingLog(log=log, client=client, conversation=conversation, flushed=flushed, folder=folder)
            notes += [note] if fields["space"] == files.space else []
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            with suppress(OSError):  # it may be a folder
                remove_own(file)
    return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLogs:
    """How many conversations of a home have turns that are not stored yet, and since when; None if there are none."""

    count: int
    since: datetime | None

    def sentence(self, *, server_answers: bool) -> str:
        """Return the queue as a sentence, empty if nothing waits, or no longer than usual for a server that answers."""
        if self.since is None or (server_answers and datetime.now() - self.since < _USUAL):
            return ""
        what = "1 conversation waits" if self.count == 1 else f"{self.count:,} conversations wait"
        return f"{what} to be stored since {self.since:%Y-%m-%d %H:%M}"


def waiting_logs(home: Path) -> WaitingLogs:
    """Return the queue of all spaces of a home, in local time."""
    times: list[float] = []
    for file in (hooks_folder(home) / "waiting").glob("*.json"):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return WaitingLogs(count=len(times), since=datetime.fromtimestamp(min(times)) if times else None)


_USUAL = timedelta(minutes=1)
_RECENT = timedelta(days=7)
_MAX_LOG = 2**24
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (?:WARNING|ERROR) [\w.]+: (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a home's hooks: `residents` daemons seem to run; `failures` are of the last week, oldest first."""

    used: bool
    residents: int
    failures: list[str]
    log: Path


def health(home: Path, *, now: datetime) -> Health:
    """Return the health of a home's hooks. `now` is the local time, as in the log."""
    log = log_of(home)
    lines, unreadable = list[str](), list[str]()
    try:
        lines = read_regular(log, _MAX_LOG).decode(errors="replace").splitlines()
    except FileNotFoundError:
        pass
    except OSError as error:
        unreadable = [f"{now:%Y-%m-%d %H:%M:%S} The log of the hooks cannot be read: {error.strerror}"]
    entries = [entry for entry in map(_ENTRY.fullmatch, lines) if entry]
    failures = [f"{entry[1]} {entry[2]}" for entry in entries if datetime.fromisoformat(entry[1]) > now - _RECENT]
    residents = sum(1 for file in endpoint_files(home) if DaemonEndpoint.read(file))
    failures += unreadable
    used = bool(failures) or outcomes_log(home).exists()
    return Health(used=used, residents=residents, failures=failures, log=log)
