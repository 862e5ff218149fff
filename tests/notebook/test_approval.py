"""Who decides whether a call runs: rules in code, the cell's options, the clock, a person."""

from __future__ import annotations

import asyncio
import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.hooks import Decision, Question
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.ai.messages import ToolCall
from pi_notebook.errors import PiNotebookError
from pi_notebook.notebook.approval import Approver, Questions
from pi_notebook.notebook.rules import Rules


async def nothing(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
    return ToolResult("ran")


def make(name: str = "bash", properties: Any = None, required: Any = None, **more: Any) -> Tool:
    properties = properties if properties is not None else {"command": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return Tool(name, "d", schema, nothing, **more)


BASH = make()
WRITE = make("write", {"path": {"type": "string"}, "content": {"type": "string"}})
LS = make("ls", {"path": {"type": "string", "default": "."}, "depth": {"type": "integer"}}, [])
TAG = make("tag", {"names": {"type": "array"}})


def ask(tool: Tool, *, required: bool = True, error: str = "", **arguments: Any) -> Question:
    return Question(ToolCall("1", tool.name, arguments), tool, arguments, required=required, error=error)


def verdict(rules: Rules, tool: Tool, **arguments: Any) -> str | None:
    judged = rules.judge(ask(tool, **arguments))
    return None if judged is None else judged.kind


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "tool", "arguments", "fits"),
        [
            ("bash", BASH, {"command": "anything; at all"}, True),
            ("b*", BASH, {"command": "x"}, True),
            ("*", WRITE, {"path": "x"}, True),
            ("read", BASH, {"command": "x"}, False),
            ("bash(git status*)", BASH, {"command": "git status -s"}, True),
            ("bash(git status*)", BASH, {"command": "git push"}, False),
            ("bash(git status)", BASH, {"command": "git status -s"}, False),
            ("bash(ls [ab]?)", BASH, {"command": "ls ax"}, True),
            ("bash(ls [!ab])", BASH, {"command": "ls a"}, False),
            ("bash(ls [!ab])", BASH, {"command": "ls c"}, True),
            ("write(path=out/*)", WRITE, {"path": "out/a", "content": "x; y"}, True),
            ("write(out/*)", WRITE, {"path": "out/a", "content": "x"}, True),
            ("write(content=x*)", WRITE, {"path": "out/a", "content": "xyz"}, True),
            ("ls(path=.)", LS, {}, True),
            ("ls(.)", LS, {}, True),
            ("ls(depth=3)", LS, {"depth": 3}, True),
            ("bash(command=FOO=1 make)", BASH, {"command": "FOO=1 make"}, True),
        ],
    )
    def test_name_and_argument(self, pattern: str, tool: Tool, arguments: dict[str, Any], fits: bool) -> None:
        assert verdict(Rules(allow=[pattern]), tool, **arguments) == ("allow" if fits else None)
        assert verdict(Rules(block=[pattern]), tool, **arguments) == ("block" if fits else None)
        assert verdict(Rules(ask=[pattern]), tool, **arguments) == ("ask" if fits else None)

    @pytest.mark.parametrize(
        ("pattern", "said"),
        [
            ("", "Rule '' is no pattern"),
            ("bash(git", "Rule 'bash(git' is no pattern"),
            ("two words", "Rule 'two words' is no pattern"),
            (3, "Rule 3 is no pattern"),
            ("bash()", "Rule 'bash()' has nothing in its parentheses: write 'bash' for every call."),
            ("bash(ls [z-a])", "Rule 'bash(ls [z-a])' is no pattern: "),
        ],
    )
    def test_what_is_no_pattern_is_named(self, pattern: Any, said: str) -> None:
        for kind in ("allow", "ask", "block"):
            with pytest.raises(PiNotebookError) as error:
                Rules(**{kind: [pattern]})
            assert str(error.value).startswith(said)

    @pytest.mark.parametrize("given", ["read", 3, ...])
    def test_a_list_is_asked_for(self, given: Any) -> None:
        with pytest.raises(PiNotebookError, match=r"Rules\(ask=\.\.\.\) takes a list of patterns, not "):
            Rules(ask=given)

    def test_a_reason_is_a_text(self) -> None:
        with pytest.raises(PiNotebookError, match=r"Rule 'bash': the reason to block is a text, not None\."):
            Rules(block={"bash": None})  # type: ignore[dict-item]

    @given(st.text(max_size=30))
    def test_any_text_is_a_pattern_or_a_clear_error(self, text: str) -> None:
        try:
            Rules(allow=[text, f"bash({text})"], block=[f"bash({text})"]).judge(ask(BASH, command=text))
        except PiNotebookError as error:
            assert "Rule " in str(error)


