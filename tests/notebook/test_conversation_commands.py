"""`%agent history`, `show`, `undo`, `reset`, `resume`, `export`, `status`: what they do and what they say."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

from pi_notebook.notebook import conversation, extension, kept

SETUP = """
from pi_notebook import tool, scripted, call
@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""


class Shell:
    """An IPython shell with the extension; one is one kernel."""

    def __init__(self) -> None:
        self.shell: Any = InteractiveShell()
        extension.load(self.shell)
        self.run(SETUP)

    def run(self, code: str) -> Any:
        result = self.shell.run_cell(code, store_history=True)
        result.raise_error()
        return result.result

    def agent(self, prompt: str, *replies: str, options: str = "") -> Any:
        self.run(f"m = scripted({', '.join(replies)})")
        return self.run(f"%%agent -m m {options}\n{prompt}")

    def say(self, line: str) -> Any:
        """The value of `%agent LINE`, or the text of its UsageError."""
        result = self.shell.run_cell(f"%agent {line}")
        if result.error_in_exec is not None:
            assert type(result.error_in_exec).__name__ == "UsageError", result.error_in_exec
            return str(result.error_in_exec)
        return result.result


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Shell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "sales.ipynb"))

    def start() -> Shell:
        for module in (conversation, kept):
            monkeypatch.setattr(module, "THIS_KERNEL", uuid.uuid4().hex)
        return Shell()

    return start


@pytest.fixture
def shell(kernel: Callable[[], Shell]) -> Shell:
    return kernel()


