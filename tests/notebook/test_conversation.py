"""Turns of cells: order, re-runs, branches, and what a crash leaves of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pi_notebook.ai.handover import handover
from pi_notebook.ai.messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_notebook.ai.model import Model
from pi_notebook.notebook import kept as kept_module
from pi_notebook.notebook.conversation import (
    KERNEL_ENDED,
    NEVER_BEGAN,
    CallsSoFar,
    CellTurn,
    Conversation,
    History,
    mended,
)
from pi_notebook.notebook.kept import read_conversations
from pi_notebook.notebook.past_runs import view_of
from pi_notebook.notebook.store import ConversationLog

MODEL = Model("m", "scripted")


def run(conversation: Conversation, cell: str | None, prompt: str = ""):
    turn = CellTurn(None if cell is None else (cell, 0), prompt or cell or "")
    rewound = conversation.begin(turn)
    conversation.add(turn, UserMessage(turn.prompt))
    conversation.add(turn, AssistantMessage([TextContent(f"answer to {turn.prompt}")]))
    conversation.end(turn, "done")
    return rewound


def prompts(conversation: Conversation | History) -> list[str]:
    turns = conversation.path if isinstance(conversation, History) else conversation.turns
    return [turn.prompt for turn in turns]


class TestRunningCells:
    def test_cells_share_one_conversation_in_the_order_in_which_they_ran(self) -> None:
        conversation = Conversation()
        for cell in "bac":
            assert run(conversation, cell) is None
        assert prompts(conversation) == ["b", "a", "c"]
        assert [m.content for m in conversation.messages if m.role == "user"] == ["b", "a", "c"]

    def test_running_a_cell_again_rewinds_to_before_it_and_names_what_is_stale(self) -> None:
        conversation = Conversation()
        for cell in "abc":
            run(conversation, cell)
        rewound = run(conversation, "a", "a2")
        assert rewound.replaced.prompt == "a"
        assert [turn.prompt for turn in rewound.followed] == ["b", "c"]
        assert prompts(conversation) == ["a2"]

    def test_a_second_agent_in_the_same_execution_is_another_turn(self) -> None:
        conversation = Conversation()
        conversation.begin(CellTurn(("a", 0), "one"))
        assert conversation.begin(CellTurn(("a", 1), "two")) is None
        assert prompts(conversation) == ["one", "two"]

    def test_without_a_cell_id_a_turn_is_appended(self) -> None:
        conversation = Conversation()
        run(conversation, None, "x")
        assert run(conversation, None, "x") is None
        assert prompts(conversation) == ["x", "x"]

    def test_what_comes_after_the_end_of_a_run_comes_too_late(self) -> None:
        conversation = Conversation()
        run(conversation, "a")
        conversation.add(conversation.turns[0], UserMessage("late"))
        assert len(conversation.messages) == 2


class TestUndo:
    def test_the_first_undo_after_a_rerun_restores_the_old_branch_and_the_next_takes_turns_back(self) -> None:
        conversation = Conversation()
        for cell in "abc":
            run(conversation, cell)
        run(conversation, "a", "a2")
        undone = conversation.undo()
        assert undone.taken.prompt == "a2"
        assert [turn.prompt for turn in undone.restored] == ["a", "b", "c"]
        assert prompts(conversation) == ["a", "b", "c"]
        assert conversation.undo().restored == ()
        assert prompts(conversation) == ["a", "b"]

    def test_several_levels_of_reruns_come_back_one_by_one(self) -> None:
        conversation = Conversation()
        for cell in "ab":
            run(conversation, cell)
        run(conversation, "b", "b2")
        run(conversation, "c")
        run(conversation, "a", "a2")
        run(conversation, "d")
        seen = []
        while conversation.undo() is not None:
            seen.append(prompts(conversation))
        assert seen == [["a2"], ["a", "b2", "c"], ["a", "b2"], ["a", "b"], ["a"], []]

    def test_undo_of_an_empty_conversation_is_none(self) -> None:
        assert Conversation().undo() is None

    def test_a_turn_that_was_taken_back_can_run_again(self) -> None:
        conversation = Conversation()
        run(conversation, "a")
        conversation.undo()
        assert run(conversation, "a") is None
        assert prompts(conversation) == ["a"]


def test_reset_empties_and_a_run_that_still_goes_on_disturbs_nothing() -> None:
    conversation = Conversation()
    turn = CellTurn(("a", 0), "a")
    conversation.begin(turn)
    conversation.reset()
    conversation.add(turn, UserMessage("late"))
    conversation.end(turn, "done")
    assert conversation.turns == [] and conversation.messages == []


def result(call_id: str, text: str = "r") -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", [TextContent(text)])


def reply(*call_ids: str, stop_reason: str = "tool_use") -> AssistantMessage:
    return AssistantMessage([ToolCall(call_id, "t", {}) for call_id in call_ids], stop_reason=stop_reason)


class TestMended:
    """A transcript in which every call has one result."""

    def test_an_open_call_gets_an_error_result_that_says_why(self) -> None:
        _, *rest = mended([reply("1", "2"), result("1"), UserMessage("go on")])
        assert [(m.role, getattr(m, "tool_call_id", None)) for m in rest] == [
            ("tool_result", "1"),
            ("tool_result", "2"),
            ("user", None),
        ]
        assert rest[1].is_error and rest[1].text == KERNEL_ENDED
        assert rest[1].timestamp == rest[0].timestamp

    def test_repeated_ids_are_counted_and_a_result_without_a_call_is_left_out(self) -> None:
        whole = mended([result("0"), reply("1", "1"), result("1"), result("9")])
        assert [getattr(m, "tool_call_id", None) for m in whole] == [None, "1", "1"]
        assert whole[2].is_error

    def test_replies_that_failed_are_left_alone(self) -> None:
        messages = [reply("1", stop_reason="aborted"), UserMessage("x"), reply("2", stop_reason="error")]
        assert mended(messages) == messages

    def test_each_call_of_the_last_reply_gets_what_is_known_of_it(self) -> None:
        so_far = CallsSoFar(["1", "2"], [(result("1", "its own"), {})])
        whole = mended([reply("0"), UserMessage("x"), reply("1", "2", "3")], so_far, "broken off", "not run")
        assert [m.text for m in whole if m.role == "tool_result"] == ["broken off", "its own", "broken off", "not run"]
        assert [m.is_error for m in whole if m.role == "tool_result"] == [True, False, True, True]

    def test_calls_of_one_id_are_counted(self) -> None:
        so_far = CallsSoFar(["1", "1"], [(result("1", "its own"), {})])
        whole = mended([reply("1", "1", "1")], so_far)
        assert [m.text for m in whole[1:]] == ["its own", KERNEL_ENDED, NEVER_BEGAN]
        check_valid(whole)

    def test_close_open_calls_closes_those_of_the_last_reply(self) -> None:
        conversation = Conversation()
        turn = CellTurn(None, "x")
        conversation.begin(turn)
        for message in (UserMessage("x"), reply("1", "2", "3", "4"), result("1")):
            conversation.add(turn, message)
        conversation.call_began(turn, "2")
        conversation.call_began(turn, "3")
        conversation.call_ended(turn, result("3", "in time"), {})
        conversation.close_open_calls(turn, "left", "not run")
        assert [m.text for m in turn.messages[-4:]] == ["r", "left", "in time", "not run"]
        conversation.close_open_calls(turn, "left", "not run")
        assert len(turn.messages) == 6


State = tuple[tuple[str, tuple[Message, ...]], ...]


def state_of(turns: list[CellTurn]) -> State:
    return tuple((turn.prompt, tuple(mended(turn.messages, turn.so_far))) for turn in turns)


def check_valid(messages: list[Message]) -> None:
    """One result per call, right behind its reply, and no other."""
    calls: list[str] = []
    for message in messages:
        if message.role == "tool_result":
            calls.remove(message.tool_call_id)
            continue
        assert not calls
        calls = [call.id for call in message.tool_calls] if message.role == "assistant" else []
    assert not calls


class CrashingKernels(RuleBasedStateMachine):
    """Whatever happens and wherever the file is cut: what is resumed is a state that the conversation was in."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / ".pi_notebook" / "nb.jsonl"
        self.snapshots: list[tuple[int, list[tuple[str, State]]]] = [(0, [])]
        self.count = 0
        self.new_kernel()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def new_kernel(self) -> None:
        self.conversation = Conversation("", ConversationLog(self.path))
        self.turn: CellTurn | None = None

    def snapshot(self) -> None:
        """What the file holds now: conversations in the order in which they were written to."""
        size = self.path.stat().st_size if self.path.exists() else 0
        offset, states = self.snapshots[-1]
        if size > offset:
            states = [pair for pair in states if pair[0] != self.conversation.id]
            states.append((self.conversation.id, state_of(self.conversation.turns)))
            self.snapshots.append((size, states))

    @rule(cell=st.sampled_from(["a", "b", "c", None]))
    def begin(self, cell: str | None) -> None:
        self.count += 1
        self.turn = CellTurn(cell and (cell, 0), f"prompt {self.count} é\u2028\n")
        self.conversation.begin(self.turn)
        self.snapshot()

    @precondition(lambda self: self.turn is not None and self.turn.outcome is None)
    @rule(what=st.sampled_from(["user", "reply", "failed", "began", "ended", "result", "end"]), calls=st.integers(0, 3))
    def go_on(self, what: str, calls: int) -> None:
        turn = self.turn
        assert turn is not None
        self.count += 1
        ids = [f"call-{self.count}-{i // 2}" for i in range(calls)]
        last = next((m for m in reversed(turn.messages) if m.role == "assistant"), None)
        if what == "user":
            self.conversation.add(turn, UserMessage(f"steer {self.count}"))
        elif what in ("reply", "failed"):
            self.conversation.add(turn, reply(*ids, stop_reason="error" if what == "failed" else "tool_use"))
        elif what == "end":
            self.conversation.end(turn, "done")
        elif last is not None and last.tool_calls and last.stop_reason != "error":
            call_id = last.tool_calls[calls % len(last.tool_calls)].id
            if what == "began":
                self.conversation.call_began(turn, call_id)
            elif what == "result":
                self.conversation.add(turn, result(call_id, f"r{self.count}"))
            elif len(turn.so_far.ended) + 1 < len(last.tool_calls):  # behind the last one come the messages
                self.conversation.call_ended(turn, result(call_id, f"r{self.count}"), {})
        self.snapshot()

    @rule()
    def undo(self) -> None:
        self.conversation.undo()
        self.turn = None
        self.snapshot()

    @rule()
    def reset(self) -> None:
        self.conversation.reset()
        self.turn = None

    @rule(data=st.data(), is_resumed=st.booleans())
    def crash(self, data: st.DataObject, is_resumed: bool) -> None:
        size = self.path.stat().st_size if self.path.exists() else 0
        cut = data.draw(st.one_of(st.just(size), st.integers(0, size), st.integers(max(0, size - 50), size)))
        after = [states for offset, states in self.snapshots if offset > cut][:1]
        self.snapshots = [pair for pair in self.snapshots if pair[0] <= cut]
        possible = [resumable(states) for states in [self.snapshots[-1][1], *after]]
        if self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(cut)
        self.new_kernel()
        log = self.conversation.log
        assert log is not None
        log.prepare()
        kept, _ = read_conversations(self.path)
        resumed = state_of(kept[0].history().path) if kept else ()
        assert resumed in possible
        states = self.snapshots[-1][1]
        if cut > self.snapshots[-1][0] and resumed != possible[0]:
            states = after[0]  # the cut fell behind the line that counts, before others of the same step
        self.snapshots.append((cut, states))
        if is_resumed and kept:
            self.conversation.resume(kept[0].history(), (kept[0].id, len(kept[0].records)))

    @invariant()
    def the_file_holds_what_was_said(self) -> None:
        if hasattr(self, "path") and self.path.exists():
            kept, _ = read_conversations(self.path)
            assert (state_of(kept[0].history().path) if kept else ()) == resumable(self.snapshots[-1][1])

    @invariant()
    def requests_are_valid(self) -> None:
        if hasattr(self, "conversation"):
            check_valid(handover([*self.conversation.messages, UserMessage("next")], MODEL))


