"""Which folders are one project, and the space of its memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.projects import Project, find_project, project_of, repository_name
from mcp_memory.core.text import safe_name


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def make_repository(root: Path, *, remote: str = "") -> Path:
    root.mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "--message", "first")
    if remote:
        git(root, "remote", "add", "origin", remote)
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without a remote."""
    root = make_repository(tmp_path / "web")
    (root / "src" / "deep").mkdir(parents=True)
    return root


# --- names of remotes -------------------------------------------------------------------------------

words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True)
hosts = st.builds("{}.{}".format, words, st.sampled_from(["com", "example.org", "internal"]))
paths = st.lists(words, min_size=1, max_size=4).map("/".join)


@given(hosts, paths, words, st.integers(1, 65_535))
def test_all_urls_of_a_repository_have_one_name(host: str, path: str, user: str, port: int) -> None:
    name = f"{host.lower()}/{path}"
    urls = [
        f"https://{host}/{path}",
        f"https://{user}:s3cret@{host.upper()}:{port}/{path}.git",
        f"http://{host}/{path}/",
        f"ssh://{user}@{host}:{port}/{path}.git/",
        f"git://{host}//{path}.git",
        f"git+ssh://{user}@{host}/{path}",
        f"{user}@{host}:{path}.git",
        f"{host.title()}:/{path}",
        f" https://{host}/{path}.git?a=b#c ",
    ]
    assert {repository_name(url) for url in urls} == {name}
    assert repository_name(f"https://{name}") == name


@given(st.text())
def test_any_text_may_be_a_url(text: str) -> None:
    name = repository_name(text)
    assert name is None or "/" in name


@given(st.text(), st.text())
def test_every_project_has_a_space(name: str, title: str) -> None:
    space = Project(name, title).space
    assert safe_name(space, what="space") == space
    assert Project(name, title).space == space


@pytest.mark.parametrize(
    "path",
    ["/srv/web.git", "../web", "web", "C:\\code\\web", "C:/code/web", "file:///srv/web.git", "", "https://", "a:"],
)
def test_a_path_is_no_name_of_a_remote(path: str) -> None:
    assert repository_name(path) is None


# --- repositories -----------------------------------------------------------------------------------


def test_all_folders_of_a_repository_are_one_project(repository: Path) -> None:
    assert find_project(repository / "src" / "deep") == find_project(repository)
    assert find_project(repository).title == "web"


def test_a_repository_is_named_by_its_remote(tmp_path: Path) -> None:
    one = make_repository(tmp_path / "one", remote="git@GitHub.com:owner/web.git")
    other = make_repository(tmp_path / "other", remote="https://me:key@github.com/owner/web")
    assert find_project(one) == find_project(other) == Project("github.com/owner/web", "web")
    git(one, "remote", "rename", "origin", "upstream")
    assert project_of(one) == "github.com/owner/web"
    git(one, "remote", "add", "origin", "https://github.com/me/web")
    assert project_of(one) == "github.com/me/web"


def test_two_repositories_of_one_name_have_different_spaces(tmp_path: Path) -> None:
    spaces = [
        find_project(make_repository(tmp_path / owner / "web", remote=f"https://example.org/{owner}/web")).space
        for owner in ("anna", "ben")
    ]
    assert len(set(spaces)) == 2
    assert all(space.startswith("web-") for space in spaces)


def test_worktrees_and_clones_share_the_project(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "../elsewhere")
    git(tmp_path, "clone", "web", "copy")
    git(tmp_path, "clone", f"file://{tmp_path}/copy", "copy-of-the-copy")
    git(tmp_path, "clone", "--bare", "web", "web.git")
    git(tmp_path / "web.git", "worktree", "add", "../branch")
    folders = [
        repository,
        *(tmp_path / name for name in ("elsewhere", "copy", "copy-of-the-copy", "web.git", "branch")),
    ]
    assert {find_project(folder) for folder in folders} == {find_project(repository)}
    git(repository, "remote", "add", "origin", "https://example.org/owner/web")
    assert {find_project(folder) for folder in folders} == {Project("example.org/owner/web", "web")}


def test_without_a_remote_the_first_commit_names_the_repository(repository: Path, tmp_path: Path) -> None:
    commit = project_of(repository)
    assert len(commit) == 40
    git(tmp_path, "clone", "web", "other")
    git(tmp_path / "other", "remote", "remove", "origin")
    git(tmp_path / "other", "commit", "--allow-empty", "--message", "second")
    assert project_of(tmp_path / "other") == commit


def test_the_path_names_a_repository_that_git_cannot_read(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init")
    assert project_of(tmp_path / "new") == str((tmp_path / "new").resolve())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_of(repository) == str(repository.resolve())


def test_git_is_not_asked_about_another_repository_by_a_hook_of_git(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    git(other, "commit", "--amend", "--allow-empty", "--message", "another")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert project_of(repository) != project_of(other)


def test_repositories_that_were_cloned_from_each_other_have_a_name(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "web", "copy")
    git(repository, "remote", "add", "origin", str(tmp_path / "copy"))
    git(tmp_path / "copy", "remote", "set-url", "origin", str(repository))
    assert project_of(repository) == project_of(tmp_path / "copy")
    git(repository, "remote", "set-url", "origin", str(repository))
    assert len(project_of(repository)) == 40


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = make_repository(tmp_path / "outer", remote="https://example.org/owner/outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "inner")
    assert project_of(outer / "inner") == project_of(repository)
    assert project_of(outer) == "example.org/owner/outer"


def test_a_repository_of_settings_in_the_home_folder_is_not_the_project_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_repository(tmp_path / "home", remote="https://example.org/me/dotfiles")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert project_of(home / "web") == str((home / "web").resolve())
    assert project_of(home) == "example.org/me/dotfiles"


def test_folders_of_the_same_name_without_a_repository_are_different_projects(tmp_path: Path) -> None:
    one, two = (find_project(tmp_path / name / "web") for name in ("one", "two"))
    assert (one.title, two.title) == ("web", "web")
    assert one.space != two.space


@pytest.mark.parametrize("content", [b"", b"gitdir: /nowhere/at/all", b"\xff\xfe", b"gitdir: \0", b"x" * 100_000])
def test_a_folder_with_a_broken_git_file_is_still_a_project(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert project_of(tmp_path).startswith(str(tmp_path.resolve()))


@pytest.mark.parametrize(
    "config", [b"", b"\xff[remote", b'[remote "origin"]', b'[remote "origin"]\n\turl =\n', b'[remote "a"]\nurl = \0']
)
def test_a_repository_with_a_strange_configuration_is_still_a_project(tmp_path: Path, config: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(config)
    assert project_of(tmp_path).startswith(str(tmp_path.resolve()))


def test_a_folder_that_is_gone_or_no_path_still_has_a_project(tmp_path: Path) -> None:
    assert project_of(tmp_path / "gone" / "deeper") == str((tmp_path / "gone" / "deeper").resolve())
    assert project_of(Path("a\0b")) == "a\0b"
