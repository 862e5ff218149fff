"""The bridge in real kernels, on every ipykernel version that it is held to.

`page` is a page that talks to the main shell, and on ipykernel 7 also one that addresses widget messages to a
subshell, as JupyterLab does. `kernel` is the former alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from tests.kernels import Cell, Session

SETUP = """
import signal, sys, threading, time
from pi_notebook.notebook.bridge import Bridge, CallInterrupted, who_can_answer
from comm import create_comm

shell = get_ipython()
got, order, told = [], [], []
main = threading.current_thread()
probe = create_comm("probe")

@probe.on_msg
def _(message):
    got.append((message["content"]["data"]["i"], threading.current_thread() is main))

def agent_cell(work):
    "An agent's cell in small: work on the agent's thread, this one in the pump until it has ended."
    finished = threading.Event()
    failures = []
    def run():
        try:
            work(bridge)
        except BaseException as error:
            failures.append(error)
        finally:
            finished.set()
            bridge.wake()
    with Bridge(shell, on_interrupt=lambda: told.append(1)) as bridge:
        print("open", flush=True)
        bridge.spawn(run)
        assert bridge.wait(finished.is_set, timeout=50)
    if failures:
        raise failures[0]
    order.append("agent")
    return bridge

def until(condition):
    "Block an agent's thread until condition() is true."
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)

print(probe.comm_id)
"""


def start(session: Session) -> str:
    """Prepare the kernel. Returns the id of a comm whose messages are noted in `got`."""
    cell = session.run(SETUP)
    assert cell.status == "ok", cell.outputs
    return cell.text.strip()


def submit(session: Session, code: str) -> Cell:
    """Queue `code` and return when its bridge is open."""
    cell = session.submit(code)
    session.wait_until(lambda: "open" in cell.text or cell.idle, what="an open bridge")
    assert "open" in cell.text, cell.outputs
    return cell


def finish(cell: Cell) -> Cell:
    cell.wait()
    assert cell.status == "ok", cell.outputs
    return cell


# ---- clicks


def test_clicks_are_handled_in_order_and_queued_cells_run_after(page: Session) -> None:
    comm_id = start(page)
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: len(got) == 300)); seen = len(got)")
    cells, completions = [agent], []
    for i in range(300):
        page.send_comm(comm_id, {"i": i})
        if i % 10 == 0:
            cells.append(page.submit(f"order.append({i})"))
        if i % 60 == 0:
            completions.append(page.client.complete("orde"))
    for cell in cells:
        finish(cell)
    assert [cell.started for cell in cells] == list(range(agent.started or 0, (agent.started or 0) + 31))
    assert page.value("seen") == 300
    assert page.value("got") == [(i, True) for i in range(300)]
    assert page.value("order") == ["agent", *range(0, 300, 10)]
    page.wait_until(lambda: all(msg_id in page.replies for msg_id in completions), what="the completions")
    assert agent.stream("stderr") == ""


def test_no_click_is_lost_under_interrupts(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page,
        """
with Bridge(shell, on_interrupt=lambda: told.append(1)) as bridge:
    print("open", flush=True)
    raised, deadline = 0, time.monotonic() + 50
    while len(got) < 400 and time.monotonic() < deadline:
        try:
            bridge.wait(lambda: len(got) >= 400, timeout=1)
        except KeyboardInterrupt:
            raised += 1
""",
    )

    def interrupt() -> None:
        pause = random.Random(7)
        for _ in range(40):
            page.interrupt()
            time.sleep(pause.random() * 0.02)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    for i in range(400):
        page.send_comm(comm_id, {"i": i})
        time.sleep(0.002)
    interrupting.join()
    finish(agent)
    assert page.value("[i for i, _ in got]") == list(range(400))
    assert page.value("len(told)") == 1
    print("interrupts seen:", page.value("raised + 1"), "of 40")


def test_a_button_is_clicked_and_a_text_is_typed(page: Session) -> None:
    start(page)
    agent = submit(
        page,
        """
