"""What may stand in the repository: nothing that ties it to one machine, one registry or one resolver's run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Written in parts, so that this file does not hold what it forbids.
REGISTRIES = [
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))
]
MACHINE_FOLDERS = ["work", "root"]

FORBIDDEN = {
    "the host of a package registry": re.compile("|".join(re.escape(host) for host in REGISTRIES)),
    "a path of somebody's machine": re.compile(
        rf"(?<![\w.<}}])/(?:{'|'.join(MACHINE_FOLDERS)})/|{re.escape(str(ROOT))}\b"
    ),
}
LOCK_FILES = {
    "Cargo.lock",
    "Pipfile.lock",
    "bun.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pylock.toml",
    "uv.lock",
    "yarn.lock",
}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {hit.group()}"
        for path in tracked()
        if (hit := FORBIDDEN[what].search(path.read_bytes().decode("utf-8", errors="replace")))
    ]
    assert found == []


def test_no_lock_file_is_tracked() -> None:
    assert [path for path in tracked() if path.name in LOCK_FILES] == []