def resumable(states: list[tuple[str, State]]) -> State:
    return next((state for _, state in reversed(states) if state), ())


TestCrashingKernels = CrashingKernels.TestCase
TestCrashingKernels.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_a_kernel_that_dies_in_a_tool_call_leaves_a_conversation_that_can_go_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / ".pi_notebook" / "nb.jsonl"
    conversation = Conversation("", ConversationLog(path))
    run(conversation, "a")
    turn = CellTurn(("b", 0), "b")
    conversation.begin(turn)
    for message in (UserMessage("b"), reply("1", "2"), result("1"), UserMessage("x" * 50)):
        conversation.add(turn, message)
    data = path.read_bytes()
    last = data.rindex(b"\n", 0, len(data) - 1) + 1
    path.write_bytes(data[: last + cut])
    (kept,), notices = read_conversations(path)
    assert prompts(kept.history()) == ["a", "b"]
    assert [m.text for m in kept.history().path[1].messages[2:]] == ["r", NEVER_BEGAN]
    torn = "The last line of the file is torn (the kernel ended while it was written) and is left out."
    assert notices == ([torn] if cut else [])
    assert kept.history().path[1].outcome is None


def test_after_a_crash_a_call_has_the_result_it_came_to_or_what_is_known_of_it(tmp_path: Path) -> None:
    path = tmp_path / ".pi_notebook" / "nb.jsonl"
    conversation = Conversation("", ConversationLog(path))
    turn = CellTurn(("b", 0), "b")
    conversation.begin(turn)
    conversation.add(turn, reply("0"))
    conversation.call_began(turn, "0")
    conversation.add(turn, result("0"))
    conversation.add(turn, reply("1", "2", "0"))
    for call_id in ("1", "2"):
        conversation.call_began(turn, call_id)
    conversation.call_ended(turn, result("1", "its own"), {"id": "1", "state": "done", "label": "First"})
    (kept,), _ = read_conversations(path)
    (last,) = kept.history().path
    texts = ["r", "its own", KERNEL_ENDED, NEVER_BEGAN]
    assert [m.text for m in last.messages if m.role == "tool_result"] == texts
    view = view_of(last)
    assert [(row.label, row.state) for row in view.rows] == [
        ("t", "done"),
        ("First", "done"),
        ("t", "stopped"),
        ("t", "stopped"),
    ]
    again = resumed(path)
    run(again, "c")
    assert state_of(resumed(path).turns) == state_of(again.turns)
    older = path.read_text().replace('"tellsCalls":true', '"x":1').splitlines()
    path.write_text("".join(f"{line}\n" for line in older if '"type":"call"' not in line))
    (*_, first), _ = read_conversations(path)
    texts = ["r", KERNEL_ENDED, KERNEL_ENDED, KERNEL_ENDED]
    assert [m.text for m in first.history().path[0].messages if m.role == "tool_result"] == texts


