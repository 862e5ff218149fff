from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_notebook.agent.tool import Tool
from pi_notebook.ai.abort import AbortSignal
from pi_notebook.errors import ToolError
from pi_notebook.tools import _matchers
from pi_notebook.tools._grep import GrepDetails, grep_tool
from pi_notebook.tools._matchers import ripgrep
from pi_notebook.tools._paths import Workspace
from pi_notebook.tools._pattern import Pattern, decoded

from .conftest import Tools
from .test_walk import make, make_files


@pytest.fixture(params=["ripgrep", "own"])
def grep(request: pytest.FixtureRequest, root: Path) -> Tool:
    """The tool with each of its two searches; all that is said below holds for both."""
    program = ripgrep()
    assert program, "ripgrep is among the test requirements"
    return grep_tool(Workspace(root), program=program if request.param == "ripgrep" else None)


def test_matches_come_with_path_and_line(grep: Tool, root: Path) -> None:
    make(root, **{"b.txt": "one\ntwo\n", "a/x.txt": "three\none more\n"})
    result = grep.call(pattern="one|thr")
    assert result.text == "a/x.txt:1: three\na/x.txt:2: one more\nb.txt:1: one"
    assert result.details == GrepDetails(matches=3, files=2, more=False, cut_lines=0)


def test_one_file_can_be_searched(grep: Tool, root: Path) -> None:
    make(root, **{"a.txt": "x\n", "b.txt": "x\n"})
    assert grep.call(pattern="x", path="b.txt").text == "b.txt:1: x"
    assert grep.call(pattern="x", path="b.txt", glob="*.py").text == "No matches for x in b.txt."


def test_context_is_shown_once_where_it_overlaps(grep: Tool, root: Path) -> None:
    make(root, f="".join(f"{n}\n" for n in range(1, 21)), g="5\n")
    assert grep.call(pattern="^(5|7|15)$", context=1).text == (
        "f-4- 4\nf:5: 5\nf-6- 6\nf:7: 7\nf-8- 8\n--\nf-14- 14\nf:15: 15\nf-16- 16\n--\ng:1: 5"
    )


def test_case_can_be_ignored(grep: Tool, root: Path) -> None:
    make(root, f="Straße\nÉTÉ\nété\n")
    assert grep.call(pattern="été").text == "f:3: été"
    assert grep.call(pattern="été", ignoreCase=True).text == "f:2: ÉTÉ\nf:3: été"


def test_plain_text_is_no_pattern(grep: Tool, root: Path) -> None:
    make(root, f="a.b(c\nabbc\n")
    assert grep.call(pattern="a.b(c", literal=True).text == "f:1: a.b(c"
    assert grep.call(pattern="-e", literal=True).text == "No matches for -e in the root folder."


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", "a.py s/b.py s/t/c.py"),
        ("s/*.py", "s/b.py"),
        ("s/**", "s/b.py s/d.txt s/t/c.py"),
        ("*.{py,txt}", "a.py s/b.py s/d.txt s/t/c.py"),
        ("!*.py", "s/d.txt"),
        ("b.*", "s/b.py"),
    ],
)
def test_globs_choose_files(grep: Tool, root: Path, glob: str, files: str) -> None:
    make(root, **dict.fromkeys(["a.py", "s/b.py", "s/t/c.py", "s/d.txt"], "x\n"))
    assert grep.call(pattern="x", glob=glob).text.split("\n") == [f"{file}:1: x" for file in files.split()]


def test_ignored_hidden_and_binary_files(grep: Tool, root: Path) -> None:
    make(root, **{".env": "x\n", "a.log": "x\n", "v/b": "x\n", ".git/c": "x\n", "d.txt": "x\n"})
    (root / ".gitignore").write_text("*.log\nv/\n")
    (root / "bin").write_bytes(b"x\0x\n")
    assert grep.call(pattern="x").text == ".env:1: x\nd.txt:1: x"