import ipywidgets
reason, button = ipywidgets.Text(description="Reason"), ipywidgets.Button(description="Block")
button.on_click(lambda b: got.append(reason.value))
bridge = agent_cell(lambda bridge: until(lambda: got))
""",
    )
    page.set_state(page.find_widget(description="Reason"), value="not today")
    page.send_custom(page.find_widget(description="Block"), {"event": "click"})
    finish(agent)
    assert page.value("got") == ["not today"]


def test_each_message_stands_between_busy_and_idle_of_its_own(page: Session) -> None:
    comm_id = start(page)
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: len(got) == 3))")
    ids = [page.send_comm(comm_id, {"i": i}) for i in range(3)]
    finish(agent)
    states = [(parent, state) for parent, state in page.states if parent in ids]
    assert states == [(msg_id, state) for msg_id in ids for state in ("busy", "idle")]


def test_a_message_for_a_closed_comm_is_dropped_silently(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page, "probe2 = create_comm('probe'); probe.close(); bridge = agent_cell(lambda bridge: until(lambda: told))"
    )
    late = page.send_comm(comm_id, {"i": 1})
    page.wait_until(lambda: (late, "idle") in page.states, what="the late message's idle")
    page.interrupt()
    finish(agent)
    assert [out["output_type"] for out in agent.outputs] == ["stream"]
    assert agent.stream("stderr") == ""
    assert page.value("got") == []


def test_a_callback_that_fails_does_not_stop_the_next(kernel: Session) -> None:
    comm_id = start(kernel)
    kernel.run("probe.on_msg(lambda message: got.append(1 / message['content']['data']['i']))")
    agent = submit(kernel, "bridge = agent_cell(lambda bridge: until(lambda: len(got) == 2))")
    for i in (0, 1, 2):
        kernel.send_comm(comm_id, {"i": i})
    finish(agent)
    assert kernel.value("got") == [1.0, 0.5]


def test_what_a_callback_prints_lands_in_the_agents_cell(page: Session) -> None:
    comm_id = start(page)
    page.run("probe.on_msg(lambda message: (print('clicked'), got.append(1)))")
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: got))")
    page.send_comm(comm_id, {})
    finish(agent)
    assert agent.text == "open\nclicked\n"


def test_a_long_call_can_let_clicks_through(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page,
        """
def long_call():
    until(lambda: bridge_of.pump_once() or got)
    return list(got)
def work(bridge):
    global bridge_of
    bridge_of = bridge
    order.append(bridge.call(long_call).result(50))
bridge = agent_cell(work)
""",
    )
    page.send_comm(comm_id, {"i": 1})
    finish(agent)
    assert page.value("order") == [[(1, True)], "agent"]


def test_a_click_during_a_call_is_handled_right_after_it(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page,
        """
released = threading.Event()
def work(bridge):
    def call():
        print("in call", flush=True)
        released.wait(40)
        return list(got)
    order.append(bridge.call(call).result(50))
    until(lambda: got)
threading.Timer(0.3, released.set).start()
bridge = agent_cell(work)
""",
    )
    page.wait_until(lambda: "in call" in agent.text)
    page.send_comm(comm_id, {"i": 1})
    finish(agent)
    assert page.value("order[-1]") == "agent"
    assert page.value("got") == [(1, True)]


def test_an_agents_cell_inside_an_agents_cell(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page,
        """
def work(bridge):
    bridge.call(lambda: agent_cell(lambda inner: until(lambda: len(got) >= 1)) and None).result(50)
    order.append("inner done")
    until(lambda: len(got) >= 2)
