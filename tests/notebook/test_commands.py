"""`%agent tools`, `models`, `key`, `status`, `help`: what they say, and that no key gets out."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from pi_notebook import scripted, tool
from pi_notebook.agent.registry import registry
from pi_notebook.ai import keys
from pi_notebook.ai.providers import PROVIDERS
from pi_notebook.notebook.commands import COMMANDS
from pi_notebook.notebook.extension import load, unload
from pi_notebook.notebook.rules import Rules

from ..kernels import Session

SECRET = "sk-0123456789abcdef"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setattr(keys, "_set_by_hand", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    keys._from_keyring.cache_clear()
    monkeypatch.setenv("PI_NOTEBOOK_NO_LOCAL", "1")
    for provider in PROVIDERS.values():
        for name in (*provider.key_names, *provider.base_url_names):
            monkeypatch.delenv(name, raising=False)
    config = Config({"HistoryManager": {"enabled": False}, "AgentMagics": {"keep": False}})
    shell = InteractiveShell(config=config, ipython_dir=str(tmp_path))
    load(shell)
    yield shell
    unload(shell)
    registry.clear()


def command(shell: InteractiveShell, line: str) -> Any:
    return shell.run_line_magic("agent", line)


@pytest.mark.parametrize("name", COMMANDS)
def test_words_that_a_command_does_not_take_are_one_line(shell: InteractiveShell, name: str) -> None:
    with pytest.raises(UsageError) as error:
        command(shell, f"{name} one two three")
    assert "\n" not in str(error.value)


def test_tools_tells_how_each_runs(shell: InteractiveShell) -> None:
    @tool
    def plain(a: int, b: str = "x") -> int:
        "Plain."
        return a

    @tool(approval=True, execution_mode="sequential")
    async def careful() -> None:
        "Careful."

    @tool(approval=lambda args: False, thread="worker")
    def sometimes() -> None:
        "Sometimes."

    shell.user_ns |= {"plain": plain, "careful": careful, "sometimes": sometimes}
    listing = command(shell, "tools")
    rows = {row[0]: row[1:] for row in listing.rows}
    assert rows["plain"][:3] == ["(a: 'int', b: 'str' = 'x') -> 'int'", "the main thread", ""]
    assert rows["careful"][1:3] == ["the agent's loop, sequential", "asks"]
    assert rows["sometimes"][1:3] == ["a worker thread", "asks if its rule says so"]
    assert "test_commands.py, line" in rows["plain"][3]


def test_tools_can_show_other_sets(shell: InteractiveShell) -> None:
    assert "No tools yet" in repr(command(shell, "tools"))
    rows = {row[0]: row[1:] for row in command(shell, "tools builtin").rows}
    assert "read" in rows and rows["bash"][0].startswith("(command")
    with pytest.raises(UsageError, match="there is no tool 'nope'"):
        command(shell, "tools nope")


def test_models_are_those_usable_now(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.user_ns["mine"] = scripted("x")
    rows = dict(command(shell, "models").rows)
    assert rows == {
        "practice": "built in; no language model (default)",
        "mine": "a variable of this notebook: scripted",
    }
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    listing = command(shell, "models")
    assert ["google:gemini-2.5-flash", "GEMINI_API_KEY (default)"] in listing.rows
    assert SECRET not in repr(listing) + listing._repr_html_()


def test_status_says_what_would_be_used(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    magics = shell.magics_manager.registry["AgentMagics"]
    shell.user_ns["m"] = scripted("a", "b")
    assert dict(command(shell, "status").rows)["model"] == "practice (none is configured)"
    with monkeypatch.context() as patched:
        patched.setenv("ANTHROPIC_API_KEY", SECRET)
        said = dict(command(shell, "status").rows)["model"]
        assert said.startswith("anthropic:claude-") and said.endswith(" (by its key: ANTHROPIC_API_KEY)")
    magics.model, magics.rules, magics.max_cost = "m", Rules(allow=["read"]), 0.5
    shell.run_cell_magic("agent", "", "go")
    rows = dict(command(shell, "status").rows)
    assert rows["model"] == "m" and rows["limits of a run"] == "25 turns, $0.5"
    assert rows["rules"] == "Rules(allow=['read'], block={}, ask=[])"
    assert rows["conversation"] == "this notebook: 1 cells" and rows["agent"] == "idle"


def test_help_names_every_command_and_so_does_the_magics_own(shell: InteractiveShell) -> None:
    shown = repr(command(shell, "help"))
    doc = shell.magics_manager.magics["line"]["agent"].__doc__
    for name in COMMANDS:
        assert f"%agent {name}" in shown and f"%agent {name}" in doc
    assert repr(command(shell, "")) == shown


class TestKey:
    def type_in(self, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
        def getpass(prompt: str) -> str:
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr("getpass.getpass", getpass)

    def test_a_typed_key_is_used(self, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.type_in(monkeypatch, SECRET)
        said = command(shell, "key openai")
        assert repr(said) == "Key for openai is set until this kernel ends."
        assert keys.find_key("openai", ["OPENAI_API_KEY"]) == SECRET

    def test_nothing_typed_forgets_it(self, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
        keys.set_key("openai", SECRET)
        self.type_in(monkeypatch, "")
        assert repr(command(shell, "key openai")) == "The key for openai that was typed here is forgotten."
        assert keys.find_key("openai", ["OPENAI_API_KEY"]) is None

    def test_a_key_that_comes_first_is_named(self, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.type_in(monkeypatch, SECRET)
        ring = types.SimpleNamespace(get_password=lambda service, name: "from-the-ring")
        monkeypatch.setitem(sys.modules, "keyring", ring)
        said = repr(command(shell, "key openai"))
        assert said == (
            "Kept, but keyring comes first and holds another key for openai. "
            "To use this one: keyring del pi-notebook openai."
        )
        monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
        said = repr(command(shell, "key openai"))
        assert "OPENAI_API_KEY comes first" in said and "from-the" not in said and SECRET not in said

    @pytest.mark.parametrize("line", [f"key {SECRET}", f"key openai {SECRET}", "key practice", "key"])
    def test_a_key_on_the_line_is_refused_and_not_repeated(self, shell: InteractiveShell, line: str) -> None:
        with pytest.raises(UsageError, match="the key is typed where it asks") as error:
            command(shell, line)
        assert SECRET not in str(error.value)

    def test_what_is_no_key_is_refused_and_not_repeated(self, shell: InteractiveShell, monkeypatch: Any) -> None:
        self.type_in(monkeypatch, f"{SECRET} \nx")
        with pytest.raises(UsageError, match="That is no API key for openai") as error:
            command(shell, "key openai")
        assert SECRET not in str(error.value)

    def test_where_nobody_can_type_it_says_so(self, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.type_in(monkeypatch, EOFError())
        with pytest.raises(UsageError, match="nobody can type here"):
            command(shell, "key openai")


def test_in_a_kernel_a_typed_key_is_in_no_output_and_no_history(newest_kernel: Session) -> None:
    newest_kernel.run("%load_ext pi_notebook")
    newest_kernel.answers.append(SECRET)
    cell = newest_kernel.run("%agent key openai")
    assert newest_kernel.prompts == ["Key for openai (kept in memory only): "]
    seen = str(cell.outputs) + str(newest_kernel.run("%history -g -o -n\n%agent status\nprint(In, Out)").outputs)
    seen += str(newest_kernel.value("[repr(v) for v in list(globals().values())]"))
    assert "is set until this kernel ends" in seen
    assert SECRET not in seen
    headless = newest_kernel.run("%agent key openai", allow_stdin=False)
    assert "UsageError: %agent key openai: nobody can type here" in headless.stream("stderr")