def test_links_are_not_searched(grep: Tool, root: Path) -> None:
    make(root.parent, secret="x\n")
    (root / "link").symlink_to("../secret")
    (root / "loop").symlink_to(".")
    assert grep.call(pattern="x").text == "No matches for x in the root folder."
    assert "outside" in grep.call(pattern="x", path="link").text


def test_a_pipe_is_not_waited_for(grep: Tool, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert grep.call(pattern="x", path="pipe").text == "pipe is a named pipe, not a file or folder."
    assert grep.call(pattern="x").text == "No matches for x in the root folder."


def test_a_hundred_matches_at_most(grep: Tool, root: Path) -> None:
    make(root, a="x\n" * 60, b="x\n" * 60)
    result = grep.call(pattern="x")
    assert result.details == GrepDetails(matches=100, files=2, more=True, cut_lines=0)
    assert result.text.endswith(
        "b:40: x\n\n[Stopped at 100 matches; there are more: use a narrower pattern, path or glob, or raise limit.]"
    )
    exact = grep.call(pattern="x", limit=120)
    assert exact.details == GrepDetails(matches=120, files=2, more=False, cut_lines=0)
    assert "[" not in exact.text
    assert grep.call(pattern="x", limit=1).text.startswith("a:1: x\n\n[Stopped at 1 match;")


def test_long_lines_are_cut_with_their_size(grep: Tool, root: Path) -> None:
    make(root, f="é" * 1_500 + " needle\nneedle\n", g="needle" + "x" * 3_000_000 + "\n")
    result = grep.call(pattern="needle")
    note = "Long lines are cut to 500 characters; read shows them whole."
    assert result.text == (
        f"f:1: {'é' * 500}… [+2,507 characters]\nf:2: needle\n"
        f"g:1: needle{'x' * 494}… [+2,999,506 characters]\n\n[{note}]"
    )
    assert result.details.cut_lines == 2


def test_all_output_keeps_to_fifty_kilobytes(grep: Tool, root: Path) -> None:
    make(root, f=("needle " + "x" * 480 + "\n") * 1_000)
    text = grep.call(pattern="needle", limit=1_000).text
    assert len(text.encode()) < 52_000
    assert "left out (50 KB limit)" in text


def test_a_pattern_that_is_none_is_an_error(grep: Tool, root: Path) -> None:
    make(root, f="x\n")
    result = grep.call(pattern="a(b")
    assert result.is_error
    assert result.text.startswith("The pattern is no regular expression: missing )")
    assert result.text.endswith("Set literal to true to search for it as plain text.")


def test_looking_around_and_back_works_either_way(grep: Tool, root: Path) -> None:
    make(root, f="ab\nac\nxyx\n")
    assert grep.call(pattern="a(?=c)").text == "f:2: ac"
    assert grep.call(pattern=r"(x)y\1").text == "f:3: xyx"


def test_a_newline_in_the_pattern_is_an_error(grep: Tool) -> None:
    assert grep.call(pattern="a\nb").text == (
        "The pattern holds a newline, but the search goes line by line; search for one of its lines."
    )


def test_windows_line_ends_are_no_text(grep: Tool, root: Path) -> None:
    (root / "f").write_bytes(b"ab\r\nb\r\n")
    assert grep.call(pattern="b$", context=0).text == "f:1: ab\nf:2: b"
    assert grep.call(pattern="^b$").text == "f:2: b"


def test_a_byte_order_mark_is_no_text(grep: Tool, root: Path) -> None:
    (root / "f").write_bytes("\ufeffimport x\n".encode())
    assert grep.call(pattern="^import").text == "f:1: import x"


def test_bytes_that_are_not_utf8_are_shown_as_far_as_they_can(grep: Tool, root: Path) -> None:
    (root / "f").write_bytes(b"caf\xe9 one\n\xff\xfe two\n")
    assert grep.call(pattern="one|two").text == "f:1: caf\ufffd one\nf:2: \ufffd\ufffd two"


def test_odd_names_are_on_one_line(grep: Tool, root: Path) -> None:
    make(root, **{"a\nb:7: x": "x\n", "-e": "x\n"})
    (root / os.fsdecode(b"\xff")).write_text("x\n")
    assert grep.call(pattern="x").text == '-e:1: x\n"a\\nb:7: x":1: x\n"\\xff":1: x'


def test_a_sparse_gigabyte_is_passed_over(grep: Tool, root: Path) -> None:
    make(root, z="needle\n")
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 30)
    assert grep.call(pattern="needle").text == "z:1: needle"


