from __future__ import annotations

import json
from typing import Any

import pytest

from pi_notebook.agent import _tracebacks
from pi_notebook.agent._tracebacks import describe_exception, name_cells, short_traceback, source_name
from pi_notebook.agent.tool import ToolContext
from pi_notebook.ai.abort import AbortController


def raised_by(function: Any, *args: Any) -> BaseException:
    with pytest.raises(BaseException) as raised:
        function(*args)
    return raised.value


def user_code() -> Any:
    """A user's function in a cell that fails inside a library."""
    cell: dict[str, Any] = {"json": json}
    source = "def outer(text):\n    return inner(text)\ndef inner(text):\n    return json.loads(text)\n"
    exec(compile(source, "/tmp/ipykernel_12/345.py", "exec"), cell)
    return cell["outer"]


def test_the_line_is_the_last_of_the_users_own() -> None:
    error = raised_by(user_code(), "{")

    assert describe_exception(error).splitlines()[-1] == "at a cell, line 4, in inner"


def test_a_notebook_names_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tracebacks, "_cell_names", [])
    forget = name_cells(lambda filename: "Cell In[7]" if "ipykernel" in filename else None)

    assert "at Cell In[7], line 4, in inner" in describe_exception(raised_by(user_code(), "{"))
    forget()
    assert "at a cell, line 4, in inner" in describe_exception(raised_by(user_code(), "{"))
    assert source_name("/home/me/analysis.py") == "analysis.py"
    assert source_name("<ipython-input-3-abc>") == "Cell In[3]"


def test_the_persons_traceback_is_short_and_holds_only_their_frames() -> None:
    lines = short_traceback(raised_by(user_code(), "{")).splitlines()

    assert [line for line in lines if "a cell" in line] == ["a cell, line 2, in outer", "a cell, line 4, in inner"]
    assert not any("json/decoder" in line or "loads" in line for line in lines[2:-1])
    assert lines[-1].startswith("JSONDecodeError: ")


def test_frames_of_this_package_are_left_out() -> None:
    controller = AbortController()
    controller.abort("stopped")

    def loop() -> None:
        for _ in ToolContext(signal=controller.signal).track([1]):
            pass

    last = describe_exception(raised_by(loop)).splitlines()[-1]

    assert last.endswith("in loop: for _ in ToolContext(signal=controller.signal).track([1]):")


def test_the_cause_is_named() -> None:
    def fail() -> None:
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("no such column") from error

    assert short_traceback(raised_by(fail)).splitlines()[-2:] == [
        "ValueError: no such column",
        "caused by KeyError: 'key'",
    ]


def test_groups_and_notes_are_told() -> None:
    error = ExceptionGroup("two", [ValueError("a"), KeyError("b")])
    error.add_note("in the third file")

    assert describe_exception(error) == (
        "ExceptionGroup: two (2 sub-exceptions)\n- ValueError: a\n- KeyError: 'b'\nin the third file"
    )


def test_an_exception_without_a_text_or_with_one_that_fails() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_exception(ValueError()) == "ValueError"
    assert describe_exception(Broken()) == "Broken: <its text cannot be shown>"
