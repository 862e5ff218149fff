"""`%%agent` in real kernels: clicks, queued cells, interrupts, nested magics, results."""

from __future__ import annotations

import time
from itertools import count

import pytest

from ..kernels import Session

SETUP = """
%load_ext pi_notebook
import asyncio, time
from pi_notebook import tool, scripted, call, ToolContext
ran = []

@tool(approval=True)
def wipe(path: str) -> str:
    "Delete everything under a path."
    ran.append(path)
    return f"wiped {path}"

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""


CELLS = count()


def start(session: Session, model: str, options: str = "", prompt: str = "go", **more: object):
    """Submit an agent cell whose model plays `model`, as a page that can draw its card does."""
    session.run(f"m = scripted({model})")
    more.setdefault("cell_id", f"cell-{next(CELLS)}")
    return session.submit(f"%%agent -m m {options}\n{prompt}", **more)


def draw(session: Session) -> None:
    """What a page that shows the card tells the kernel."""
    session.set_state(session.find_widget(_view_count=0), _view_count=1)


def test_a_click_on_approve_runs_the_tool_and_queued_cells_run_after_in_order(page: Session) -> None:
    page.run(SETUP)
    cell = start(page, "[call('wipe', path='scratch/x')], 'It is gone.'", "-o out")
    after = [page.submit(f"ran.append({n})") for n in (1, 2)]
    draw(page)
    clicked = time.monotonic()
    page.click("Approve")
    page.wait_until(lambda: cell.idle)
    print(f"click to end of the cell: {time.monotonic() - clicked:.2f} s")
    for queued in after:
        assert queued.wait().status == "ok"
    assert cell.wait().status == "ok"
    assert page.value("ran") == ["scratch/x", 1, 2]
    assert page.value("out.text") == "It is gone."
    assert page.value("out.tool_calls[0].value") == "wiped scratch/x"


def test_block_with_a_reason_reaches_the_model_and_a_second_click_is_ignored(page: Session) -> None:
    page.run(SETUP)
    cell = start(page, "[call('wipe', path='x')], 'ok'", "-o out")
    draw(page)
    page.wait_until(lambda: page.drawn("Block"))
    reason = page.find_widget(placeholder="reason to block, for the model (Enter blocks)")
    page.set_state(reason, value="that is my thesis")
    approve = page.drawn("Approve")[-1]
    page.click("Block")
    page.send_custom(approve, {"event": "click"})
    assert cell.wait().status == "ok"
    assert page.value("ran") == []
    assert page.value("out.messages[2].text") == "The user blocked this call. Reason: that is my thesis"


def test_stop_ends_the_run_gives_the_value_and_later_cells_go_on(kernel: Session) -> None:
    kernel.run(SETUP)
    cell = start(kernel, "' '.join(['word'] * 2000), delay=0.02", "-o out")
    later = kernel.submit("ran.append('later')")
    kernel.wait_until(lambda: "word word" in str(kernel.widgets), what="the first words")
    kernel.click("Stop")
    assert cell.wait().status == "ok"
    assert later.wait().status == "ok"
    assert kernel.value("out.stop_reason") == "aborted"
    assert kernel.value("'word' in out.text and ran == ['later']") is True


def test_stop_is_heard_inside_a_main_thread_tool_that_reports_progress(kernel: Session) -> None:
    kernel.run(
        SETUP
        + """
@tool
def count(ctx: ToolContext) -> str:
    "Count slowly."
    for n in ctx.track(range(1000), "counting"):
        ran.append(n); time.sleep(0.02)
"""
    )
    cell = start(kernel, "[call('count'), call('add', a=1, b=1)], 'ok'", "-o out")
    kernel.wait_until(lambda: "counting" in str(kernel.widgets), what="the progress")
    kernel.click("Stop")
    assert cell.wait().status == "ok"
    assert 0 < kernel.value("len(ran)") < 1000
    assert kernel.value("[c.is_error for c in out.tool_calls]") == [True, True]


SLEEPERS = """
@tool
def main_sleep() -> str:
    "Sleep on the main thread."
    ran.append("main"); time.sleep(20)

@tool(thread="worker")
def worker_sleep() -> str:
    "Sleep on a worker thread."
    ran.append("worker"); time.sleep(20)

@tool
async def block_loop() -> str:
    "Block the agent's own loop, as an async tool should not."
    await asyncio.sleep(0.3); time.sleep(20)