class TestPrecedence:
    def test_block_before_ask_before_allow(self) -> None:
        everything = Rules(allow=["bash"], ask=["bash"], block=["bash"])
        assert verdict(everything, BASH, command="x") == "block"
        assert verdict(Rules(allow=["bash"], ask=["bash"]), BASH, command="x") == "ask"
        assert verdict(Rules(allow=["bash"], ask=["write"]), BASH, command="x") == "allow"

    def test_no_rule_no_verdict(self) -> None:
        assert Rules().judge(ask(BASH, command="x")) is None

    def test_a_block_gives_its_reason(self) -> None:
        judged = Rules(block={"bash(rm *)": "not here"}).judge(ask(BASH, command="rm x"))
        assert judged is not None and (judged.reason, judged.by) == ("not here", "rule 'bash(rm *)'")
        judged = Rules(block=["bash(rm *)"]).judge(ask(BASH, command="rm x"))
        assert judged is not None and judged.reason == "Blocked by the user's rule 'bash(rm *)'."


CONTROLS = ";&|`\n\r<>(){}$\0"
SHELL_TEXT = st.text(st.sampled_from("ab c*?[]!;|$\n./-"), max_size=12)


class TestAllowedCommands:
    @pytest.mark.parametrize("control", CONTROLS)
    def test_a_wildcard_reaches_over_no_control_character(self, control: str) -> None:
        for pattern in ("bash(git status*)", "bash(git?status?*)", "bash(git status[!x]*)", "bash(*)"):
            assert verdict(Rules(allow=[pattern]), BASH, command=f"git status {control} rm -rf .") is None

    def test_a_written_control_character_is_that_one_alone(self) -> None:
        rules = Rules(allow=["bash(git log * | head*)"])
        assert verdict(rules, BASH, command="git log -p | head -3") == "allow"
        assert verdict(rules, BASH, command="git log x | rm y | head") is None
        assert verdict(rules, BASH, command="git log -p | head | sh") is None

    @pytest.mark.parametrize("path", ["out/../x", "out/..", "out/a/../../x", "out/..\\x"])
    def test_a_wildcard_does_not_step_up(self, path: str) -> None:
        assert verdict(Rules(allow=["write(path=out/*)"]), WRITE, path=path) is None
        assert verdict(Rules(block=["write(path=out/*)"]), WRITE, path=path) == "block"

    def test_a_written_step_up_is_one_step(self) -> None:
        rules = Rules(allow=["write(path=../*)"])
        assert verdict(rules, WRITE, path="../x") == "allow"
        assert verdict(rules, WRITE, path="../../x") is None

    def test_dots_that_are_no_step_are_harmless(self) -> None:
        assert verdict(Rules(allow=["bash(git diff *)"]), BASH, command="git diff HEAD~1..main a...b") == "allow"

    @given(
        st.text(st.sampled_from("ab c*?[]!;|$\n./-"), max_size=12),
        st.text(st.sampled_from("ab c;|$\n./-"), max_size=12),
    )
    def test_what_is_allowed_holds_no_more_control_characters_than_the_pattern(self, glob: str, command: str) -> None:
        try:
            rules = Rules(allow=[f"bash({glob})"])
        except PiNotebookError:
            return
        if verdict(rules, BASH, command=command) == "allow":
            assert all(command.count(c) <= glob.count(c) for c in CONTROLS)

    @given(st.text(st.sampled_from("ab*?[]!"), max_size=8), st.text(st.sampled_from("ab"), max_size=8))
    def test_in_one_plain_command_it_is_the_usual_glob(self, glob: str, command: str) -> None:
        try:
            allowed = verdict(Rules(allow=[f"bash({glob})"]), BASH, command=command) == "allow"
        except PiNotebookError:
            return
        assert allowed == fnmatch.fnmatchcase(command, glob)

    def test_no_text_makes_the_search_long(self) -> None:
        rules = Rules(allow=["bash(*a*a*a*a*a*a*a*b)"], block=["bash(*a*a*a*a*a*a*a*c)"])
        assert verdict(rules, BASH, command="a" * 2_000) is None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "  rm x",
        "rm\tx",
        "cd / && rm x",
        "ls; rm x",
        "ls\nrm x",
        "echo $(rm x)",
        "(rm x)",
        "a | rm x",
        "`rm x`",
    ],
)
def test_blocking_and_asking_look_at_each_chained_command(command: str) -> None:
    assert verdict(Rules(block=["bash(rm *)"], allow=["bash"]), BASH, command=command) == "block"
    assert verdict(Rules(ask=["bash(rm *)"], allow=["bash"]), BASH, command=command) == "ask"


