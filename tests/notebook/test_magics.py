"""The line of `%%agent`, its mistakes, its value, its configuration, in a shell of the test's own process."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import TraitError
from traitlets.config import Config

from pi_notebook import call, scripted, tool
from pi_notebook.agent.registry import registry
from pi_notebook.ai.model import Model
from pi_notebook.errors import RunError
from pi_notebook.notebook.extension import load, unload
from pi_notebook.notebook.options import split_silencer, split_words
from pi_notebook.notebook.rules import Rules


def make_shell(folder: Path, **traits: Any) -> InteractiveShell:
    config = Config({"HistoryManager": {"enabled": False}, "AgentMagics": {"keep": False, **traits}})
    shell = InteractiveShell(config=config, ipython_dir=str(folder))
    load(shell)
    return shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("PI_NOTEBOOK_NO_LOCAL", "1")
    monkeypatch.delenv("PI_NOTEBOOK_MODEL", raising=False)
    shell = make_shell(tmp_path)
    for each in InteractiveShell._walk_mro():
        each._instance = shell
    shell.user_ns["m"] = scripted(*["answer"] * 20)
    yield shell
    unload(shell)
    InteractiveShell.clear_instance()
    registry.clear()


def agent(shell: InteractiveShell, line: str = "-m m", cell: str = "go") -> Any:
    return shell.run_cell_magic("agent", line, cell)


def echo(shell: InteractiveShell) -> None:
    """A model that says what it was asked, and under which system prompt."""
    shell.user_ns["m"] = scripted(*[lambda c: f"{c.system_prompt}|{c.messages[-1].content[0].text}"] * 20)


class TestWords:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("", []),
            ("  a  b ", ["a", "b"]),
            ("'a b' \"c d\"", ["a b", "c d"]),
            ("--system='a b' x", ["--system=a b", "x"]),
            ("don't stop", ["don't", "stop"]),
            (r"C:\data\new 'C:\my data' \"x", [r"C:\data\new", r"C:\my data", r"\x"]),
            (r'"say \"hi\" now"', ['say "hi" now']),
            (r'"C:\dir\"', ["C:\\dir\\"]),
            ("'' x", ["", "x"]),
            ("$x {y} ~ `z` #w", ["$x", "{y}", "~", "`z`", "#w"]),
            ("\u201ca b\u201d", ["\u201ca", "b\u201d"]),
        ],
    )
    def test_quotes_go_and_all_else_stays(self, line: str, words: list[str]) -> None:
        assert [word.text for word in split_words(line)] == words

    @given(st.lists(st.text(st.characters(exclude_characters="'\\", exclude_categories=["Cs"]), max_size=10)))
    def test_what_is_quoted_comes_back(self, words: list[str]) -> None:
        assert [word.text for word in split_words(" ".join(f"'{word}'" for word in words))] == words

    @given(st.text(st.sampled_from("a '\"\\=-x"), max_size=30))
    def test_any_line_has_words(self, line: str) -> None:
        for word in split_words(line):
            assert not line[word.start].isspace()


MISTAKES = [
    ("--modle x", "unrecognized arguments: --modle x. Did you mean --model?"),
    ("what is this", "unrecognized arguments: what is this. What the agent should do stands below the %%agent line; "),
    ("--zzz", "unrecognized arguments: --zzz. %%agent? lists the options."),
    ("--bogus", "unrecognized arguments: --bogus. %%agent? lists the options."),
    ("-m anthropic:", "anthropic needs the name of a model: anthropic:MODEL, as anthropic:claude-"),
    (
        "--system \u201cbe brief\u201d",
        "unrecognized arguments: brief\u201d. Typographic quotes and dashes are no quotes",
    ),
    ("\u2014model m", "unrecognized arguments: \u2014model m. Typographic quotes and dashes are no quotes"),
    ("--help", "%%agent? shows the help, %agent help the commands."),
    ("-m", "argument -m/--model: expected one argument"),
    ("--ma 3", "ambiguous option: --ma could match --max-turns, --max-cost"),
    ("-m m --max-turns x", "argument --max-turns: 'x' is no whole number from 0 (0: no limit)"),
    ("-m m --max-turns -1", "argument --max-turns: '-1' is no whole number from 0 (0: no limit)"),
    ("-m m --max-turns 2.5", "argument --max-turns: '2.5' is no whole number"),
    ("-m m --max-cost nan", "argument --max-cost: 'nan' is no number from 0"),
    ("-m m --max-cost -0.5", "argument --max-cost: '-0.5' is no number from 0"),
    ("-m m --approve-timeout soon", "argument --approve-timeout: 'soon' is no number from 0"),
    ("-m m --approve maybe", "argument --approve: invalid choice: 'maybe' (choose from ask, all, none, or a variable"),
    ("-m m --approve number", "argument --approve: invalid choice: 'number'"),
    ("-m m --thinking lots", "argument --thinking: invalid choice: 'lots' (choose from"),
    ("-m m --tool-execution never", "argument --tool-execution: invalid choice: 'never'"),
    ("-m m -o 2x", "--out '2x' is no variable name."),
    ("-m m -o class", "--out 'class' is no variable name."),
    ("-m m -o a.b", "--out 'a.b' is no variable name."),
    ("-m m -o In", "--out In: that variable belongs to IPython."),
    ("-m m --tools nope", "--tools: there is no tool 'nope'."),
    ("-m number", "--model number: that variable holds a int, not a Model."),
    ("-m nobody:x", "Unknown model 'nobody:x'."),
    ("-m openai-compatible:x", "openai-compatible needs an address: give --base-url"),
    ("-m openai-compatible:x --base-url nowhere", "'nowhere' is no address of a server"),
    ("-m openai-compatible:x --base-url http://a:b@c/", "A base URL must not hold a password"),
    ("-m m --base-url http://x", "--base-url does not go with --model m: that variable holds a whole Model."),
    ("--base-url http://x", "--base-url needs --model"),
    ("-m m --api-key-env sk-secret", "argument --api-key-env: takes the name of an environment variable that holds"),
    ("-m m --root /no/such/folder", "/no/such/folder"),
    ('-m m --system "x', '%%agent: a quotation is not closed; it begins at "x.'),
    ("--\x1b[31mred", "unrecognized arguments: --\\x1b[31mred."),
]


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_a_mistake_is_one_line_and_nothing_runs(shell: InteractiveShell, line: str, said: str) -> None:
    shell.user_ns["number"] = 3
    with pytest.raises(UsageError) as error:
        agent(shell, f"{line} --tools read" if "--root" in line else line)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "sk-secret" not in str(error.value)
    magics = shell.magics_manager.registry["AgentMagics"]
    assert magics.last_run is None and magics.conversation.turns == []


@pytest.mark.parametrize("cell", ["  ", "\n\n", ";", " ; \n"])
def test_an_empty_cell_is_said_to_be(shell: InteractiveShell, cell: str) -> None:
    with pytest.raises(UsageError, match="The cell is empty"):
        agent(shell, cell=cell)


class TestLine:
    def test_nothing_on_it_is_expanded_but_names_in_system(self, shell: InteractiveShell) -> None:
        echo(shell)
        shell.user_ns |= {"x": 5, "name": "Ada"}
        result = agent(shell, "-m m --system 'costs {x*2} $x {name} {x} ~'")
        assert result.text == "costs {x*2} $x Ada 5 ~|go"
        assert agent(shell, "-m m --raw --system '{x}'", "{x}").text == "{x}|{x}"

    def test_so_it_is_in_a_real_cell(self, shell: InteractiveShell, capsys: Any) -> None:
        echo(shell)
        shell.user_ns["x"] = 5
        shell.run_cell("%%agent -m m -o out --system 'costs {x*2} $x'\n$x {x*2} {x}")
        assert shell.user_ns["out"].text == "costs {x*2} $x|$x {x*2} 5"

    def test_values_keep_quotes_braces_and_backslashes(self, shell: InteractiveShell) -> None:
        echo(shell)
        assert agent(shell, r"""-m m --system 'C:\data {"a": 1}'""").text == r'C:\data {"a": 1}|go'
        assert agent(shell, """-m m --system="it's" """).text == "it's|go"

    def test_a_quoted_value_may_look_like_an_option(self, shell: InteractiveShell) -> None:
        echo(shell)
        assert agent(shell, "-m m --system '--raw'").text == "--raw|go"
        assert agent(shell, "-m m --system='-x'").text == "-x|go"

    def test_a_session_that_looks_like_a_slip_is_pointed_out(self, shell: InteractiveShell) -> None:
        assert _run_of(shell, "-m m --session weekly").view.warnings == []
        said = _run_of(shell, "-m m --session wekly").view.warnings
        assert said == ["Session 'wekly' is new. Did you mean 'weekly'?"]
        assert _run_of(shell, "-m m --session weekly").view.warnings == []

    def test_tools_named_twice_come_once(self, shell: InteractiveShell) -> None:
        assert len(_run_of(shell, "-m m --tools read,read,ls,builtin").request.tools) == 9
        assert [t.name for t in _run_of(shell, "-m m --tools ls,ls").request.tools] == ["ls"]


def _run_of(shell: InteractiveShell, line: str) -> Any:
    agent(shell, line)
    return shell.magics_manager.registry["AgentMagics"].last_run


class TestSilencer:
    @pytest.mark.parametrize(
        ("line", "cell", "expected"),
        [
            ("-m m", "go;", ("-m m", "go", True)),
            ("-m m", "go ;\n\n", ("-m m", "go", True)),
            ("-m m;", "go", ("-m m", "go", True)),
            ("-m m", "\n  go\n", ("-m m", "  go", False)),
            ("-m m", "a; b", ("-m m", "a; b", False)),
            ("-m m", "a\n```\nx = 1;\n```", ("-m m", "a\n```\nx = 1;\n```", False)),
            ("-m m", "a\n```\nx = 1;", ("-m m", "a\n```\nx = 1;", False)),
            ("-m m", "what is `x;`", ("-m m", "what is `x;`", False)),
            ("-m m", "what is `x`;", ("-m m", "what is `x`", True)),
            ("-m m", "a\n```\nx\n```\n;", ("-m m", "a\n```\nx\n```", True)),
        ],
    )
    def test_it_counts_at_the_end_outside_of_code(self, line: str, cell: str, expected: Any) -> None:
        assert split_silencer(line, cell) == expected

    def test_the_value_is_not_kept_but_in_out(self, shell: InteractiveShell) -> None:
        assert agent(shell, "-m m -o out", "go;") is None
        assert shell.user_ns["out"].text == "answer"
        assert agent(shell, "-m m;") is None
        assert shell.run_line_magic("agent", "status;") is None


class TestValue:
    def test_it_has_what_code_needs(self, shell: InteractiveShell) -> None:
        @tool
        def add(a: int, b: int) -> int:
            "Add."
            return a + b

        shell.user_ns |= {"add": add, "m": scripted([call("add", a=1, b=2)], "It is 3.")}
        result = agent(shell)
        assert result.text == "It is 3."
        assert [m.role for m in result.messages] == ["user", "assistant", "tool_result", "assistant"]
        assert [(c.name, c.value) for c in result.tool_calls] == [("add", 3)]
        assert result.usage.total_tokens > 0 and not result.cost
        assert "It is 3." in repr(result) and "add" in repr(result)
        copy = pickle.loads(pickle.dumps(result))
        assert copy.text == "It is 3."

    def test_it_shows_nothing_in_its_own_cell_and_the_transcript_in_another(self, shell: InteractiveShell) -> None:
        shell.user_ns["run"] = lambda: agent(shell)
        shown: list[Any] = []
        shell.display_pub.publish = lambda data, **more: shown.append(data)  # type: ignore[method-assign]
        shell.run_cell("r = run()\nr", store_history=True)
        shell.run_cell("from IPython.display import display", store_history=True)
        assert shown == []
        assert shell.user_ns["_"] is shell.user_ns["r"]
        shell.run_cell("r", store_history=True)
        shell.run_cell("display(r)", store_history=True)
        assert ["answer" in data["text/plain"] for data in shown] == [True, True]

    def test_out_is_set_after_an_error(self, shell: InteractiveShell) -> None:
        shell.user_ns["m"] = scripted(RuntimeError("broke"))
        with pytest.raises(RunError):
            agent(shell, "-m m -o out")
        assert [m.role for m in shell.user_ns["out"].messages] == ["user", "assistant"]

    def test_out_is_set_after_an_interrupt(self, shell: InteractiveShell) -> None:
        @tool
        def interrupt() -> None:
            "As a person's Ctrl-C."
            raise KeyboardInterrupt

        shell.user_ns |= {"interrupt": interrupt, "m": scripted([call("interrupt")], "ok")}
        with pytest.raises(KeyboardInterrupt) as error:
            agent(shell, "-m m -o out")
        assert error.value._render_traceback_() == ["KeyboardInterrupt: the agent was interrupted."]  # type: ignore
        assert shell.user_ns["out"].messages

    def test_out_is_set_after_a_blocked_call(self, shell: InteractiveShell) -> None:
        @tool(approval=True)
        def wipe() -> str:
            "Wipe."
            return "wiped"

        shell.user_ns |= {"wipe": wipe, "m": scripted([call("wipe")], "ok")}
        agent(shell, "-m m --approve none -o out")
        (record,) = shell.user_ns["out"].tool_calls
        assert record.is_error and "--approve none" in record.result.text


class TestErrorsOfARun:
    def test_they_are_one_line_and_fail_the_cell(self, shell: InteractiveShell, capsys: Any) -> None:
        shell.user_ns["m"] = scripted(RuntimeError("the model broke\nbadly"))
        outcome = shell.run_cell("%%agent -m m\ngo")
        assert isinstance(outcome.error_in_exec, RunError)
        out = capsys.readouterr().out
        assert "RunError: the model broke badly" in out.splitlines()[-1]
        assert "Traceback" not in out and "run_cell_magic" not in out

    def test_a_bug_keeps_its_traceback(self, shell: InteractiveShell, monkeypatch: Any, capsys: Any) -> None:
        def broken(*_: Any) -> Any:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr("pi_notebook.agent.agent.Agent.prompt", broken)
        shell.run_cell("%%agent -m m\ngo")
        out = capsys.readouterr().out
        assert "a bug" in out and "broken" in out and "Traceback" in out


class TestWhereItRuns:
    def test_a_tool_cannot_start_another_one(self, shell: InteractiveShell) -> None:
        @tool
        def again() -> str:
            "Again."
            agent(shell)
            return "no"

        shell.user_ns |= {"again": again, "m": scripted([call("again")], "ok")}
        result = agent(shell)
        assert result.tool_calls[0].is_error
        assert "An agent is running in this kernel already" in result.tool_calls[0].result.text

    def test_a_thread_of_ones_own_is_told_what_to_do(self, shell: InteractiveShell) -> None:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                agent(shell)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert isinstance(errors[0], UsageError)
        assert str(errors[0]).startswith("%%agent runs in cells, not on threads of your own")

    def test_inside_a_running_event_loop(self, shell: InteractiveShell) -> None:
        async def cell() -> Any:
            return agent(shell)

        assert asyncio.run(cell()).text == "answer"


class TestConfiguration:
    def test_config_lists_every_trait(self, shell: InteractiveShell, capsys: Any) -> None:
        shell.run_cell("%config AgentMagics")
        listed = capsys.readouterr().out
        for name in ("model", "tools", "approve", "approve_timeout", "max_turns", "max_cost", "thinking"):
            assert f"AgentMagics.{name}=" in listed
        for name in ("tool_execution", "root", "system", "keep", "rules", "headers"):
            assert f"AgentMagics.{name}=" in listed

    def test_it_is_used_where_the_line_says_nothing(self, shell: InteractiveShell) -> None:
        shell.run_cell("%config AgentMagics.model = 'm'\n%config AgentMagics.max_turns = 3")
        run = _run_of(shell, "")
        assert run.request.max_turns == 3
        assert _run_of(shell, "--max-turns 0").request.max_turns is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [("approve", "maybe"), ("max_turns", -1), ("max_turns", "x"), ("thinking", "lots"), ("rules", "read")],
    )
    def test_a_wrong_value_is_refused_by_name(self, tmp_path: Path, name: str, value: Any) -> None:
        with pytest.raises(TraitError, match=name):
            make_shell(tmp_path, **{name: value})

    def test_a_variable_of_the_environment_names_the_model(self, shell: InteractiveShell, monkeypatch: Any) -> None:
        monkeypatch.setenv("PI_NOTEBOOK_MODEL", "m")
        assert agent(shell, "").text == "answer"

    def test_rules_by_option_and_by_configuration_hold_together(self, shell: InteractiveShell) -> None:
        shell.user_ns["mine"] = Rules(allow=["wipe"])
        shell.magics_manager.registry["AgentMagics"].rules = Rules(block=["bash"])
        request = _run_of(shell, "-m m --approve mine").request
        assert request.approve == "ask"
        assert repr(request.rules) == "Rules(allow=['wipe'], block={'bash': ''}, ask=[])"
        shell.magics_manager.registry["AgentMagics"].approve = Rules(ask=["*"])
        assert _run_of(shell, "-m m --approve all").request.approve == "all"
        assert repr(_run_of(shell, "-m m --approve all").request.rules).endswith("block={'bash': ''}, ask=['*'])")
        assert repr(_run_of(shell, "-m m").request.rules) == "Rules(allow=[], block={'bash': ''}, ask=['*'])"

    def test_built_in_tools_stay_the_same_from_cell_to_cell(self, shell: InteractiveShell) -> None:
        first, second = (_run_of(shell, "-m m --tools bash").request.tools[0] for _ in range(2))
        assert first is second


def test_help_is_about_the_options(shell: InteractiveShell, capsys: Any) -> None:
    shell.run_cell("%%agent?")
    shell.run_cell("%agent?")
    shown = capsys.readouterr().out
    for words in ("--approve-timeout SECONDS", "(25; 0: no limit)", "A ; at the end is not sent", "Docstring"):
        assert words in shown
    for words in ("history", "undo", "export"):
        assert words in shown


def test_what_was_inserted_is_on_the_card(shell: InteractiveShell) -> None:
    shell.user_ns |= {"sales": [1, 2], "who": "Ada"}
    view = _run_of_cell(shell, "-m m --system 'for {who}'", "{sales} {slaes}").view
    assert view.inserted == ["sales: list, 2 items", "who: str, 3 characters (in --system)"]
    assert view.warnings[0].startswith("{slaes} was sent as it is")


def test_a_model_in_a_prompt_does_not_send_its_headers(shell: InteractiveShell) -> None:
    echo(shell)
    shell.user_ns["mm"] = Model("x", "scripted", headers={"authorization": "Bearer sk-live-ABCDEF99"})
    agent(shell, "-m m -o out", "model {mm}, {mm.id}")
    assert "scripted" in shell.user_ns["out"].text
    assert "ABCDEF99" not in shell.user_ns["out"].text


def test_how_far_a_call_came_is_on_disk_before_its_code_runs(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a call that another process may have begun before anybody hears of it."""
    shell.starting_dir = str(tmp_path)
    shell.magics_manager.registry["AgentMagics"].keep = True
    file = tmp_path / ".pi_notebook" / "untitled.jsonl"
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)

    def began() -> list[str]:
        records = map(json.loads, file.read_text().splitlines())
        return [record["id"] for record in records if record["type"] == "call" and record["state"] == "began"]

    class Elsewhere(Executor):
        def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
            raise RuntimeError(f"{len(began())} had begun")

    @tool
    def here() -> str:
        return f"{len(began())} had begun"

    @tool(executor=Elsewhere())
    def there() -> None: ...

    shell.user_ns["m"] = scripted([call("here")], [call("there")], "ok")
    agent(shell, "-m m --tools here,there -o out")
    told = [each.result.text for each in shell.user_ns["out"].tool_calls]
    assert told[0] == "1 had begun" and "2 had begun" in told[1]


def _run_of_cell(shell: InteractiveShell, line: str, cell: str) -> Any:
    agent(shell, line, cell)
    return shell.magics_manager.registry["AgentMagics"].last_run