"""


@pytest.mark.parametrize(
    ("what", "model"),
    [
        ("streaming", "' '.join(['word'] * 2000), delay=0.02"),
        ("waiting for a click", "[call('wipe', path='x')], 'ok'"),
        ("main-thread sleep", "[call('main_sleep')], 'ok'"),
        ("worker sleep", "[call('worker_sleep')], 'ok'"),
        ("async tool that blocks the loop", "[call('block_loop')], 'ok'"),
    ],
)
def test_an_interrupt_ends_the_cell_aborts_queued_cells_and_the_next_agent_works(
    kernel: Session, what: str, model: str
) -> None:
    kernel.run(SETUP + SLEEPERS)
    cell = start(kernel, model)
    queued = kernel.submit("ran.append('queued')")
    if what == "waiting for a click":
        draw(kernel)
        kernel.find_widget(description="Approve")
    elif what == "streaming":
        kernel.find_widget(description="Stop")
    else:
        kernel.wait_until(lambda: "running" in str(kernel.widgets), what="the tool to run")
    at = time.monotonic()
    kernel.interrupt()
    cell.wait()
    print(f"interrupt while {what}: cell ended after {time.monotonic() - at:.2f} s")
    assert time.monotonic() - at < 10
    assert (cell.status, cell.error_name) == ("error", "KeyboardInterrupt")
    assert queued.wait().status == "aborted"
    assert kernel.value("'queued' in ran") is False
    following = start(kernel, "lambda c: 'roles ' + ' '.join(m.role for m in c.messages)", "-o out").wait()
    assert following.status == "ok", following.outputs
    roles = kernel.value("out.text").split()[1:]
    assert roles[0] == "user" and roles[-1] == "user"


def test_the_transcript_replaces_the_card_and_no_widget_is_left(kernel: Session) -> None:
    kernel.run(SETUP)
    kernel.widgets.clear()
    cell = start(kernel, "[call('add', a=2, b=3)], 'It is **5**.'").wait()
    (output,) = [o for o in cell.outputs if o["output_type"] in ("display_data", "execute_result")]
    assert set(output["data"]) == {"text/html", "text/markdown", "text/plain"}
    assert "It is" in output["data"]["text/plain"] and "add" in output["data"]["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" not in output["data"]
    assert kernel.widgets == {}


def test_no_widget_is_left_of_a_question(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP)
    newest_kernel.widgets.clear()
    cell = start(newest_kernel, "[call('wipe', path='x')], 'ok'")
    draw(newest_kernel)
    newest_kernel.click("Edit")
    newest_kernel.wait_until(lambda: newest_kernel.drawn("Run edited"), what="the form")
    newest_kernel.click("Run edited")
    assert cell.wait().status == "ok"
    assert newest_kernel.widgets == {}


@pytest.mark.parametrize("magic", ["%%time", "%%capture cap"])
def test_other_cell_magics_work_above_it(kernel: Session, magic: str) -> None:
    kernel.run(SETUP + "m = scripted([call('add', a=2, b=3)], 'five')")
    cell = kernel.run(f"{magic}\n%%agent -m m -o out\ngo")
    assert cell.status == "ok", cell.outputs
    assert kernel.value("out.text") == "five"
    shown = str(cell.outputs)
    assert "coroutine" not in shown and "never awaited" not in shown
    if magic == "%%time":
        assert "Wall time" in cell.text


AS_VALUE = "%%agent -m m\ngo"
ASSIGNED = "r = get_ipython().run_cell_magic('agent', '-m m', 'go')"


@pytest.mark.parametrize("code", [AS_VALUE, ASSIGNED], ids=["value", "assigned"])
def test_a_capture_holds_the_transcript_once_and_nothing_else(kernel: Session, code: str) -> None:
    kernel.run(SETUP + "m = scripted([call('add', a=2, b=3)], 'five')")
    cell = kernel.run(f"%%capture cap\n{code}", cell_id="captured")
    assert cell.status == "ok", cell.outputs
    kinds = "[sorted(output.data) for output in cap.outputs]"
    assert kernel.value(kinds) == [["text/html", "text/markdown", "text/plain"]]
    again = kernel.run("cap.show()")
    assert [sorted(output["data"]) for output in again.outputs] == [["text/html", "text/markdown", "text/plain"]]
    assert "five" in again.data("text/plain")[0]
    two = "for n in range(2):\n    display(get_ipython().run_cell_magic('agent', '-m m', 'go'))"
    kernel.run("m = scripted('one', 'two')")
    kernel.run(f"%%capture cap\n{two}", cell_id="captured")
    assert kernel.value("[word in str(cap.outputs[n].data) for n, word in enumerate(['one', 'two'])]") == [True, True]
    assert kernel.value("len(cap.outputs)") == 2


def test_a_call_that_was_left_behind_does_not_hide_a_capture(newest_kernel: Session) -> None:
    deaf = (
        "import threading\nrelease = threading.Event()\n"
        "@tool(thread='worker', timeout=0.1)\ndef deaf():\n    'Deaf.'\n    release.wait(60)\n"
    )
    newest_kernel.run(SETUP + deaf + "m = scripted([call('deaf')], 'left')")
    newest_kernel.run("%%agent -m m -o out\ngo", cell_id="leaves")
    assert "timed out after 0.1 s" in str(newest_kernel.value("out.tool_calls[0].result.text"))
    newest_kernel.run("m = scripted([call('add', a=2, b=3)], 'five')")
    newest_kernel.run(f"%%capture cap\n{AS_VALUE}", cell_id="captured")
    kinds = newest_kernel.value("[sorted(output.data) for output in cap.outputs]")
    newest_kernel.run("release.set()")
    assert kinds == [["text/html", "text/markdown", "text/plain"]]


def test_run_cell_magic_works(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP + "m = scripted('from code')")
    cell = newest_kernel.run("r = get_ipython().run_cell_magic('agent', '-m m', 'go')\nprint('got', r.text)")
    assert "got from code" in cell.text


def test_the_value_of_the_cell_is_the_result_without_double_output(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP)
    cell = start(newest_kernel, "'answer'").wait()
    assert len([o for o in cell.outputs if o["output_type"] != "stream"]) == 1
    assert newest_kernel.value("_.text") == "answer"
    newest_kernel.run("m = scripted('quiet')")
    silent = newest_kernel.run("%%agent -m m -o out\ngo;")
    assert silent.status == "ok"
    assert newest_kernel.value("out.text") == "quiet"
    assert newest_kernel.value("any(getattr(v, 'text', 0) == 'quiet' for v in Out.values())") is False


def test_what_a_tool_prints_and_plots_belongs_to_its_row(newest_kernel: Session) -> None:
    newest_kernel.run(
        SETUP
        + """
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
@tool
def plot(title: str) -> None:
    "Plot a line."
    print("plotting", title)
    plt.plot([1, 2, 3]); plt.title(title)