class TestUnreadableArguments:
    @pytest.mark.parametrize("kind", ["allow", "ask", "block"])
    def test_a_missing_argument_is_asked_for(self, kind: str) -> None:
        assert verdict(Rules(**{kind: ["bash(git *)"]}), BASH) == "ask"
        assert verdict(Rules(**{kind: ["bash(nope=git *)"]}), BASH, command="git x") == "ask"

    def test_a_list_that_does_not_fit_is_asked_for(self) -> None:
        assert verdict(Rules(block=["tag(names=secret*)"], allow=["tag"]), TAG, names=["secret"]) == "ask"
        assert verdict(Rules(block=["tag(names=*secret*)"], allow=["tag"]), TAG, names=["secret"]) == "block"

    def test_a_rule_without_an_argument_reads_none(self) -> None:
        assert verdict(Rules(allow=["bash"]), BASH) == "allow"
        assert verdict(Rules(block=["bash(x)", "bash"]), BASH) == "block"


class Person:
    """Answers with what was prepared, and remembers what it was asked."""

    def __init__(self, *answers: Decision) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Decision:
        self.asked.append(question)
        return self.answers.pop(0)


def decide(approver: Approver, question: Question) -> Decision:
    return asyncio.run(approver(question))


YES, ALWAYS, NO = Decision("approve"), Decision("always"), Decision("block")


class TestApprover:
    def test_what_asks_for_nothing_runs(self) -> None:
        told: list[Any] = []
        approver = Approver("none", None, told=lambda *a: told.append(a))
        assert decide(approver, ask(BASH, required=False)).kind == "approve"
        assert told == []

    @pytest.mark.parametrize(
        ("mode", "rules", "required", "kind", "by"),
        [
            ("all", None, True, "approve", "--approve all"),
            ("all", Rules(ask=["bash"]), False, "approve", "--approve all"),
            ("all", Rules(block=["bash"]), False, "block", "rule 'bash'"),
            ("all", Rules(block=["bash(rm *)"]), True, "block", "rule 'bash(rm *)'"),
            ("none", None, True, "block", "--approve none"),
            ("none", Rules(ask=["bash"]), False, "block", "--approve none"),
            ("none", Rules(allow=["bash"]), True, "approve", "rule 'bash'"),
            ("ask", None, True, "block", "nobody there"),
            ("ask", Rules(allow=["bash"]), True, "approve", "rule 'bash'"),
        ],
    )
    def test_without_a_person(self, mode: Any, rules: Any, required: bool, kind: str, by: str) -> None:
        told: list[Decision] = []
        approver = Approver(mode, None, rules, told=lambda q, d: told.append(d))
        decision = decide(approver, ask(BASH, required=required, command="rm x"))
        assert (decision.kind, decision.by) == (kind, by)
        assert told == [decision]

    def test_the_person_is_told_which_rule_asks(self) -> None:
        person = Person(YES)
        decide(Approver("ask", person, Rules(ask=["bash(rm *)"])), ask(BASH, required=False, command="rm x"))
        assert person.asked[0].reason == "rule 'bash(rm *)'"

    def test_a_persons_reason_reaches_the_model(self) -> None:
        person = Person(NO, Decision("block", "later"))
        approver = Approver("ask", person)
        assert decide(approver, ask(BASH)).reason == "The user blocked this call."
        assert decide(approver, ask(BASH)).reason == "The user blocked this call. Reason: later"

    def test_nobody_answers_in_time(self) -> None:
        async def never(question: Question) -> Decision:
            await asyncio.Event().wait()
            raise AssertionError

        told: list[Decision] = []
        decision = decide(Approver("ask", never, timeout=0.01, told=lambda q, d: told.append(d)), ask(BASH))
        assert (decision.kind, decision.reason) == ("block", "Blocked: nobody answered within 0.01 s.")
        assert decision.by == "the time limit" and told == [decision]

    def test_an_answer_that_could_not_be_taken_goes_back_to_the_person(self) -> None:
        person = Person(YES)
        assert decide(Approver("all", person), ask(BASH, error="path: missing")).by == "you"


