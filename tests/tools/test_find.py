from __future__ import annotations

import os
from pathlib import Path

from pi_notebook.tools._ls import ListDetails

from .conftest import Tools
from .test_walk import make_files


def test_names_are_found_at_any_depth(tools: Tools, root: Path) -> None:
    make_files(root, "a.csv", "data/b.csv", "data/deep/c.CSV", "data/d.txt")
    result = tools.find.call(pattern="*.csv")
    assert result.text == "a.csv\ndata/b.csv"
    assert result.details == ListDetails(".", 2, False)


def test_paths_are_matched_from_the_folder_searched(tools: Tools, root: Path) -> None:
    make_files(root, "src/a.py", "src/b/c.py", "lib/src/d.py")
    assert tools.find.call(pattern="src/**/*.py").text == "src/a.py\nsrc/b/c.py"
    assert tools.find.call(pattern="b/*.py", path="src").text == "src/b/c.py"


def test_folders_are_marked_and_links_are_found(tools: Tools, root: Path) -> None:
    make_files(root, "data/data.txt")
    (root / "data2").symlink_to("data")
    assert tools.find.call(pattern="data*").text == "data/\ndata/data.txt\ndata2"
    assert tools.find.call(pattern="data*/").text == "data/"


def test_what_git_ignores_is_left_out(tools: Tools, root: Path) -> None:
    make_files(root, "a.py", "venv/b.py", ".git/c.py")
    (root / ".gitignore").write_text("venv\n")
    assert tools.find.call(pattern="*.py").text == "a.py"


def test_nothing_found_says_so(tools: Tools) -> None:
    result = tools.find.call(pattern="*.x")
    assert not result.is_error
    assert result.text == "Nothing matches *.x in the root folder."


def test_the_limit_is_named(tools: Tools, root: Path) -> None:
    make_files(root, *(f"f{n:04}" for n in range(1_005)))
    result = tools.find.call(pattern="f*")
    assert result.details == ListDetails(".", 1_000, True)
    assert result.text.endswith(
        "f0999\n\n[Stopped at 1,000 results; there are more: use a narrower pattern or raise limit.]"
    )
    assert tools.find.call(pattern="f*", limit=2).text.startswith("f0000\nf0001\n\n[")
    assert tools.find.call(pattern="f*", limit=1_005).details == ListDetails(".", 1_005, False)


def test_long_results_are_cut_at_fifty_kilobytes(tools: Tools, root: Path) -> None:
    make_files(root, *(f"{'x' * 200}{n:03}" for n in range(300)))
    text = tools.find.call(pattern="*").text
    assert len(text.encode()) < 52_000
    assert text.endswith("left out; use a narrower pattern.]")


def test_errors(tools: Tools, root: Path) -> None:
    (root / "f").touch()
    assert tools.find.call(pattern="*", path="f").text == "f is a file; give the folder to search."
    assert tools.find.call(pattern="*", path="no").text == "There is no file no. Look with ls or find."
    assert "outside" in tools.find.call(pattern="*", path="..").text
    assert tools.find.call(pattern="").is_error


def test_odd_names_are_on_one_line_each(tools: Tools, root: Path) -> None:
    (root / "a\nb").touch()
    (root / os.fsdecode(b"\xff")).touch()
    assert tools.find.call(pattern="*").text == '"a\\nb"\n"\\xff"'
