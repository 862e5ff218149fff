from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_notebook.ai.abort import AbortController, Aborted
from pi_notebook.tools._paths import Workspace
from pi_notebook.tools._walk import Walk

from .conftest import names


def make(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_files(root: Path, *names: str) -> None:
    make(root, **dict.fromkeys(names, ""))


def walked(root: Path, start: str = ".") -> list[str]:
    workspace = Workspace(root)
    return [found.path + ("/" if found.is_folder else "") for found in Walk(workspace, workspace.find(start))]


def test_folders_come_before_what_is_in_them_sorted_by_name(root: Path) -> None:
    make_files(root, "b/x", "a.txt", "B/y", "b.txt", ".hidden/z")
    assert walked(root) == [".hidden/", ".hidden/z", "B/", "B/y", "a.txt", "b/", "b/x", "b.txt"]


def test_links_are_seen_and_not_followed(root: Path) -> None:
    make_files(root, "d/f")
    (root / "link").symlink_to("d")
    (root / "up").symlink_to("..")
    (root / "d" / "loop").symlink_to(".")
    assert walked(root) == ["d/", "d/f", "d/loop", "link", "up"]


def test_git_s_own_folder_is_passed_over(root: Path) -> None:
    make_files(root, ".git/config", "a", "sub/.git/x", ".github/y")
    assert walked(root) == [".github/", ".github/y", "a", "sub/"]


def test_rules_of_inner_folders_win(root: Path) -> None:
    make_files(root, "a.log", "sub/a.log", "sub/keep.log", "sub/deep/keep.log")
    (root / ".gitignore").write_text("*.log\n")
    (root / "sub" / ".gitignore").write_text("!keep.log\n")
    assert walked(root) == [".gitignore", "sub/", "sub/.gitignore", "sub/deep/", "sub/deep/keep.log", "sub/keep.log"]


def test_rules_above_the_start_count_up_to_the_top_of_the_repository(root: Path) -> None:
    make_files(root, "repo/.git/HEAD", "repo/src/a.log", "repo/src/a.txt", "repo/src/b.txt")
    (root / ".gitignore").write_text("a.txt\n")
    (root / "repo" / ".gitignore").write_text("*.log\n/src/b.txt\n")
    assert walked(root, "repo/src") == ["a.txt"]


def test_the_repository_s_rules_count_also_above_the_root(root: Path) -> None:
    make_files(root.parent, ".git/HEAD", "root/a.log", "root/b.txt")
    (root.parent / ".gitignore").write_text("*.log\n")
    assert walked(root) == ["b.txt"]


def test_an_ignored_folder_can_be_asked_for_by_name(root: Path) -> None:
    make_files(root, "build/x/a", "build/b.tmp")
    (root / ".gitignore").write_text("build/\n")
    (root / "build" / ".gitignore").write_text("*.tmp\n")
    assert walked(root) == [".gitignore"]
    assert walked(root, "build") == [".gitignore", "x/", "x/a"]
    assert walked(root, "build/x") == ["a"]


def test_a_gitignore_that_cannot_be_used_is_no_obstacle(root: Path) -> None:
    make_files(root, "a", "b")
    (root / ".gitignore").write_bytes(b"\xff\xfe\n[\n!\n\\\n   \n#b\nb\n")
    assert walked(root) == [".gitignore", "a"]
    (root / ".gitignore").unlink()
    (root / ".gitignore").mkdir()
    assert walked(root) == [".gitignore/", "a", "b"]
    (root / ".gitignore").rmdir()
    os.mkfifo(root / ".gitignore")
    assert walked(root) == [".gitignore", "a", "b"]
    (root / ".gitignore").unlink()
    (root.parent / "rules").write_text("a\n")
    (root / ".gitignore").symlink_to("../rules")
    assert walked(root) == [".gitignore", "a", "b"]


def test_a_deep_tree_is_walked(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root)
    try:
        for _ in range(300):
            Path("d" * 30).mkdir()
            os.chdir("d" * 30)
        Path("leaf").touch()
    finally:
        os.chdir(here)
    assert walked(root)[-1].endswith("/leaf")
    assert len(walked(root)) == 301


def test_more_open_folders_than_the_system_allows_are_named(root: Path) -> None:
    import resource

    path = root
    for _ in range(60):
        path = path / "d"
    path.mkdir(parents=True)
    workspace = Workspace(root)
    walk = Walk(workspace, root)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(names(Path("/proc/self/fd"))) + 30, hard))
    try:
        found = list(walk)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 10 < len(found) < 60
    assert len(walk.unreadable) == 1


def test_a_folder_swapped_for_a_link_during_the_walk_is_not_entered(root: Path) -> None:
    outside = root.parent / "outside"
    make_files(root, "a", "d/inside")
    make_files(outside, "secret")
    workspace = Workspace(root)
    walk = Walk(workspace, root)
    paths = []
    for found in walk:
        if found.path == "d":
            (root / "d").rename(root.parent / "old")
            (root / "d").symlink_to(outside)
        paths.append(found.path)
    assert paths == ["a", "d"]
    assert len(walk.unreadable) == 1


def test_a_walk_can_be_ended(root: Path) -> None:
    make_files(root, "a/b")
    controller = AbortController()
    controller.abort()
    with pytest.raises(Aborted):
        list(Walk(Workspace(root), root, controller.signal.raise_if_aborted))


def test_no_descriptor_stays_open(root: Path) -> None:
    make_files(root, "a/b/c", "a/d")
    before = len(names(Path("/proc/self/fd")))
    for found in Walk(Workspace(root), root):
        if found.path == "a/b/c":
            break
    walked(root)
    assert len(names(Path("/proc/self/fd"))) == before


NAMES = st.sampled_from(["a", "b", "ab", "a.x", "b.x", "c d"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
RULES = st.lists(
    st.builds(
        lambda bang, lead, body, tail: bang + lead + body + tail,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "", "/", "**/", "a/"]),
        st.sampled_from(
            [
                "a",
                "b",
                "*.x",
                "a*",
                "?",
                "[ab]",
                "**",
                "a/**",
                "*/b",
                "c d",
                "a/**/b",
                "!\\ax",
                r"\a",
                "[[:alpha:]]",
                "[!a]",
                "b/**/**/a",
                "/**/a",
            ]
        ),
        st.sampled_from(["", "", "/", "/*", "   "]),
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repo")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@settings(max_examples=120, deadline=None)
@given(st.lists(PATHS, min_size=1, max_size=10), RULES, RULES)
def test_the_same_files_as_git(repository: Path, paths: list[str], top: list[str], inner: list[str]) -> None:
    root = repository
    for old in root.iterdir():
        if old.is_dir() and old.name != ".git":
            shutil.rmtree(old)
        elif old.name != ".git":
            old.unlink()
    for path in paths:
        try:
            make_files(root, path)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    (root / ".gitignore").write_text("\n".join(top))
    if (root / "a").is_dir():
        (root / "a" / ".gitignore").write_text("\n".join(inner))
    command = ["git", "-C", str(root), "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
    out = subprocess.run(command, check=True, capture_output=True).stdout
    expected = sorted(os.fsdecode(name) for name in out.split(b"\0") if name)
    ours = sorted(found.path for found in Walk(Workspace(root), root) if found.is_file)
    assert ours == expected, (top, inner)