def test_a_file_that_grows_or_goes_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, a="x\n", b="x\n")
    from pi_notebook.tools import _grep

    real = _grep.search_by_ourselves

    def gone(*args: Any) -> Any:
        matcher = real(*args)

        def match(files: Any, limit: int) -> Any:
            found = list(matcher(files, limit))
            (root / "a").unlink(missing_ok=True)
            return iter(found)

        return match

    monkeypatch.setattr(_grep, "search_by_ourselves", gone)
    assert grep_tool(Workspace(root), program=None).call(pattern="x").text == "b:1: x"


def test_a_pattern_that_never_ends_is_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, f="a" * 5_000 + "!\n")
    monkeypatch.setattr(_matchers, "LINE_SECONDS", 0.1)
    started = time.monotonic()
    result = grep_tool(Workspace(root), program=None).call(pattern=r"^(a|a)*\1?b$|^(a+)+$(?=x)")
    assert time.monotonic() - started < 20
    assert result.is_error
    assert result.text.startswith("The pattern takes too long on line 1 of f")


def test_a_search_that_takes_too_long_is_stopped(grep: Tool, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(root, *(f"f{n}" for n in range(50)))
    monkeypatch.setattr(_matchers, "TOTAL_SECONDS", -1)
    monkeypatch.setattr(_matchers, "_too_long", lambda: "too long")
    result = grep.call(pattern="x")
    assert result.text in ("too long", "No matches for x in the root folder.")


def test_many_files_are_searched_in_groups_in_order(grep: Tool, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, **{f"f{n:03}": "x\n" if n % 7 == 0 else "y\n" for n in range(200)})
    monkeypatch.setattr(_matchers, "_BATCH_FILES", 9)
    monkeypatch.setattr(_matchers, "_BATCH_BYTES", 300)
    assert grep.call(pattern="x").text.split("\n") == [f"f{n:03}:1: x" for n in range(0, 200, 7)]


def test_ripgrep_is_optional(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pi_notebook.tools import _grep

    make(root, f="x\n")
    monkeypatch.setattr(_grep, "ripgrep", lambda: None)
    assert tools.grep.call(pattern="x").text == "f:1: x"


def test_a_ripgrep_that_dies_is_replaced(root: Path) -> None:
    make(root, f="x\n")
    program = root.parent / "rg"
    program.write_text("#!/bin/sh\nkill -BUS $$\n")
    program.chmod(0o755)
    assert grep_tool(Workspace(root), program=str(program)).call(pattern="x").text == "f:1: x"


def test_settings_of_the_person_do_not_change_the_search(
    grep: Tool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = root.parent / "ripgreprc"
    config.write_text("--ignore-case\n--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    make(root, f="X\nx\n")
    assert grep.call(pattern="x").text == "f:2: x"


LINE = st.text(st.sampled_from("ab.() \té"), max_size=8)
PATTERN = st.sampled_from(
    [
        "a",
        "a.",
        "^a",
        "b$",
        "a*b",
        "[ab]+",
        r"\bab\b",
        r"\s",
        "a|b",
        "é",
        r"\w+",
        "(ab)?$",
        "^$",
        ".",
        "a{2}",
        r"[^ab]",
        "",
    ]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(LINE, max_size=6),
    st.lists(LINE, max_size=6),
    PATTERN,
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.integers(1, 9),
)
def test_both_searches_say_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    one: list[str],
    two: list[str],
    pattern: str,
    ignore_case: bool,
    literal: bool,
    context: int,
    limit: int,
) -> None:
    root = tmp_path_factory.mktemp("same")
    (root / "one").write_bytes("\n".join(one).encode())
    (root / "two").write_bytes("".join(line + "\r\n" for line in two).encode())
    arguments = {"pattern": pattern, "ignoreCase": ignore_case, "literal": literal, "context": context, "limit": limit}
    workspace = Workspace(root)
    by_ripgrep = grep_tool(workspace, program=ripgrep()).call(**arguments)
    by_ourselves = grep_tool(workspace, program=None).call(**arguments)
    assert (by_ripgrep.text, by_ripgrep.details) == (by_ourselves.text, by_ourselves.details)


TRICKY = st.sampled_from(
    [
        r"\Aa",
        r"a\Z",
        r"a(?!\s)",
        r"(?<!.)b",
        r"(?>[^c]*)$",
        "[^c]*+$",
        "[^c]++b",
        r"^\s+$",
        "a[^b]*b",
        "(?s)a.b",
        r"\Gb",
        "b$",
    ]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.sampled_from("abc \r"), max_size=4), max_size=8), TRICKY | PATTERN)
def test_looking_at_many_lines_at_once_misses_none(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], pattern: str
) -> None:
    root = tmp_path_factory.mktemp("pieces")
    (root / "f").write_bytes("".join(f"{line}\n" for line in lines).encode())
    one = Pattern(pattern, ignore_case=False, literal=False)
    expected = [number for number, line in enumerate(lines, 1) if one.is_in_line(line.removesuffix("\r"), 10)]
    matcher = _matchers.search_by_ourselves(Workspace(root), _matchers.Query(pattern), AbortSignal())
    assert [numbers for _, numbers in matcher([root / "f"], 100)] == ([expected] if expected else [])


