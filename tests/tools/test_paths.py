from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.errors import ToolDefinitionError, ToolError
from pi_notebook.tools._paths import (
    Workspace,
    display,
    is_inside,
    shown,
    spellings,
    unquoted,
    windows_problem,
)


@pytest.mark.parametrize(
    ("root", "path", "inside"),
    [
        (PurePosixPath("/a/b"), PurePosixPath("/a/b"), True),
        (PurePosixPath("/a/b"), PurePosixPath("/a/b/c/d.txt"), True),
        (PurePosixPath("/a/b"), PurePosixPath("/a/bc"), False),
        (PurePosixPath("/a/b"), PurePosixPath("/a"), False),
        (PurePosixPath("/a/b"), PurePosixPath("/a/b/../c"), False),
        (PurePosixPath("/a/b"), PurePosixPath("/A/b/c"), False),
        (PureWindowsPath("C:/a/b"), PureWindowsPath("c:\\A\\B\\c.txt"), True),
        (PureWindowsPath("C:/a/b"), PureWindowsPath("D:/a/b/c.txt"), False),
        (PureWindowsPath("C:/a/b"), PureWindowsPath("C:/a/bc"), False),
        (PureWindowsPath("C:/a/b"), PureWindowsPath("C:/a/b/../c"), False),
        (PureWindowsPath("//server/share/a"), PureWindowsPath("//server/share/a/x"), True),
        (PureWindowsPath("//server/share/a"), PureWindowsPath("//server/other/a/x"), False),
    ],
)
def test_inside_is_decided_by_whole_names(root: PurePosixPath, path: PurePosixPath, inside: bool) -> None:
    assert is_inside(root, path) is inside


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (PurePosixPath("/home/me/p"), PurePosixPath("/home/me/p/src/a b.py")),
        (PureWindowsPath("C:/Users/me/p"), PureWindowsPath("C:\\Users\\me\\p\\src\\a b.py")),
        (PureWindowsPath("//server/share/p"), PureWindowsPath("\\\\server\\share\\p\\src\\a b.py")),
    ],
)
def test_paths_are_displayed_alike_on_every_system(root: PurePosixPath, path: PurePosixPath) -> None:
    assert display(root, path) == "src/a b.py"


@pytest.mark.parametrize(
    "path",
    [
        "nul",
        "src/NUL.txt",
        "com1",
        "aux .c",
        "lpt¹.log",
        "notes.txt:secret",
        "C:notes.txt",
        "//./PhysicalDrive0",
        "\\\\?\\C:\\x",
        "\\??\\C:\\x",
        "name. ",
        "a./b",
    ],
)
def test_windows_names_that_are_no_plain_files_are_refused(path: str) -> None:
    assert windows_problem(path)


@pytest.mark.parametrize("path", ["a.txt", "C:\\a\\b.txt", "C:/a/b", "../x", ".", "nuller.txt", "com10", "src/.env"])
def test_plain_windows_names_are_fine(path: str) -> None:
    assert windows_problem(path) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain name.txt", "plain name.txt"),
        ("naïve—ü.txt", "naïve—ü.txt"),
        ("a\nb.txt", r'"a\nb.txt"'),
        ("a\u202egpj.exe", r'"a\u202egpj.exe"'),
        (os.fsdecode(b"caf\xe9"), r'"caf\xe9"'),
        ('"quoted"', r'"\"quoted\""'),
        ("back\\slash\n", r'"back\\slash\n"'),
    ],
)
def test_names_are_shown_on_one_line(name: str, expected: str) -> None:
    assert shown(name) == expected
    assert unquoted(expected) == name


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_what_is_shown_names_the_same_file_again(name: str) -> None:
    text = shown(name)
    assert "\n" not in text
    text.encode()
    assert unquoted(text) == name


def test_macos_spellings_come_after_the_given_one() -> None:
    assert list(spellings("plain.txt")) == ["plain.txt"]
    screenshot = "Screenshot at 9.41.00 AM.png"
    assert list(spellings(screenshot)) == [screenshot, "Screenshot at 9.41.00\u202fAM.png"]
    assert list(spellings("caf\u00e9's")) == ["caf\u00e9's", "cafe\u0301's", "caf\u00e9\u2019s", "cafe\u0301\u2019s"]


def test_a_decomposed_name_is_found(root: Path) -> None:
    (root / "cafe\u0301.txt").touch()
    assert Workspace(root).find("caf\u00e9.txt").name == "cafe\u0301.txt"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "~", "~/x", "..", "/", "sub/../../root2/x"])
def test_paths_outside_are_refused(root: Path, path: str) -> None:
    with pytest.raises(ToolError, match="outside"):
        Workspace(root).find(path)


def test_the_refusal_says_what_and_why(root: Path) -> None:
    with pytest.raises(ToolError) as caught:
        Workspace(root).find("../x")
    assert str(caught.value) == (
        f"../x is outside {root}, the folder that file tools may not leave "
        "(links count as where they lead). Use a path inside it."
    )


@pytest.mark.parametrize("link", ["file", "folder", "chain"])
def test_links_that_lead_outside_are_refused(root: Path, link: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "chain").symlink_to(root / "folder" / "secret")
    path = "folder/secret" if link == "folder" else link
    with pytest.raises(ToolError, match="outside"):
        Workspace(root).find(path)


def test_dots_after_a_link_count_from_where_it_leads(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to(root / "a" / "b")
    assert Workspace(root).find("link/../x") == root / "a" / "x"


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    (root / "real.txt").touch()
    (root / "link").symlink_to("real.txt")
    assert Workspace(root).find("link") == root / "real.txt"


def test_a_root_that_is_a_link_is_resolved(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    workspace = Workspace(root.parent / "link")
    assert workspace.root == root
    assert workspace.find(str(root.parent / "link" / "x")) == root / "x"


@pytest.mark.parametrize("path", ["a\0b", '"a\\x00b"', "a\ud800", "~\\\ud800"])
def test_characters_that_no_name_can_have_are_refused(root: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        Workspace(root).find(path)
    assert str(caught.value) == f"{shown(path)} holds a character that no file name can have."


def test_a_root_must_be_a_folder(root: Path) -> None:
    (root / "file").touch()
    with pytest.raises(ToolDefinitionError, match="existing folder"):
        Workspace(root / "file")


def test_an_at_sign_before_a_path_is_dropped_unless_it_is_the_name(root: Path) -> None:
    (root / "a.txt").touch()
    (root / "@b.txt").touch()
    workspace = Workspace(root)
    assert workspace.find("@a.txt").name == "a.txt"
    assert workspace.find("@b.txt").name == "@b.txt"


def test_missing_files_come_with_similar_names(root: Path) -> None:
    (root / "sales_2024.csv").touch()
    workspace = Workspace(root)
    error = workspace.missing(workspace.find("sales2024.csv"), "sales2024.csv")
    assert str(error) == "There is no file sales2024.csv. Similar names: sales_2024.csv."


@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"a\nb.txt", b'"q".txt', b"tab\t.txt", b"back\\slash\xff"])
def test_odd_names_can_be_opened_as_they_are_shown(root: Path, name: bytes) -> None:
    assert sys.platform != "win32"
    (root / os.fsdecode(name)).write_text("x")
    workspace = Workspace(root)
    assert os.fsencode(workspace.find(shown(os.fsdecode(name))).name) == name