def resumed(path: Path) -> Conversation:
    """A new kernel's conversation that goes on from the latest in the file."""
    conversation = Conversation("", ConversationLog(path))
    conversation.log.prepare()
    kept = read_conversations(path)[0][0]
    conversation.resume(kept.history(), (kept.id, len(kept.records)))
    return conversation


class TestResumed:
    def test_branches_come_back_too_and_their_cells_are_known_again(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        first = Conversation("", ConversationLog(path))
        for cell in "abc":
            run(first, cell)
        run(first, "b", "b2")
        second = resumed(path)
        assert run(second, "a", "a2").replaced.prompt == "a"
        third = resumed(path)
        seen = [prompts(third)]
        while third.undo():
            seen.append(prompts(third))
        assert seen == [["a2"], ["a", "b2"], ["a", "b", "c"], ["a", "b"], ["a"], []]
        assert prompts(resumed(path)) == ["a2"], "an emptied conversation is not the latest to go on from"

    def test_ids_of_vs_code_count_in_one_kernel_only(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        cell = "vscode-notebook-cell:/home/ada/nb.ipynb#W0sZmlsZQ%3D%3D"
        run(Conversation("", ConversationLog(path)), cell, "one")
        assert run(resumed(path), cell, "two").replaced.prompt == "one"
        monkeypatch.setattr(kept_module, "THIS_KERNEL", "another")
        assert run(resumed(path), cell, "three") is None

    def test_two_kernels_that_go_on_from_one_conversation_do_not_disturb_each_other(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        first = Conversation("", ConversationLog(path))
        run(first, "a")
        second = resumed(path)
        run(first, "b")
        run(second, "c")
        run(first, "d")
        run(second, "a", "a2")
        second.undo()
        kept, notices = read_conversations(path)
        assert notices == []
        assert [prompts(each.history()) for each in kept] == [["a", "c"], ["a", "b", "d"]]

    def test_what_another_kernel_says_after_that_is_not_taken_in(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        first = Conversation("", ConversationLog(path))
        turn = CellTurn(("a", 0), "a")
        first.begin(turn)
        first.add(turn, reply("1"))
        second = resumed(path)
        first.add(turn, result("1", "of the first kernel"))
        run(second, "b")
        assert [m.text for m in resumed(path).turns[0].messages] == ["", NEVER_BEGAN]
        assert state_of(resumed(path).turns) == state_of(second.turns)

    def test_nothing_is_written_until_the_conversation_goes_on(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        run(Conversation("", ConversationLog(path)), "a")
        before = path.read_bytes()
        second = resumed(path)
        assert path.read_bytes() == before
        run(second, "b")
        assert path.read_bytes().startswith(before)
        assert [prompts(each.history()) for each in read_conversations(path)[0]] == [["a", "b"]]

    def test_a_file_that_is_lost_is_written_anew_and_whole(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        run(Conversation("", ConversationLog(path)), "a")
        second = resumed(path)
        run(second, "b")
        path.unlink()
        run(second, "c")
        assert [prompts(each.history()) for each in read_conversations(path)[0]] == [["a", "b", "c"]]
        assert state_of(resumed(path).turns) == state_of(second.turns)

    def test_a_lost_line_loses_one_turn_and_not_what_followed(self, tmp_path: Path) -> None:
        path = tmp_path / ".pi_notebook" / "nb.jsonl"
        first = Conversation("", ConversationLog(path))
        for cell in "abc":
            run(first, cell)
        lines = path.read_text().splitlines(keepends=True)
        (at,) = [i for i, line in enumerate(lines) if '"type":"turn"' in line and '"prompt":"b"' in line]
        lines[at] = "no JSON\n"
        path.write_text("".join(lines))
        second = resumed(path)
        assert prompts(second) == ["a", "c"]
        run(second, "d")
        assert prompts(resumed(path)) == ["a", "c", "d"]
        assert read_conversations(path)[1] == [f"Lines that cannot be read are left out: {at + 1} of nb.jsonl."]
