"""Which folders are one project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mcp_memory.core.projects import project_of


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "web"
    (root / "src" / "deep").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "--message", "first")
    return root


def test_all_folders_of_a_repository_are_one_project(repository: Path) -> None:
    assert project_of(repository / "src" / "deep") == project_of(repository) == str(repository.resolve())


def test_a_worktree_belongs_to_its_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "../elsewhere")
    assert project_of(tmp_path / "elsewhere") == project_of(repository)


def test_a_worktree_of_a_bare_repository_belongs_to_it(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--bare", "web", "web.git")
    git(tmp_path / "web.git", "worktree", "add", "../branch")
    assert project_of(tmp_path / "branch") == str((tmp_path / "web.git").resolve())


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "inner")
    assert project_of(outer / "inner") == str((outer / "inner").resolve())
    assert project_of(outer) == str(outer.resolve())


def test_folders_of_the_same_name_without_a_repository_are_different_projects(tmp_path: Path) -> None:
    folders = tmp_path / "one" / "web", tmp_path / "two" / "web"
    assert project_of(folders[0]) != project_of(folders[1])


@pytest.mark.parametrize("content", [b"", b"gitdir: /nowhere/at/all", b"\xff\xfe", b"gitdir: \0", b"x" * 100_000])
def test_a_folder_with_a_broken_git_file_is_still_a_project(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert project_of(tmp_path).startswith(str(tmp_path.resolve()))


def test_a_folder_that_is_gone_or_no_path_still_has_a_project(tmp_path: Path) -> None:
    assert project_of(tmp_path / "gone" / "deeper") == str((tmp_path / "gone" / "deeper").resolve())
    assert project_of(Path("a\0b")) == "a\0b"