# ---- where the two engines think differently ------------------------------------------------------

ODD_LINE = st.text(
    st.sampled_from("aiIsSkK \u0130\u0131\u017f\u212a\u00df\ufb01\ufffd\u00a0\udcff\udce9\r"), max_size=6
)
ATOMS = ["a", "i", "I", "s", "k", ".", "ss", "fi", "\u0131", "\u017f", "\u00df", "\ufffd", "[^a]", "[a-z]", "[^a-z]"]
ATOMS += [r"\s", r"\S", r"\w", r"\W", r"\D", r"[\s]", r"[^\s]", r"\p{L}", r"\PL", "(?s:.)", "[]i]", "[^]a]", r"\."]
ATOMS += ["(?:i)", "[[:space:]]", "[[:alpha:]i]", "[^[:upper:]]", "[[:^punct:]]"]
ATOM = st.sampled_from(ATOMS)
PART = st.tuples(ATOM, st.sampled_from(["", "", "", "+", "*", "?", "+?", "{2}"])).map("".join)
ODD_PATTERN = st.lists(PART, min_size=1, max_size=3).map("".join) | st.lists(PART, min_size=2, max_size=2).map("|".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ODD_LINE, max_size=5), ODD_PATTERN, st.booleans(), st.booleans())
def test_odd_letters_bytes_and_carriage_returns_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], pattern: str, ignore_case: bool, literal: bool
) -> None:
    root = tmp_path_factory.mktemp("odd")
    (root / "f").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    arguments = {"pattern": pattern, "ignoreCase": ignore_case, "literal": literal}
    by_ripgrep = grep_tool(Workspace(root), program=ripgrep()).call(**arguments)
    by_ourselves = grep_tool(Workspace(root), program=None).call(**arguments)
    assert (by_ripgrep.text, by_ripgrep.details) == (by_ourselves.text, by_ourselves.details)


