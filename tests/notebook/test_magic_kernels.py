"""The magic among other notations of a notebook, in a real kernel and by real configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..kernels import Session

SETUP = """
%load_ext pi_notebook
from pi_notebook import tool, scripted, call, Agent
%agent reset
m = scripted(*['answer'] * 50)
"""


def prepared(session: Session) -> Session:
    assert session.run(SETUP).status == "ok"
    return session


def agent_turns(session: Session) -> int:
    return session.value("len(get_ipython().magics_manager.registry['AgentMagics'].conversation.turns)")


def test_runs_of_one_cell_are_kept_apart_and_replaced_together(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    code = (
        "run = get_ipython().run_cell_magic\n"
        "def ask(n): return run('agent', '-m m', f'question {n}')\n"
        "results = [ask(n) for n in range(3)]"
    )
    assert kernel.run(code, cell_id="loop").status == "ok"
    assert agent_turns(kernel) == 3
    assert kernel.run(code, cell_id="loop").status == "ok"
    assert agent_turns(kernel) == 3
    assert kernel.value("[r.text for r in results]") == ["answer"] * 3
    assert kernel.value("len({id(r) for r in results})") == 3


@pytest.mark.parametrize(
    "code",
    [
        "%%time\n%%agent -m m -o out\ngo",
        "%%capture cap\n%%agent -m m -o out\ngo",
        "%%timeit -n 2 -r 1\nget_ipython().run_cell_magic('agent', '-m m -o out', 'go')",
    ],
)
def test_below_other_cell_magics_it_ends_without_a_coroutine(newest_kernel: Session, code: str) -> None:
    kernel = prepared(newest_kernel)
    cell = kernel.run(code)
    assert cell.status == "ok", cell.outputs
    assert kernel.value("out.text") == "answer"
    assert "coroutine" not in str(cell.outputs) and "never awaited" not in str(cell.outputs)


def test_capture_holds_one_transcript(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run("%%capture cap\n%%agent -m m\ngo", cell_id="captured")
    shown = kernel.run("cap.show()")
    assert str([out["data"].get("text/plain") for out in shown.outputs if "data" in out]).count("answer") == 1


def test_under_capture_the_question_tells_what_would_run(newest_kernel: Session) -> None:
    """The card went into the capture with all that was printed: only the prompt of `input` reaches a person."""
    prepared(newest_kernel).run(WIPE + "m = scripted([call('wipe', path='q')], lambda c: c.messages[-1].text)")
    newest_kernel.answers.append("y")
    newest_kernel.run("%%capture cap\n%%agent -m m -o r\ngo")
    (prompt,) = newest_kernel.prompts
    assert prompt.startswith("? wipe wants to run\n    path = q\nRun it? [y]es")
    assert newest_kernel.value("r.text") == "wiped q"


def test_in_a_cell_that_awaits(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    cell = kernel.run(
        "import asyncio\nawait asyncio.sleep(0)\n"
        "r = get_ipython().run_cell_magic('agent', '-m m', 'go')\nawait asyncio.sleep(0)\nprint('then', r.text)"
    )
    assert cell.status == "ok" and "then answer" in cell.text, cell.outputs


def test_the_result_shows_itself_in_another_cell(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    ran = kernel.run("r = get_ipython().run_cell_magic('agent', '-m m', 'go')\nr", cell_id="a page's")
    assert len([o for o in ran.outputs if o["output_type"] != "stream"]) == 1
    shown = kernel.run("r")
    (output,) = [o for o in shown.outputs if o["output_type"] != "stream"]
    assert {"text/html", "text/plain"} <= set(output["data"]) and "answer" in output["data"]["text/plain"]
    assert kernel.run("print(r)").text.count("answer") == 1


def test_underscore_and_out_hold_the_value(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run("%%agent -m m -o ans\nsay")
    assert kernel.value("_ is ans and any(v is ans for v in Out.values())") is True


def test_an_error_of_the_run_is_one_line_and_stops_run_all(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run("m = scripted(RuntimeError('no luck'))")
    cell = kernel.submit("%%agent -m m -o out\ngo")
    queued = kernel.submit("1")
    assert cell.wait().status == "error"
    assert queued.wait().status == "aborted"
    (error,) = [o for o in cell.outputs if o["output_type"] == "error"]
    said = "RunError: the run failed; its transcript above says why."
    assert (error["ename"], error["evalue"], error["traceback"]) == ("RunError", "no luck", [said])
    assert "no luck" in cell.data()[0]
    assert kernel.value("out.stop_reason") == "error"

    kernel.run("m = scripted(RuntimeError('no luck'))")
    captured = kernel.run("%%capture c\n%%agent -m m\ngo")
    assert [out["traceback"] for out in captured.outputs] == [["RunError: no luck"]]


def test_a_tool_that_starts_an_agent_cell_is_told_no(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run(
        "@tool\ndef nested() -> str:\n    'Nested.'\n    return get_ipython().run_cell_magic('agent', '-m m', 'go')\n"
        "@tool\nasync def inner_agent() -> str:\n    'An agent of its own.'\n"
        "    return (await Agent(model=scripted('from inside')).prompt('go')).text\n"
        "m = scripted([call('nested'), call('inner_agent')], 'ok')"
    )
    assert kernel.run("%%agent -m m -o out\ngo").status == "ok"
    first, second = kernel.value("[c.result.text for c in out.tool_calls]")
    assert "An agent is running in this kernel already" in first
    assert second == "from inside"


def test_a_thread_is_told_what_to_do(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    cell = kernel.run(
        "import threading\nsaid = []\n"
        "def work():\n"
        "    try:\n        get_ipython().run_cell_magic('agent', '-m m', 'go')\n"
        "    except Exception as error:\n        said.append(str(error))\n"
        "t = threading.Thread(target=work); t.start(); t.join()"
    )
    assert cell.status == "ok"
    assert kernel.value("said")[0].startswith("%%agent runs in cells, not on threads of your own")


def test_a_subshell_runs_cells_too(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    with kernel.subshell() as subshell:
        kernel.execute_subshell = subshell
        cell = kernel.run("%%agent -m m -o out\ngo", cell_id="in a subshell")
        kernel.execute_subshell = None
    assert cell.status == "ok", cell.outputs
    assert kernel.value("out.text") == "answer"


def test_help_is_shown_in_a_page(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    for code, words in (("%%agent?", "--approve-timeout SECONDS"), ("%agent?", "%agent history")):
        reply = kernel.run(code).reply
        assert reply is not None
        assert words in reply["payload"][0]["data"]["text/plain"]


def ipython(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "IPYTHONDIR": str(folder), "TERM": "dumb", "PI_NOTEBOOK_NO_LOCAL": "1"}
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120)
    return done.stdout + done.stderr


SHOW = (
    "%load_ext pi_notebook\n"
    "magics = get_ipython().magics_manager.registry['AgentMagics']\n"
    "print('configured', magics.model, magics.max_turns, magics.approve, magics.rules)\n"
)


def test_the_command_line_and_a_file_configure_it(tmp_path: Path) -> None:
    (tmp_path / "show.ipy").write_text(SHOW)
    shown = ipython(tmp_path, "--AgentMagics.model=from-the-line", "--AgentMagics.max_turns=7", "show.ipy")
    assert "configured from-the-line 7 ask None" in shown
    profile = tmp_path / "profile_default"
    profile.mkdir(exist_ok=True)
    (profile / "ipython_config.py").write_text(
        "from pi_notebook import Rules\n"
        "c.AgentMagics.model = 'from-a-file'\n"
        "c.AgentMagics.rules = Rules(block=['bash'])\n"
        "c.InteractiveShellApp.extensions = ['pi_notebook']\n"
    )
    shown = ipython(tmp_path, "show.ipy")
    assert "configured from-a-file 25 ask Rules(allow=[], block={'bash': ''}, ask=[])" in shown


def test_a_wrong_value_in_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "show.ipy").write_text(SHOW)
    shown = ipython(tmp_path, "--AgentMagics.approve=maybe", "show.ipy")
    assert "The 'approve' trait of an AgentMagics instance expected any of ['ask', 'all', 'none']" in shown


WIPE = """
@tool(approval=True)
def wipe(path: str) -> str:
    "Wipe a path."
    return f"wiped {path}"