bridge = agent_cell(work)
""",
    )
    page.wait_until(lambda: agent.text.count("open") == 2)
    page.send_comm(comm_id, {"i": 1})
    page.wait_until(lambda: page.statuses.count(("comm_msg", "idle")) == 1)
    page.send_comm(comm_id, {"i": 2})
    finish(agent)
    assert page.value("order") == ["agent", "inner done", "agent"]
    page.send_comm(comm_id, {"i": 3})  # the kernel's own way works again
    assert page.value("[i for i, _ in got][:2]") == [1, 2]
    page.wait_until(lambda: page.statuses.count(("comm_msg", "idle")) == 3)
    assert page.value("[i for i, _ in got]") == [1, 2, 3]


# ---- a page that is loaded during the run


def test_a_page_loaded_during_the_run_is_answered_and_seen(page: Session) -> None:
    comm_id = start(page)
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: got)); bridge.page_reloaded")
    info = page.reload_page()
    page.wait_until(lambda: info in page.replies, what="the reply to the new page")
    assert agent.reply is None
    assert page.replies[info]["content"]["status"] == "ok"
    page.send_comm(comm_id, {"i": 1})
    assert finish(agent).data() == ["True"]


def test_a_page_that_asks_again_is_answered_but_was_not_loaded_anew(page: Session) -> None:
    comm_id = start(page)
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: got)); bridge.page_reloaded")
    info = page.request("comm_info_request", {"target_name": "probe"})
    page.wait_until(lambda: info in page.replies, what="the reply")
    assert page.replies[info]["content"]["comms"][comm_id] == {"target_name": "probe"}
    assert agent.reply is None
    page.send_comm(comm_id, {"i": 1})
    assert finish(agent).data() == ["False"]


# ---- calls


def test_what_a_call_prints_and_displays_lands_in_the_agents_cell(kernel: Session) -> None:
    start(kernel)
    agent = submit(
        kernel,
        """
def call():
    print("printed", threading.current_thread() is main)
    display("displayed")
    return 42
bridge = agent_cell(lambda bridge: print(bridge.call(call).result(40)))
""",
    )
    after = kernel.submit("print('after')")
    finish(agent)
    finish(after)
    assert agent.text == "open\nprinted True\n42\n"
    assert agent.data() == ["'displayed'"]
    assert after.text == "after\n"


def test_input_in_a_call(kernel: Session) -> None:
    start(kernel)
    kernel.answers.append("forty-two")
    agent = submit(
        kernel, "bridge = agent_cell(lambda bridge: print(bridge.call(lambda: input('How many? ')).result(40)))"
    )
    finish(agent)
    assert kernel.prompts == ["How many? "]
    assert agent.text == "open\nforty-two\n"


def test_input_in_a_call_can_be_interrupted(kernel: Session) -> None:
    start(kernel)
    agent = submit(
        kernel,
        "bridge = agent_cell(lambda bridge: print(repr(bridge.call(lambda: input('How many? ')).exception(40))))",
    )
    kernel.wait_until(lambda: kernel.prompts)
    kernel.interrupt()
    finish(agent)
    assert agent.text == "open\nCallInterrupted('interrupted by the user')\n"
    kernel.answers.append("too late")  # the next question must not get it
    kernel.read()


# ---- interrupts


def interrupted_seconds(session: Session, cell: Cell) -> float:
    started = time.monotonic()
    session.interrupt()
    cell.wait(15)
    return time.monotonic() - started


@pytest.mark.parametrize(
    "work",
    [
        "until(lambda: told)",
        "(print('in call'), bridge.call(lambda: time.sleep(20)).exception(40))",
    ],
    ids=["pump", "sleeping call"],
)
def test_an_interrupt_is_told_and_the_next_run_works(kernel: Session, work: str) -> None:
    comm_id = start(kernel)
    agent = submit(
        kernel,
        f"bridge = agent_cell(lambda bridge: {work})\nif bridge.interrupted: raise KeyboardInterrupt",
    )
    if "in call" in work:
        kernel.wait_until(lambda: "in call" in agent.text)
        time.sleep(0.2)  # from the print into the sleep: an interrupt in the middle is kept, but ends no sleep
    queued = [kernel.submit("order.append(1)"), kernel.submit("order.append(2)")]
    seconds = interrupted_seconds(kernel, agent)
    print(f"cell ended {seconds:.3f} s after the interrupt")
    assert seconds < 10
    assert (agent.status, agent.error_name) == ("error", "KeyboardInterrupt")
    assert [cell.wait().status for cell in queued] == ["aborted", "aborted"]
    assert kernel.value("(told, order)") == ([1], ["agent"])
    following = submit(kernel, "bridge = agent_cell(lambda bridge: until(lambda: got)); bridge.interrupted")
    kernel.send_comm(comm_id, {"i": 1})
    assert finish(following).data() == ["False"]


def test_a_second_interrupt_leaves_a_thread_that_does_not_end(kernel: Session) -> None:
    start(kernel)
    agent = submit(kernel, "bridge = agent_cell(lambda bridge: (until(lambda: told), print('told'), time.sleep(20)))")
    kernel.interrupt()
    kernel.wait_until(lambda: "told" in agent.text)
    seconds = interrupted_seconds(kernel, agent)
    print(f"cell ended {seconds:.3f} s after the second interrupt")
    assert seconds < 10
    assert agent.error_name == "KeyboardInterrupt"
    assert kernel.value("order") == []


def test_a_second_interrupt_breaks_off_a_callback_that_is_stuck(kernel: Session) -> None:
    comm_id = start(kernel)
    kernel.run(
        """