@pytest.mark.parametrize(
    ("pattern", "line", "is_found"),
    [
        ("SS", "stra\u00dfe", False),
        ("fi", "\ufb01", False),
        ("i", "\u0130", False),
        ("I", "\u0131", False),
        ("[i]", "\u0130", False),
        ("[a-z]", "\u0131", False),
        ("[^a-z]", "\u0131", True),
        ("\u0131", "\u0131", True),
        ("\u0131", "I", False),
        ("s", "\u017f", True),
        ("k", "\u212a", True),
        ("\u00e9", "\u00c9", True),
        (r"a\s", "a\rb", False),
        ("a.b", "a\rb", False),
        ("(?s)a.b", "a\rb", False),
        ("a[^x]b", "a\rb", False),
        (r"a\b", "a\rb", True),
        ("a.b", "a\udcffb", False),
        ("\ufffd", "\udcff", False),
        ("\ufffd", "\ufffd", True),
        ("[[:alpha:]]", "\u00e9", False),
        ("[[:^alpha:]]", "\u00e9", True),
        ("[[:punct:]]", "[", True),
        ("[[:space:]]", "\u00a0", False),
        (r"\s", "\u00a0", True),
    ],
)
def test_letters_and_classes_are_those_of_ripgrep(
    grep: Tool, root: Path, pattern: str, line: str, is_found: bool
) -> None:
    (root / "f").write_bytes(f"{line}\n".encode("utf-8", "surrogateescape"))
    assert (grep.call(pattern=pattern, ignoreCase=True).details.matches == 1) is is_found


@pytest.mark.parametrize(
    "pattern", ["needle", "x+needle", ".*needle$", r"\w+needle", "[x]+?needle", "^x.*needle", "y*needle"]
)
@pytest.mark.parametrize("size", [70_000, 3_000_000])
def test_the_end_of_a_long_line_is_searched_too(grep: Tool, root: Path, pattern: str, size: int) -> None:
    (root / "f").write_bytes(b"one\n" + b"x" * size + b"needle\n")
    result = grep.call(pattern=pattern)
    assert not result.is_error and result.text.startswith("f:2: xxx")
    assert grep.call(pattern="x+noodle").text == "No matches for x+noodle in the root folder."


def test_a_pattern_that_a_line_is_too_long_for_names_the_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, f="ok\n" + "x" * 200_000 + "\n")
    monkeypatch.setattr(_matchers, "LONG_LINE_SECONDS", 0.05)
    assert grep_tool(Workspace(root), program=None).call(pattern="(x+)y").text == (
        "The pattern takes too long on line 2 of f, which has 200,000 characters. "
        "Make it simpler, or leave the file out with glob."
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(ODD_LINE, min_size=1, max_size=4), ODD_PATTERN, st.booleans())
def test_a_look_at_many_lines_is_never_wrongly_in_vain(lines: list[str], pattern: str, ignore_case: bool) -> None:
    one = Pattern(pattern, ignore_case=ignore_case, literal=False)
    data = [line.encode("utf-8", "surrogateescape") for line in lines]
    piece = b"".join(line + b"\n" for line in data)
    if any(one.is_in_line(decoded(line.removesuffix(b"\r")), 10) for line in data):
        assert one.may_be_in(piece, 10)


REST = st.sampled_from(["", "y", "|z", "{2}", "x+y", "$", "(?<=xx)z", r"(y)\1"])
REPEATED = st.tuples(
    st.sampled_from(["x", "y", ".", "[xy]"]), st.sampled_from("+*"), st.sampled_from(["", "?", "+"]), REST
).map("".join)


@given(REPEATED, st.text("xyz", max_size=8))
def test_looking_for_less_finds_the_same(pattern: str, line: str) -> None:
    import regex

    try:
        expected = regex.search(pattern, line, regex.VERSION1) is not None
    except regex.error:
        with pytest.raises(ToolError, match="no regular expression"):
            Pattern(pattern, ignore_case=False, literal=False)
        return
    assert Pattern(pattern, ignore_case=False, literal=False).is_in_line(line, 10) is expected