def test_history_is_a_table_with_the_tokens_of_each_cell(shell: Shell) -> None:
    shell.agent("What is\n1 + 2?", "[call('add', a=1, b=2)], 'three'")
    shell.agent("x" * 200, "'ok'")
    listing = shell.say("history")
    assert listing.headings == ["#", "cell", "prompt", "ended", "calls", "tokens", "cost"]
    first, second, total = listing.rows
    assert first[:5] == ["1", "[3]", "What is 1 + 2?", "done", "1"]
    assert second[:5] == ["2", "[5]", "x" * 80 + "...", "done", "0"]
    numbers = [[int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", row[5])] for row in listing.rows]
    assert numbers[2] == [a + b for a, b in zip(*numbers[:2], strict=True)] and numbers[0][0] > 0
    assert total[:5] == ["", "", "all", "", ""] and total[6] == "–"


@pytest.mark.parametrize(
    ("usage", "tokens", "cost"),
    [
        ("reasoning=0", "0 in, 0 out", "–"),
        ("cost=Cost()", "0 in, 0 out", "–"),
        ("input=5", "5 in, 0 out", "–"),
        ("input=5, cost=Cost()", "5 in, 0 out", "$0.0000"),
        ("cache_read=5, cost=Cost(total=0.5)", "5 in, 0 out", "$0.5000"),
    ],
)
def test_a_cost_that_nobody_knows_is_a_dash(shell: Shell, usage: str, tokens: str, cost: str) -> None:
    shell.run("from pi_notebook.ai.messages import AssistantMessage, Cost, TextContent, Usage")
    shell.agent("go", f"AssistantMessage([TextContent('ok')], usage=Usage({usage}))")
    assert [row[5:] for row in shell.say("history").rows] == [[tokens, cost]]


def test_show_prints_any_transcript_again(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.say("show") == "%agent show: nothing has been said yet."
    shell.agent("one", "[call('add', a=1, b=2)], 'three'")
    shell.agent("two", "'second answer'")
    capsys.readouterr()
    shell.say("show")
    assert "second answer" in capsys.readouterr().out
    shell.say("show 1")
    shown = capsys.readouterr().out
    assert "add(a=1, b=2) → 3" in shown and "second" not in shown
    assert shell.say("show 3") == "%agent show 3: there are 2 cells, 1 to 2 in %agent history."
    assert shell.say("show x") == "%agent show x: there are 2 cells, 1 to 2 in %agent history."
    assert shell.say("show 1 2") == "%agent show takes one word at most; got '1 2'."


def test_undo_and_reset_say_what_is_left(shell: Shell) -> None:
    assert shell.say("undo") == "%agent undo: the conversation is empty."
    shell.agent("one", "'1'")
    shell.agent("two", "'2'")
    assert shell.say("undo") == "Took back cell [5]. The conversation holds 1 cell now."
    assert shell.say("reset") == "The conversation is empty now. %agent resume brings the old one back."
    assert shell.say("reset") == "The conversation is empty now."
    assert shell.say("undo x") == "%agent undo takes nothing more; got 'x'."
    assert shell.say("resume").endswith(": 1 cell, the last 'one'.")


def test_new_starts_a_conversation_and_the_old_one_can_be_resumed(shell: Shell) -> None:
    shell.agent("one", "'1'")
    assert shell.agent("two", "lambda c: str(len(c.messages))", options="--new").text == "1"
    resumed = str(shell.say("resume")).splitlines()
    assert resumed[0].endswith(": 1 cell, the last 'one'.")
    assert resumed[1] == "What was said in this kernel so far stays on disk: %agent resume list."
    assert shell.agent("three", "lambda c: str(len(c.messages))").text == "3"


class TestResume:
    def test_the_latest_of_an_earlier_kernel_and_only_once(self, kernel: Callable[[], Shell]) -> None:
        kernel().agent("one", "'1'")
        kernel().agent("two", "'2'")
        shell = kernel()
        assert shell.say("history").rows == []
        assert shell.say("resume").endswith(": 1 cell, the last 'two'.")
        assert shell.say("resume") == "This conversation is resumed already: it holds 1 cell."
        assert shell.agent("three", "lambda c: str(len(c.messages))").text == "3"
        assert [row[1] for row in shell.say("history").rows] == ["earlier [3]", "[3]", ""]

    def test_any_by_its_number_in_the_list(self, kernel: Callable[[], Shell]) -> None:
        for prompt in ("one", "two", "three"):
            kernel().agent(prompt, "'x'")
        shell = kernel()
        listing = shell.say("resume list")
        assert [[row[0], *row[2:]] for row in listing.rows] == [
            ["1", "1 cell", "three"],
            ["2", "1 cell", "two"],
            ["3", "1 cell", "one"],
        ]
        assert shell.say("resume 3").endswith(": 1 cell, the last 'one'.")
        assert shell.say("resume 9") == "%agent resume 9: there are 3; %agent resume list shows them."
        assert str(shell.say("resume 2")).splitlines()[0].endswith("the last 'two'.")

    def test_nothing_there(self, shell: Shell, tmp_path: Path) -> None:
        file = tmp_path / ".pi_notebook" / "sales.ipynb.jsonl"
        assert shell.say("resume") == f"Nothing to resume: no earlier conversation is kept in {file}."
        assert repr(shell.say("resume list")) == f"Nothing is kept in {file}."
        assert shell.say("resume side") == "%agent resume side: no session of this name is kept."
        assert not file.parent.exists()

    def test_the_conversation_of_a_notebook_that_was_renamed(
        self, kernel: Callable[[], Shell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kernel().agent("one", "'1'")
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "renamed.ipynb"))
        shell = kernel()
        assert shell.say("resume").endswith("Kept beside it: sales.ipynb.jsonl.")
        assert shell.say("resume list").rows == [["sales.ipynb.jsonl", "", "", "another notebook or session"]]
        assert shell.say("resume sales.ipynb.jsonl").endswith(": 1 cell, the last 'one'.")
        shell.agent("two", "'2'")
        (tmp_path / ".pi_notebook" / "sales.ipynb.jsonl").unlink()
        assert kernel().say("resume").endswith(": 2 cells, the last 'two'.")

    def test_a_torn_last_line_is_a_notice(self, kernel: Callable[[], Shell], tmp_path: Path) -> None:
        kernel().agent("one", "'1'")
        file = tmp_path / ".pi_notebook" / "sales.ipynb.jsonl"
        file.write_bytes(file.read_bytes()[:-3])
        lines = str(kernel().say("resume")).splitlines()
        assert "The kernel ended during that one" in lines[0]
        told = "The last line of the file is torn (the kernel ended while it was written) and is left out."
        assert lines[1:] == [told]
        shell = kernel()
        shell.say("resume")
        shell.agent("two", "'2'")
        assert len(str(kernel().say("resume")).splitlines()) == 1, "told once"

    def test_a_newer_schema_is_an_error_that_says_what_to_do(self, kernel: Callable[[], Shell], tmp_path: Path) -> None:
        kernel().agent("one", "'1'")
        file = tmp_path / ".pi_notebook" / "sales.ipynb.jsonl"
        file.write_text(file.read_text().replace('"version":1', '"version":7'))
        before = file.read_bytes()
        shell = kernel()
        assert "its schema is 7, this one knows 1" in shell.say("resume")
        result = shell.agent("two", "'2'")
        assert result.text == "2" and "is not kept on disk" in repr(result)
        assert "is not kept on disk" not in repr(shell.agent("three", "'3'"))
        assert dict(shell.say("status").rows)["kept"].startswith("in memory only: ")
        assert file.read_bytes() == before

    def test_not_while_an_agent_runs(self, shell: Shell) -> None:
        shell.run("""
@tool
def meddle(line: str) -> str:
    "Run a command."
    get_ipython().run_line_magic("agent", line)
""")
        calls = ", ".join(f"call('meddle', line='{name}')" for name in ("undo", "reset", "resume"))
        result = shell.agent("one", f"[{calls}], 'x'")
        for name, record in zip(("undo", "reset", "resume"), result.tool_calls, strict=True):
            assert f"%agent {name}: an agent is running; wait for its end or stop it." in record.result.text


def test_what_is_only_in_memory_is_not_given_up_for_another(kernel: Callable[[], Shell]) -> None:
    kernel().agent("one", "'1'")
    shell = kernel()
    shell.run("%config AgentMagics.keep = False")
    shell.agent("two", "'2'")
    text = (
        "%agent resume: 1 cell of this conversation would be lost, for they are not kept on disk. "
        "Keep them with %agent export, then %agent reset."
    )
    assert shell.say("resume") == text
    shell.say("reset")
    assert shell.say("resume").endswith("the last 'one'.")


def test_running_the_whole_notebook_twice_resumes_once(kernel: Callable[[], Shell]) -> None:
    """`%agent resume` may stand in the first cell."""
    kernel().agent("one", "'1'")
    shell = kernel()
    assert "Resumed" in shell.say("resume")
    shell.say("undo")
    shell.agent("two", "'2'")
    assert shell.say("resume") == "This conversation is resumed already: it holds 1 cell."


def test_status_tells_where_the_conversation_is_kept(shell: Shell, tmp_path: Path) -> None:
    rows = dict(shell.say("status").rows)
    assert rows["kept"] == str(tmp_path / ".pi_notebook" / "sales.ipynb.jsonl")


def test_keeping_can_be_turned_off_and_on(shell: Shell, tmp_path: Path) -> None:
    shell.run("%config AgentMagics.keep = False")
    shell.agent("secret", "'1'")
    assert not (tmp_path / ".pi_notebook").exists()
    assert dict(shell.say("status").rows)["kept"] == "in memory only (AgentMagics.keep is off)"
    shell.run("%config AgentMagics.keep = True")
    shell.agent("two", "'2'")
    assert "secret" in (tmp_path / ".pi_notebook" / "sales.ipynb.jsonl").read_text()


class TestExport:
    def test_a_notebook_that_is_valid_and_holds_prompts_and_transcripts(self, shell: Shell, tmp_path: Path) -> None:
        shell.agent("What is {1} + 2?", "[call('add', a=1, b=2)], 'It is **three**.'", options="--raw")
        assert shell.say("export talk.ipynb") == "Wrote 1 cell to talk.ipynb."
        notebook = nbformat.read(tmp_path / "talk.ipynb", as_version=4)
        nbformat.validate(notebook)
        title, setup, cell = notebook.cells
        assert (title.cell_type, setup.source) == ("markdown", "%load_ext pi_notebook")
        assert cell.source == "%%agent -m m --raw\nWhat is {1} + 2?"
        assert cell.execution_count == 3
        assert set(cell.outputs[0].data) == {"text/html", "text/markdown", "text/plain"}
        assert "<strong>three</strong>" in cell.outputs[0].data["text/html"]

    def test_markdown(self, shell: Shell, tmp_path: Path) -> None:
        shell.agent("one ``` two", "[call('add', a=1, b=2)], 'three'")
        assert shell.say("export") == "Wrote 1 cell to sales-conversation.md."
        text = (tmp_path / "sales-conversation.md").read_text()
        assert "# Conversation of sales.ipynb\n\n## \\[3\\]\n\n````\n%%agent -m m\none ``` two\n````\n" in text
        assert "`a=1, b=2` → `3`" in text

    def test_an_earlier_export_is_replaced_and_nothing_else_ever(self, shell: Shell, tmp_path: Path) -> None:
        shell.agent("one", "'1'")
        for name in ("sales.ipynb", "notes.md"):
            (tmp_path / name).write_text("{}")
            text = f"{name} exists and is no export of a conversation; name another file."
            assert shell.say(f"export {name}") == text
            assert (tmp_path / name).read_text() == "{}"
        for name in ("talk.ipynb", "talk.md"):
            shell.say(f"export {name}")
            assert shell.say(f"export {name}") == f"Wrote 1 cell to {name}."
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            ".pi_notebook",
            "notes.md",
            "sales.ipynb",
            "talk.ipynb",
            "talk.md",
        ]

    def test_mistakes(self, shell: Shell) -> None:
        assert shell.say("export") == "%agent export: nothing has been said yet."
        shell.agent("one", "'1'")
        assert shell.say("export talk.docx") == "talk.docx: the name of an export ends in .md or .ipynb."
        gone = shell.say("export gone/talk.md")
        assert gone == "gone/talk.md cannot be written: No such file or directory."

    def test_no_key_and_no_script_in_it(self, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        shell.agent("<script>alert(1)</script> sk-test-0123456789", "'<img src=x onerror=alert(1)> sk-test-0123456789'")
        for name in ("talk.md", "talk.ipynb"):
            shell.say(f"export {name}")
            assert "0123456789" not in (tmp_path / name).read_text()
        text = (tmp_path / "talk.md").read_text().replace("<!-- exported by pi_notebook -->", "")
        assert "<script" not in text and "<img" not in text
        output = json.loads((tmp_path / "talk.ipynb").read_text())["cells"][2]["outputs"][0]["data"]
        assert "<script" not in output["text/html"] and "<img" not in output["text/html"]

    def test_a_conversation_of_an_earlier_kernel(self, kernel: Callable[[], Shell], tmp_path: Path) -> None:
        kernel().agent("one", "[call('add', a=1, b=2)], 'three'")
        shell = kernel()
        shell.say("resume")
        shell.say("export talk.md")
        text = (tmp_path / "talk.md").read_text()
        assert "## earlier \\[3\\]" in text and "✓ **add** `a=1, b=2` → `3`" in text