@probe.on_msg
def _(message):
    time.sleep(1.1)
    print("stuck", flush=True)
    time.sleep(30)
"""
    )
    agent = submit(kernel, "bridge = agent_cell(lambda bridge: until(lambda: told))")
    kernel.send_comm(comm_id, {})
    kernel.wait_until(lambda: "stuck" in agent.text)
    time.sleep(0.2)  # see above
    kernel.interrupt()
    time.sleep(0.2)  # two signals that meet are one
    seconds = interrupted_seconds(kernel, agent)
    print(f"cell ended {seconds:.3f} s after the second interrupt")
    assert agent.error_name == "KeyboardInterrupt"


@pytest.mark.parametrize("handler", ["signal.default_int_handler", "signal.SIG_IGN", "lambda signum, frame: None"])
def test_the_interrupt_handler_is_put_back(kernel: Session, handler: str) -> None:
    start(kernel)
    cell = kernel.run(
        f"""
handler = {handler}
signal.signal(signal.SIGINT, handler)
bridge = agent_cell(lambda bridge: bridge.call(lambda: None).result(40))
signal.getsignal(signal.SIGINT) is handler
"""
    )
    assert cell.data() == ["True"]
    sleeping = kernel.submit("print('sleeping', flush=True); time.sleep(20)")  # the kernel's own handler, next cell
    kernel.wait_until(lambda: sleeping.text)
    time.sleep(0.2)  # see above
    kernel.interrupt()
    assert sleeping.wait().error_name == "KeyboardInterrupt"


# ---- threads


def test_output_of_a_spawned_thread_stays_in_its_cell(kernel: Session) -> None:
    start(kernel)
    agent = submit(
        kernel,
        """
late = threading.Event()
def work(bridge):
    print("a")
    def linger():
        late.wait(40)
        print("late print")
        bridge.publish({"text/plain": "late display"})
        bridge.publish({"text/plain": "after"}, display_id="d", update=True)
        lingered.set()
    lingered = bridge.lingered = threading.Event()
    bridge.spawn(linger)
    bridge.publish({"text/plain": "before"}, display_id="d")
    print("b")
bridge = agent_cell(work)
""",
    )
    following = kernel.submit("late.set(); bridge.lingered.wait(40); print('following')")
    finish(agent)
    finish(following)
    kernel.wait_until(lambda: "late print" in agent.text and len(agent.data()) == 2, what="late output")
    assert agent.text == "open\na\nb\nlate print\n"
    assert agent.data() == ["after", "late display"]
    assert following.text == "following\n"
    assert following.data() == []


def test_output_under_capture_is_captured(kernel: Session) -> None:
    start(kernel)
    cell = kernel.run(
        """%%capture caught
def work(bridge):
    print("printed")
    bridge.publish({"text/plain": "published"})