"""
    )
    cell = start(newest_kernel, "[call('plot', title='a'), call('plot', title='b')], 'done'", "-o out").wait()
    assert cell.status == "ok"
    assert [o["output_type"] for o in cell.outputs] == ["display_data"]
    assert newest_kernel.value("[c.result.content[0].text.strip() for c in out.tool_calls]") == [
        "plotting a",
        "plotting b",
    ]
    assert (
        newest_kernel.value("[[b.type for b in c.result.content] for c in out.tool_calls]") == [["text", "image"]] * 2
    )
    assert newest_kernel.value("plt.get_fignums()") == []


def test_what_a_tool_prints_stays_in_its_own_cell_while_another_is_queued(kernel: Session) -> None:
    kernel.run(
        SETUP
        + """
def talk() -> str:
    "Print twice."
    print("a"); time.sleep(0.5); print("b")

talk_here, talk_beside = tool(talk), tool(name="beside", thread="worker")(talk)
"""
    )
    cell = start(kernel, "[call('talk'), call('beside')], 'done'", "-o out")
    queued = kernel.submit("print('queued')")
    assert cell.wait().status == "ok" and queued.wait().status == "ok"
    assert queued.text == "queued\n" and [o["output_type"] for o in queued.outputs] == ["stream"]
    assert [o["output_type"] for o in cell.outputs] == ["display_data"]
    assert kernel.value("[c.result.text for c in out.tool_calls]") == ["a\nb\n", "a\nb\n"]


def test_a_main_thread_tool_can_read_input(kernel: Session) -> None:
    kernel.run(SETUP + "@tool\ndef ask() -> str:\n    'Ask.'\n    return input('name? ')\n")
    kernel.answers.append("Ada")
    cell = start(kernel, "[call('ask')], 'ok'", "-o out").wait()
    assert cell.status == "ok"
    assert kernel.prompts == ["name? "]
    assert kernel.value("out.tool_calls[0].value") == "Ada"


def test_a_burst_of_updates_and_deltas_leaves_the_last_state_and_few_messages(newest_kernel: Session) -> None:
    newest_kernel.run(
        SETUP
        + """
@tool
def burst(ctx: ToolContext) -> str:
    "Report very often."
    for n in range(10_000):
        ctx.progress(n + 1, 10_000, "step")
    return "burst over"
