"""Where a hook and the resident find each other, and how each knows that the other is the right one.

A resident listens on loopback and says where in `<home>/hooks/<key>.json`, which its user alone can read; the key is a
hash of all that the settings come from, so that hooks with other settings have a resident of their own. A file may be
left from a process that was killed, and its port be another program's by now. So each side proves first that it knows
the token of the file, without telling it: a caller sends nothing that was said before the other has.

Standard library only, and little of it: every hook waits for these imports.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from mcp_memory import __version__
from mcp_memory.core.regular_files import read_regular

__all__ = [
    "ACKNOWLEDGED",
    "PROTOCOL",
    "Place",
    "Rendezvous",
    "is_older",
    "log_of",
    "make_folders",
    "place_of",
    "proof",
    "residents_of",
    "same",
]

PROTOCOL = b"mcp-memory-hook/1"
"""What a hook says first, with a nonce. See `client` and `resident` for what follows."""

ACKNOWLEDGED = b"\n"
"""What a hook says last, when it has the answer."""

_PREFIX = "MCP_MEMORY_"
_LARGEST_CONFIG = 2**20


@dataclass(frozen=True, slots=True)
class Place:
    """A home, the space that the command line or the environment names (if one does), and the key of its settings."""

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


def residents_of(home: Path) -> list[Path]:
    """Return the files of the residents of a home, whatever their settings; some may be left from what was killed."""
    return sorted(_folder_of(home).glob("*.json"))


def make_folders(place: Place) -> None:
    """Make the folders of a place that are not there, for this user alone. Raises OSError."""
    for folder in (place.home, place.folder, place.waiting):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def is_older(version: str, than: str) -> bool:
    """Tell whether a version was released before another one, as far as their numbers tell."""
    one, other = ([int(number) for number in re.findall(r"\d+", text)] for text in (version, than))
    return one < other


def place_of(home: Path | str | None, space: str | None) -> Place | None:
    """Return the place that the command line and the environment name; None where there is no home folder at all."""
    named = os.path.expanduser(home or os.environ.get(f"{_PREFIX}HOME") or "~/.mcp-memory")  # noqa: PTH111 never raises
    if str(named).startswith("~"):
        return None
    folder, space = Path(named).absolute(), space or os.environ.get(f"{_PREFIX}SPACE") or None
    try:
        config = read_regular(folder / "config.toml", _LARGEST_CONFIG)
    except OSError:
        config = b""
    variables = sorted(item for item in os.environ.items() if item[0].startswith(_PREFIX))
    told = json.dumps([__version__, str(folder), space, variables]).encode("utf-8", "surrogatepass")
    return Place(folder, space, blake2b(told + config, digest_size=8).hexdigest())


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """What the file says: where a resident listens, and what proves that it is the one."""

    pid: int
    port: int
    token: str
    version: str

    @classmethod
    def read(cls, file: Path) -> Rendezvous | None:
        """Return what a file says, or None where there is none that makes sense."""
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
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as opened:
            json.dump(told, opened)
        beside.replace(file)


def proof(token: str, role: str, nonce: bytes) -> bytes:
    """Return what only a holder of the token can answer to a nonce; the roles cannot answer for each other."""
    return blake2b(nonce, key=token.encode(), person=role.encode()[:16], digest_size=16).hexdigest().encode()


def same(one: bytes, other: bytes) -> bool:
    """Compare two proofs in a time that tells nothing of where they differ; `hmac` takes too long to import."""
    return len(one) == len(other) and not sum(a ^ b for a, b in zip(one, other, strict=True))