"""


def test_rules_decide_and_the_transcript_says_so(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run(
        WIPE + "from pi_notebook import Rules\n"
        "rules = Rules(allow=['wipe(tmp/*)'], block={'wipe(*thesis*)': 'not my thesis'})\n"
        "m = scripted([call('wipe', path='tmp/a'), call('wipe', path='tmp/thesis')], 'ok')"
    )
    cell = kernel.run("%%agent -m m --approve rules -o out\ngo")
    assert cell.status == "ok"
    assert kernel.value("[c.result.text for c in out.tool_calls if not c.is_error]") == ["wiped tmp/a"]
    assert kernel.value("[c.result.text for c in out.tool_calls if c.is_error]") == ["not my thesis"]
    (shown, *_) = cell.data("text/plain")
    assert "rule 'wipe(*thesis*)'" in shown and "rule 'wipe(tmp/*)'" in shown


def test_a_question_that_nobody_answers_in_time_is_blocked(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run(WIPE + "m = scripted([call('wipe', path='x')], 'ok')")
    cell = kernel.run("%%agent -m m --approve-timeout 0.2 -o out\ngo", cell_id="asks")
    assert cell.status == "ok"
    assert kernel.value("out.tool_calls[0].result.text") == "Blocked: nobody answered within 0.2 s."
    assert "time limit" in cell.data("text/plain")[0]


def test_out_is_set_after_an_interrupt(newest_kernel: Session) -> None:
    kernel = prepared(newest_kernel)
    kernel.run("m = scripted(' '.join(['word'] * 2000), delay=0.02)")
    cell = kernel.submit("%%agent -m m -o out\ngo", cell_id="long")
    kernel.wait_until(lambda: "word word" in str(kernel.widgets), what="the first words")
    kernel.interrupt()
    assert cell.wait().error_name == "KeyboardInterrupt"
    (error,) = [o for o in cell.outputs if o["output_type"] == "error"]
    assert error["traceback"] == ["KeyboardInterrupt: the agent was interrupted."]
    assert kernel.value("'word' in out.text") is True
