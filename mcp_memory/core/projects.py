"""Projects: which folders belong together.

A session belongs to the project of the folder in which its client was started. A git repository is one project, with
all its folders, worktrees and clones; any other folder is a project of its own. A repository is named by its remote
(`github.com/owner/web`); without one by its first commit; without commits by its path. A clone of a local repository
belongs to the project of that repository.

The root folder, the repository of a worktree and the remote are read from git's files, because hooks cannot wait for a
process at each prompt. Only the first commit is asked of `git`, once a process: commits may be in packs. Without git,
or if it does not answer in time, the path is the name.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.text import normalize, safe_name

_MAX_FILE = 4_096
_MAX_CONFIG = 2**20
_GITDIR = re.compile(r"gitdir: *(.+)")
_GIT_TIMEOUT_S = 2.0
_MAX_CLONES = 8  # clones of clones that are followed to the first repository


class Project(NamedTuple):
    """A project: its name, the same for all its folders, and the name of its repository or folder, for people."""

    name: str
    title: str

    @property
    def space(self) -> str:
        """The space of the project's memory, such as `web-3f9a2c`: `title` in a readable form and a hash of `name`."""
        slug = re.sub(r"[\W_]+", "-", normalize("NFC", self.title).casefold())[:24].strip("-") or "project"
        digest = blake2b(self.name.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
        return safe_name(f"{slug}-{digest}", what="space")


def project_of(folder: Path) -> str:
    """Return the name of the project of a folder, which may be deleted. Never raises OSError."""
    return find_project(folder).name


def find_project(folder: Path) -> Project:
    """Return the project of a folder, which may be deleted. Never raises OSError.

    A repository in the user's home folder, which keeps their settings, is no project of the folders below it.
    """
    try:
        folder = folder.resolve()
        home = Path.home()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a link to itself, or no home; ValueError: a NUL
        return Project(str(folder), folder.name)
    for root in (folder, *folder.parents):
        if root == home and root != folder:
            break
        with suppress(OSError, ValueError):
            if (repository := _repository_at(root)) is not None:
                return _project_of_repository(*repository)
    return Project(str(folder), folder.name)


# --- repositories ----------------------------------------------------------------------------------


def _repository_at(root: Path) -> tuple[Path, Path] | None:
    """Return the main folder of the repository with this root, and the folder of its data; None without a repository.

    The main folder of a worktree is that of the repository which it belongs to, and that of a bare repository is the
    repository. Raises OSError or ValueError if git's files cannot be read.
    """
    git = root / ".git"
    if git.is_dir():
        return root, git
    if git.is_file():
        match = _GITDIR.match(read_regular(git, _MAX_FILE).decode())
        if match is None:
            return root, git
        data = root / match[1].strip()
        with suppress(FileNotFoundError):  # a submodule has no such file
            common = (data / read_regular(data / "commondir", _MAX_FILE).decode().strip()).resolve()
            return (common.parent if common.name == ".git" else common), common
        return root, data
    is_bare = (root / "HEAD").is_file() and (root / "objects").is_dir() and (root / "refs").is_dir()
    return (root, root) if is_bare else None


def _project_of_repository(root: Path, data: Path) -> Project:
    for _ in range(_MAX_CLONES):
        url = _remote_url(data)
        if name := repository_name(url):
            return Project(name, name.rpartition("/")[2])
        origin = _local_repository(root, url)
        if origin is None or origin[0] == root:
            break
        root, data = origin
    commit = _first_commit(root) if data.is_dir() and not (data / "shallow").exists() else None
    return Project(commit or str(root), root.name.removesuffix(".git"))


def _local_repository(root: Path, url: str) -> tuple[Path, Path] | None:
    """Return the repository in a folder of this machine that a remote names, relative to `root`; None without one."""
    path = unquote(url[7:]) if url.lower().startswith("file://") else url
    if not path:
        return None
    try:
        return _repository_at((root / path).resolve())
    except (OSError, RuntimeError, ValueError):
        return None


_SECTION = re.compile(r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_URL = re.compile(r"(?:.*\])?\s*url\s*=\s*(.*)", re.IGNORECASE)


def _remote_url(data: Path) -> str:
    """Return the URL of the remote `origin`, else of the first remote; empty without remotes."""
    try:
        lines = read_regular(data / "config", _MAX_CONFIG).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    urls: dict[str, str] = {}
    for remote, url in _remotes(lines):
        urls.setdefault(remote, url)  # of several URLs of a remote, git fetches the first
    return urls.get("origin") or next(iter(urls.values()), "")


def _remotes(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the remotes in a configuration of git with their URLs."""
    remote: str | None = None
    for line in lines:
        if line.lstrip().startswith("["):
            section = _SECTION.match(line.lstrip())
            remote = section[1] if section else None
        if remote is not None and (url := _URL.fullmatch(line)) and (value := url[1].strip().strip('"').strip()):
            yield remote, value


def _first_commit(root: Path) -> str | None:
    """Return the hash of the first commit of a repository, of several the oldest; None if git does not tell it."""
    try:
        return _ask_git_for_first_commit(root)
    except (OSError, ValueError, IndexError, subprocess.CalledProcessError):
        return None


@lru_cache(256)
def _ask_git_for_first_commit(root: Path) -> str | None:
    """Return what `_first_commit` does, or None if git takes too long, in which case it is not asked again.

    Git gets no prompt, no network and no variables of a hook that runs us, and refuses repositories of other users.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
    command = ["git", "-c", "protocol.allow=never", "rev-list", "--max-parents=0", "HEAD"]
    run = partial(subprocess.run, cwd=root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    try:
        return run(command, timeout=_GIT_TIMEOUT_S).stdout.decode().split()[-1]
    except subprocess.TimeoutExpired:
        return None


# --- remotes ---------------------------------------------------------------------------------------

_SCP = re.compile(r"(?:[^\s/@:]+@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/@:\[\]]{2,}):(?!//)(?P<path>.+)")


def repository_name(url: str) -> str | None:
    """Return the name of the repository at a URL, `host/owner/name`; None if it is on this machine, or no repository.

    It is the same for all protocols, users, passwords, ports, cases of the host, and with and without `.git`.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    except ValueError:
        return None
    if "://" not in url:
        scp = _SCP.fullmatch(url)
        if scp is None:
            return None
        host, path = scp["host"].strip("[]").lower(), scp["path"]
    elif parts.scheme.lower() == "file":
        return None
    names = [part for part in unquote(path).strip().split("/") if part]
    if names and names[-1] != ".git":
        names[-1] = names[-1].removesuffix(".git")
    elif names:
        names.pop()
    return "/".join([host, *names]) if host and names else None