PATTERNS = st.lists(st.sampled_from(["bash", "bash(git *)", "bash(rm *)", "bash(nope=x)", "write", "*"]), max_size=3)


@given(
    mode=st.sampled_from(["ask", "all", "none"]),
    allow=PATTERNS,
    block=PATTERNS,
    asks=PATTERNS,
    required=st.booleans(),
    always=st.booleans(),
    command=st.sampled_from(["git x", "rm x", "git x; rm x", "ls"]),
    somebody=st.booleans(),
)
def test_nothing_runs_that_was_not_let_through(
    mode: Any, allow: Any, block: Any, asks: Any, required: bool, always: bool, command: str, somebody: bool
) -> None:
    rules = Rules(allow=allow, block=block, ask=asks)
    person = Person(YES)
    kept: Any = {(BASH, "")} if always else set()
    approver = Approver(mode, person if somebody else None, rules, kept)
    question = ask(BASH, required=required, command=command)
    decision = decide(approver, question)
    judged = rules.judge(question)
    kind = judged.kind if judged is not None else ("ask" if required else "allow")
    if any(verdict(Rules(block=[pattern]), BASH, command=command) == "block" for pattern in block):
        assert decision.kind == "block" and not person.asked
    elif kind == "allow" or mode == "all" or (always and judged is None):
        assert decision.kind == "approve" and not person.asked
    elif mode == "none" or not somebody:
        assert decision.kind == "block" and not person.asked
    else:
        assert len(person.asked) == 1


class TestAlways:
    def test_it_lasts_from_run_to_run_until_the_tool_is_redefined(self) -> None:
        always: Any = set()
        person = Person(ALWAYS, YES)
        decide(Approver("ask", person, always=always), ask(BASH))
        assert decide(Approver("ask", person, always=always), ask(BASH)).by == "an earlier Always allow"
        assert decide(Approver("none", None, always=always), ask(BASH)).by == "an earlier Always allow"
        assert len(person.asked) == 1
        decide(Approver("ask", person, always=always), ask(make()))
        assert len(person.asked) == 2

    def test_a_block_wins(self) -> None:
        approver = Approver("ask", Person(ALWAYS))
        decide(approver, ask(BASH, command="ls"))
        approver.rules = Rules(block=["bash(rm *)"])
        assert decide(approver, ask(BASH, command="rm x")).kind == "block"

    def test_it_does_not_answer_for_a_rule_that_had_not_asked(self) -> None:
        person = Person(ALWAYS, ALWAYS)
        approver = Approver("ask", person, Rules(ask=["bash(rm *)"]))
        decide(approver, ask(BASH, command="ls"))
        decide(approver, ask(BASH, command="rm x"))
        assert len(person.asked) == 2
        assert decide(approver, ask(BASH, command="rm y")).by == "an earlier Always allow"
        assert decide(approver, ask(BASH, command="ls")).by == "an earlier Always allow"


def test_a_second_answer_to_a_question_is_ignored() -> None:
    async def go() -> None:
        questions = Questions()
        question = ask(BASH)
        future = questions.open(question)
        assert questions.answer(question, YES) is True
        assert questions.answer(question, NO) is False
        assert (await future).kind == "approve"

    asyncio.run(go())


def test_rules_are_an_agents_approve_seam() -> None:
    tool = make("bash", approval=True)
    free = make("ls", approval=False)
    rules = Rules(allow=["bash(ls*)"], block={"bash(rm *)": "not here"}, ask=["ls(x)"])
    calls = [call("bash", command=c) for c in ("ls -l", "rm x", "other")]
    calls += [call("ls", command=c) for c in ("x", "y")]
    agent = Agent(model=scripted(calls, "done"), tools=[tool, free], approve=rules)
    agent.run("go")
    results = [m.text for m in agent.state.messages if m.role == "tool_result"]
    assert results[:2] == ["ran", "not here"] and results[4] == "ran"
    assert results[2].startswith("Blocked: this tool needs a person's approval, and nobody could be asked")
    assert results[3] == results[2]