bridge = agent_cell(work)
"""
    )
    assert cell.outputs == []
    assert kernel.value("caught.stdout") == "open\nprinted\n"
    assert kernel.value("[output.data for output in caught.outputs]") == [{"text/plain": "published"}]


@pytest.mark.parametrize("version", ["7.0.1", "7.3.0", "7.4.0"])
def test_an_agents_cell_in_a_subshell(version: str, sessions: Callable[..., Session]) -> None:
    session = sessions(version)
    comm_id = start(session)
    with session.subshell() as subshell:
        session.execute_subshell = subshell
        try:
            agent = submit(
                session,
                "main = threading.current_thread()\nbridge = agent_cell(lambda bridge: until(lambda: len(got) == 2))",
            )
            session.send_comm(comm_id, {"i": 1})
            session.comm_subshell = None
            session.send_comm(comm_id, {"i": 2})
            finish(agent)
        finally:
            session.execute_subshell = None
            session.comm_subshell = subshell
    assert session.value("got") == [(1, True), (2, True)]


# ---- who can answer


def test_who_can_answer_in_a_kernel(kernel: Session) -> None:
    start(kernel)
    assert kernel.run("who_can_answer(shell)").data() == ["'front end'"]
    assert kernel.run("who_can_answer(shell)", allow_stdin=False).data() == ["'nobody'"]


# ---- kernels that are not as we know them


def test_without_one_of_the_private_names_no_click_can_arrive(kernel: Session) -> None:
    start(kernel)
    cell = kernel.run(
        """
from pi_notebook.notebook import _kernel_messages as messages

class Without:
    "The kernel, or a part of it, less one dotted name."
    def __init__(self, whole, hidden):
        self._whole, self._hidden = whole, hidden
    def __getattr__(self, name):
        first, _, rest = self._hidden.partition(".")
        if name == first and not rest:
            raise AttributeError(name)
        part = getattr(self._whole, name)
        return Without(part, rest) if name == first else part

class Shell:
    display_pub = shell.display_pub
    def __init__(self, kernel):
        self.kernel = kernel

modes, own = {}, messages._TAP_NAMES if Bridge(shell).mode == "tap7" else messages._QUEUE_NAMES
for name in (*messages._SHARED_NAMES, *own):
    if name != "get_parent":
        with Bridge(Shell(Without(shell.kernel, name))) as bridge:
            future = bridge.call(lambda: 1)
            assert bridge.wait(future.done, 10)
            modes[name] = bridge.mode
"""
    )
    assert cell.status == "ok", cell.outputs
    modes = kernel.value("modes")
    assert len(modes) >= 8
    assert set(modes.values()) == {"none"}


def test_an_error_of_ours_leaves_the_message_to_the_kernel(page: Session) -> None:
    comm_id = start(page)
    agent = submit(
        page,
        """
from pi_notebook.notebook import _kernel_messages as messages
def broken(self, header):
    raise RuntimeError("broken")
whole, messages._KernelSource._is_ours = messages._KernelSource._is_ours, broken
try:
    bridge = agent_cell(lambda bridge: until(lambda: told))
finally:
    messages._KernelSource._is_ours = whole
""",
    )
    sent = page.send_comm(comm_id, {"i": 1})
    queued = page.submit("order.append(1)")
    page.interrupt()
    finish(agent)
    finish(queued)
    page.wait_until(lambda: (sent, "idle") in page.states, what="the message's idle, from the kernel")
    assert page.value("[i for i, _ in got]") == [1]
    assert page.value("order") == ["agent", 1]


def test_a_forged_message_is_refused(page: Session) -> None:
    comm_id = start(page)
    agent = submit(page, "bridge = agent_cell(lambda bridge: until(lambda: got))")
    key, page.client.session.key = page.client.session.key, b"forged"
    try:
        page.send_comm(comm_id, {"i": "forged"})
    finally:
        page.client.session.key = key
    page.send_comm(comm_id, {"i": "true"})
    finish(agent)
    assert page.value("[i for i, _ in got]") == ["true"]
