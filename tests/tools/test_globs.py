from __future__ import annotations

import time

import pytest

from pi_notebook.errors import ToolError
from pi_notebook.tools._globs import braces, compile_glob


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "src/a.py", ".py", "src/.a.py"], ["a.pyc", "a.py/b", "A.PY"]),
        ("src/*.py", ["src/a.py"], ["a.py", "x/src/a.py", "src/b/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py", "xsrc/a.py"]),
        ("**/test_*", ["test_a", "x/y/test_b"], ["a/test", "test_a/b"]),
        ("**", ["a", "a/b"], []),
        ("src/**", ["src/a", "src/a/b"], ["src", "a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "b"]),
        ("[ab]?.[!c]", ["ax.d", "q/by.e"], ["ax.c", "a.d"]),
        ("[^a].txt", ["b.txt"], ["a.txt"]),
        ("*.{ts,tsx}", ["a.ts", "d/a.tsx"], ["a.t", "a.{ts,tsx}"]),
        ("./a/*.c", ["a/x.c"], ["b/a/x.c"]),
        ("/top.txt", ["top.txt"], ["d/top.txt"]),
        ("a+(b).$", ["a+(b).$"], ["aab.x"]),
        ("*[*", ["a[b"], ["ab"]),
        ("\n*", ["\nx"], ["x"]),
    ],
)
def test_globs(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = compile_glob(pattern)
    assert [path for path in yes + no if matches(path, False)] == yes


def test_a_slash_at_the_end_asks_for_folders() -> None:
    matches = compile_glob("build/")
    assert matches("a/build", True)
    assert not matches("a/build", False)


@pytest.mark.parametrize(
    ("pattern", "alternatives"),
    [
        ("a", ["a"]),
        ("a{b,c}", ["ab", "ac"]),
        ("a{b,c{d,e}}f", ["abf", "acdf", "acef"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("{{a,b}", ["{a", "{b"]),
        ("{,x}y", ["y", "xy"]),
        ("{}{a,b}", ["{}a", "{}b"]),
    ],
)
def test_braces(pattern: str, alternatives: list[str]) -> None:
    assert braces(pattern) == alternatives


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(ToolError, match="more than 100 alternatives"):
        braces("{a,b,c,d,e,f,g,h,i,j}" * 8)


def test_an_empty_glob_is_refused() -> None:
    with pytest.raises(ToolError, match="empty"):
        compile_glob("")


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/" * 40 + "b", "*/**/" * 20 + "b", "{" * 5_000])
def test_no_glob_is_slow(pattern: str) -> None:
    started = time.monotonic()
    matches = compile_glob(pattern)
    assert not matches("/".join(["a" * 200] * 40), False)
    assert time.monotonic() - started < 5