"""
    )
    model = "[call('burst')], ' '.join(f'w{n}' for n in range(20_000))"
    before, at = newest_kernel.comm_messages, time.monotonic()
    cell = start(newest_kernel, model, "-o out").wait(120)
    seconds, sent = time.monotonic() - at, newest_kernel.comm_messages - before
    print(f"{sent} widget messages in {seconds:.1f} s for 30,000 updates")
    assert cell.status == "ok"
    # a redraw touches a few widgets, and making and closing them takes some more
    assert sent < 15 * 5 * (seconds + 1) + 100
    assert newest_kernel.value("out.text.split()[-1]") == "w19999"
    (shown,) = cell.data("text/html")
    assert "burst over" in shown and "w19999" in shown


class TestMistakes:
    """One clear line each, never a traceback of ours."""

    @pytest.mark.parametrize(
        ("cell", "line"),
        [
            ("%%agent --modle x\ngo", "UsageError: unrecognized arguments: --modle x"),
            ("%%agent\n  ", "UsageError: The cell is empty: write below %%agent what the agent should do."),
            ("%%agent -m nobody:x\ngo", "nobody"),
            ("%%agent --tools wipe,nope -m m\ngo", "UsageError: --tools: there is no tool 'nope'."),
            ("%%agent -m m --approve maybe\ngo", "UsageError: argument --approve: invalid choice: 'maybe'"),
            ("%%agent -m m -o 2x\ngo", "UsageError: --out '2x' is no variable name."),
            ("%agent tool", "UsageError: %agent tool: no such command. Did you mean 'tools'?"),
            ("%agent what is this", "To ask an agent something, write %%agent and the question below it."),
            ('%%agent -m "x\ngo', "UsageError: %%agent"),
        ],
    )
    def test_mistakes_in_using_the_magic_are_one_line(self, newest_kernel: Session, cell: str, line: str) -> None:
        newest_kernel.run(SETUP + "m = scripted('x')")
        ended = newest_kernel.run(cell)
        said = ended.stream("stderr").strip()
        assert line in said
        assert len(said.splitlines()) == 1, said
        assert not [o for o in ended.outputs if o["output_type"] == "error" and o["traceback"]]

    def test_before_load_ext_ipython_says_so(self, sessions) -> None:
        session = sessions("7.4.0")
        session.run("%unload_ext pi_notebook")
        cell = session.run("%%agent\ngo")
        assert "Cell magic `%%agent` not found" in cell.stream("stderr")

    def test_a_missing_key_names_the_variable_and_a_dead_server_its_address(self, newest_kernel: Session) -> None:
        newest_kernel.run(SETUP + "import os; os.environ.pop('ANTHROPIC_API_KEY', None)")
        missing = newest_kernel.run("%%agent -m anthropic:claude-sonnet-4-5\ngo")
        assert "ANTHROPIC_API_KEY" in str(missing.outputs)
        dead = newest_kernel.run("%%agent -m openai-compatible:x --base-url http://127.0.0.1:9/v1\ngo", timeout=90)
        assert "127.0.0.1:9" in str(dead.outputs)
        assert dead.status == "error"


def test_load_twice_is_harmless_and_unload_leaves_no_trace(newest_kernel: Session) -> None:
    newest_kernel.run("%load_ext pi_notebook\n%load_ext pi_notebook\n%reload_ext pi_notebook")
    assert (
        newest_kernel.value("len([c for c in get_ipython().configurables if type(c).__name__ == 'AgentMagics'])") == 1
    )
    newest_kernel.run("%unload_ext pi_notebook")
    assert newest_kernel.value("'agent' in get_ipython().magics_manager.magics['cell']") is False
    assert newest_kernel.value("'agent' in get_ipython().magics_manager.magics['line']") is False
    assert newest_kernel.value("[type(c).__name__ for c in get_ipython().configurables].count('AgentMagics')") == 0


def test_running_a_tools_cell_again_replaces_the_tool(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP)
    newest_kernel.run("@tool\ndef add(a: int, b: int, c: int = 0) -> int:\n    'Add three.'\n    return a + b + c\n")
    start(newest_kernel, "[call('add', a=1, b=1, c=1)], 'ok'", "-o out").wait()
    assert newest_kernel.value("out.tool_calls[0].value") == 3


def test_running_a_cell_again_replaces_its_turn_and_says_what_is_stale(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP + "%agent reset\n")
    newest_kernel.run("m = scripted(*[lambda c: ' '.join(str(x.content[0].text) for x in c.messages)] * 4)")
    newest_kernel.run("%%agent -m m\nfirst", cell_id="a")
    newest_kernel.run("%%agent -m m -o out\nsecond", cell_id="b")
    assert newest_kernel.value("out.text") == "first first second"
    again = newest_kernel.run("%%agent -m m -o out\nfirst, changed", cell_id="a")
    assert newest_kernel.value("out.text") == "first, changed"
    assert "Stale now: cells" in again.data("text/plain")[0]


def test_built_in_tools_work_on_the_notebooks_own_namespace(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP + "x = 20\n")
    model = """[call('python', code='y = x + 1\\n%timeit -n1 -r1 pass\\nz = !echo from the shell\\nz[0]')],
        [call('variables')], 'done'"""
    cell = start(newest_kernel, model, "--tools python,variables --approve all -o out").wait()
    assert cell.status == "ok", cell.outputs
    ran, listed = newest_kernel.value("[c.result.text for c in out.tool_calls]")
    assert "from the shell" in ran and "1 loop" in ran and "New variables: y, z" in ran
    assert newest_kernel.value("y") == 21
    assert "x" in listed and "user_ns" not in listed
