"""The file of a conversation: where it lies, what is in it, what happens when it cannot be written."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_notebook.agent.result import total_usage
from pi_notebook.ai import keys
from pi_notebook.ai.message_json import message_from_json
from pi_notebook.ai.messages import (
    AssistantMessage,
    Cost,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_notebook.ai.model import Model
from pi_notebook.notebook._markdown import code_block, escape_markdown
from pi_notebook.notebook.conversation import CellTurn, Conversation
from pi_notebook.notebook.kept import read_conversations
from pi_notebook.notebook.past_runs import view_of
from pi_notebook.notebook.records import DETAILS_LIMIT, bounded, encode, message_record, without_keys
from pi_notebook.notebook.store import ConversationLog, Place, StoreError, find_place, read_records
from pi_notebook.notebook.transcript import static_bundle


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".pi_notebook" / "nb.ipynb.jsonl"


def started(path: Path, *messages: Any) -> tuple[Conversation, CellTurn]:
    conversation = Conversation("", ConversationLog(path))
    turn = CellTurn(("cell", 0), "prompt")
    conversation.begin(turn)
    for message in messages:
        conversation.add(turn, message)
    return conversation, turn


def read_back(path: Path) -> list[Any]:
    (kept,), notices = read_conversations(path)
    assert notices == []
    return kept.history().path[0].messages


USAGE = Usage(1, 2, 3, 4, 5, 6, 7, Cost(1, 2, 3, 4, 5))
tampered = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in `value`, as a container and a key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from leaves(item)


class TestPlace:
    """Measured with jupyter_server 2.21 and JupyterLab 4.6: see `find_place`."""

    @pytest.mark.parametrize(
        ("session_name", "folder", "name"),
        [
            ("{root}/sub/nb.ipynb", "sub", "nb.ipynb"),  # a session with a name, as JupyterLab makes it
            ("sub/nb.ipynb", "start", "nb.ipynb"),  # without one: relative to the server's root, started beside it
            ("{root}/sub/", "start", "untitled"),  # an empty name
            ("/elsewhere/nb.ipynb", "start", "nb.ipynb"),  # a folder of another machine
            ("{root}/Console 1", "", "Console 1"),
            ("RTC:nb.ipynb", "start", "nb.ipynb"),
            ("sub/34361149-e3d8-4dbc-9302-0e86431b3e8c", "start", "untitled"),  # older JupyterLab, before it is named
            ("sub/nb-jvsc-34361149-e3d8-4dbc-9302-0e86431b3e8c.ipynb", "start", "nb.ipynb"),  # VS Code's, on a server
            ("C:\\work\\nb.ipynb", "start", "nb.ipynb"),
            ("", "start", "untitled"),
            (None, "start", "untitled"),
        ],
    )
    def test_a_server_tells_it_by_an_environment_variable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_name: str | None, folder: str, name: str
    ) -> None:
        for each in ("sub", "start"):
            (tmp_path / each).mkdir()
        monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
        if session_name is not None:
            monkeypatch.setenv("JPY_SESSION_NAME", session_name.format(root=tmp_path))
        shell = SimpleNamespace(user_ns={}, starting_dir=str(tmp_path / "start"))
        assert find_place(shell) == Place(tmp_path / folder, name)

    def test_vs_codes_variable_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JPY_SESSION_NAME", "/elsewhere/other.ipynb")
        shell = SimpleNamespace(user_ns={"__vsc_ipynb_file__": str(tmp_path / "nb.ipynb")}, starting_dir="/")
        assert find_place(shell) == Place(tmp_path, "nb.ipynb")
        shell.user_ns["__vsc_ipynb_file__"] = "c:\\Users\\me\\nb.ipynb"
        assert find_place(shell) == Place(Path("/"), "nb.ipynb")

    @pytest.mark.parametrize(
        ("session", "file"),
        [
            ("", "nb.ipynb.jsonl"),
            ("deep dive", "nb.ipynb@deep dive.jsonl"),
            ("../../etc/x", "nb.ipynb@..%2F..%2Fetc%2Fx.jsonl"),
            ("a@b", "nb.ipynb@a%40b.jsonl"),
            ("Größe 数据", "nb.ipynb@Größe 数据.jsonl"),
            ("\x1b[31m\u202e", "nb.ipynb@%1B[31m%E2%80%AE.jsonl"),
        ],
    )
    def test_each_session_has_a_file_of_its_own_inside_the_folder(self, session: str, file: str) -> None:
        assert Place(Path("/x"), "nb.ipynb").file(session) == Path("/x/.pi_notebook") / file

    @given(st.text(), st.text())
    def test_two_sessions_never_share_a_file_and_any_name_can_be_one(self, one: str, two: str) -> None:
        first, second = (Place(Path("/x"), "nb.ipynb").file(name) for name in (one, two))
        assert first.parent == Path("/x/.pi_notebook") and len(os.fsencode(first.name)) < 255
        assert (first == second) == (one == two)


class TestFile:
    def test_it_is_private_ignored_by_git_and_of_a_known_schema(self, path: Path) -> None:
        started(path, UserMessage("hello"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (path.parent / ".gitignore").read_text() == "*\n"
        first, *rest = map(json.loads, path.read_text().splitlines())
        assert (first["type"], first["version"], first["session"]) == ("conversation", 1, "")
        assert [each["type"] for each in rest] == ["turn", "head", "message"]

    def test_a_file_that_others_could_read_is_made_private(self, path: Path) -> None:
        started(path)
        path.chmod(0o644)
        started(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_nothing_is_written_before_something_is_said(self, path: Path) -> None:
        Conversation("", ConversationLog(path)).take_notices()
        assert not path.parent.exists()

    def test_every_message_is_in_the_file_as_soon_as_it_is_whole(self, path: Path) -> None:
        conversation, turn = started(path)
        for number in range(5):
            conversation.add(turn, UserMessage(str(number)))
            assert read_back(path)[-1].content == str(number)

    def test_a_message_costs_the_same_whatever_came_before(self, path: Path) -> None:
        """One line each: the file grows by the message alone."""
        conversation, turn = started(path)
        sizes = []
        for _ in range(50):
            before = path.stat().st_size
            conversation.add(turn, UserMessage("x" * 1000, timestamp=1))
            sizes.append(path.stat().st_size - before)
        assert set(sizes) == {sizes[0]} and sizes[0] < 1200

    def test_a_new_kernel_appends_and_loses_nothing_of_the_old(self, path: Path) -> None:
        started(path, UserMessage("one"))
        before = path.read_bytes()
        started(path, UserMessage("two"))
        assert path.read_bytes().startswith(before)
        kept, _ = read_conversations(path)
        assert [each.history().path[0].messages[0].content for each in kept] == ["two", "one"]

    def test_what_a_crash_has_torn_does_not_tear_the_next_line(self, path: Path) -> None:
        started(path, UserMessage("one"))
        path.write_bytes(path.read_bytes()[:-7])
        started(path, UserMessage("two"))
        kept, notices = read_conversations(path)
        assert [len(each.history().path[0].messages) for each in kept] == [1, 0]
        assert notices == ["Lines that cannot be read are left out: 4 of nb.ipynb.jsonl."]

    @pytest.mark.parametrize(
        "rubbish", [b"\0" * 4096, b"\xff\xfe\n", b"[" * 100_000, b"5\n", b"null\n", b'{"type": 1}\n']
    )
    def test_rubbish_in_the_file_is_left_out(self, path: Path, rubbish: bytes) -> None:
        started(path, UserMessage("one"))
        with path.open("ab") as file:
            file.write(rubbish)
        (kept,), notices = read_conversations(path)
        assert kept.history().path[0].messages[0].content == "one"
        assert len(notices) == 1

    @pytest.mark.parametrize(
        "record",
        [
            {"type": "message", "turn": 99, "message": {"role": "user", "content": "x"}},
            {"type": "message", "turn": 1, "message": {"role": "nobody"}},
            {"type": "message", "turn": 1, "message": [1]},
            {"type": "message"},
            {"type": "message", "turn": {}, "message": {}},
            {"type": "turn", "turn": "x", "prompt": "x"},
            {"type": "turn", "turn": 2},
            {"type": "head", "turn": 99},
            {"type": "head"},
            {"type": "end", "turn": []},
            {"type": "call", "turn": 99, "id": "1", "state": "began"},
            {"type": "call", "turn": 1},
            {"type": "call", "turn": 1, "id": "1", "state": "ended", "message": {"role": "user", "content": "x"}},
            {"type": "call", "turn": 1, "id": "1", "state": "ended", "message": [], "shown": 1},
            {"type": "something of a later version", "turn": 1},
        ],
    )
    def test_lines_that_make_no_sense_are_left_out(self, path: Path, record: dict[str, Any]) -> None:
        conversation, _ = started(path, UserMessage("one"))
        with path.open("a") as file:
            file.write(json.dumps(record | {"conversation": conversation.id}) + "\n")
        assert [message.content for message in read_back(path)] == ["one"]

    @settings(max_examples=200)
    @given(data=st.data())
    def test_a_file_that_was_tampered_with_never_raises(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
    ) -> None:
        path = tmp_path_factory.mktemp("tampered") / ".pi_notebook" / "nb.jsonl"
        image = [TextContent("a", "s"), ImageContent("aGk=", "image/png")]
        call = AssistantMessage([ThinkingContent("hm"), ToolCall("1", "f", {"a": 1})], "a", "p", "m", USAGE, "tool_use")
        answer = ToolResultMessage("1", "f", image, {"diff": "+x"}, USAGE, ["g"], False, 12)
        conversation, turn = started(path, UserMessage(image), call, answer, UserMessage("x"))
        decision = {"kind": "edit", "reason": "", "arguments": {"a": 2}, "by": "you", "at": 1.5}
        notes = {"id": "1", "state": "done", "label": "F", "decision": decision, "asked": {"a": 1}}
        conversation.end(turn, "done", [notes])
        run_again = CellTurn(("cell", 0), "again")
        conversation.begin(run_again)
        conversation.undo()
        cut_off = CellTurn(("other", 0), "cut off")
        conversation.begin(cut_off)
        conversation.add(cut_off, AssistantMessage([ToolCall(id, "f", {}) for id in "123"], stop_reason="tool_use"))
        conversation.call_began(cut_off, "1")
        conversation.call_began(cut_off, "2")
        conversation.call_ended(cut_off, answer, notes)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        places = list(leaves(lines))
        for _ in range(data.draw(st.integers(1, 3))):
            container, key = data.draw(st.sampled_from(places))
            container[key] = data.draw(tampered)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            kept, _ = read_conversations(path)
        except StoreError:  # of a newer schema, as far as one can see
            return
        for each in kept:
            for turn in each.history().path:
                assert turn.label
                for text in static_bundle(view_of(turn)).values():
                    assert isinstance(text, str)
            assert each.time >= 0
            resumed = Conversation()
            resumed.resume(each.history())
            resumed.begin(CellTurn(("cell", 0), "more"))
            total_usage(m.usage for m in resumed.messages if m.role != "user" and m.usage)

    @pytest.mark.parametrize("version", [2, 99, "next"])
    def test_a_newer_schema_is_left_alone_with_a_clear_message(self, path: Path, version: Any) -> None:
        started(path, UserMessage("one"))
        first, rest = path.read_text().split("\n", 1)
        path.write_text(json.dumps(json.loads(first) | {"version": version}) + "\n" + rest)
        before = path.read_bytes()
        text = (
            f"{path} was written by a newer pi_notebook (its schema is {version!r}, this one knows 1). "
            "It is left as it is; update pi_notebook to use it."
        )
        with pytest.raises(StoreError) as raised:
            read_records(path)
        assert str(raised.value) == text
        conversation, _ = started(path, UserMessage("two"))
        assert conversation.take_notices() == [
            f"This conversation is not kept on disk: {text[:-1]}. It goes on in memory, until this kernel ends."
        ]
        assert path.read_bytes() == before
        assert [message.content for message in conversation.messages] == ["two"]

    def test_many_writers_share_a_file_without_tearing_a_line(self, path: Path) -> None:
        code = """
import sys
from pathlib import Path
from pi_notebook.ai.messages import UserMessage
from pi_notebook.notebook._markdown import code_block, escape_markdown
from pi_notebook.notebook.conversation import CellTurn, Conversation
from pi_notebook.notebook.store import ConversationLog
conversation = Conversation("", ConversationLog(Path(sys.argv[1])))
turn = CellTurn(None, sys.argv[2])
conversation.begin(turn)
print(flush=True)
sys.stdin.readline()
for number in range(200):
    conversation.add(turn, UserMessage(str(number) + "x" * (number * 97 % 20_000)))
conversation.end(turn, "done")
"""
        command = [sys.executable, "-c", code, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        writers = [subprocess.Popen([*command, name], **pipes) for name in "abc"]
        for writer in writers:
            writer.stdout.readline()
        for writer in writers:
            writer.communicate("go\n", timeout=60)
            assert writer.returncode == 0
        kept, notices = read_conversations(path)
        assert notices == []
        assert sorted(each.history().path[0].prompt for each in kept) == ["a", "b", "c"]
        for each in kept:
            (turn,) = each.history().path
            assert [int(m.content.rstrip("x")) for m in turn.messages] == list(range(200))
            assert turn.outcome == "done"


class TestTrouble:
    """One notice, and on, in memory."""

    def check(self, conversation: Conversation, turn: CellTurn, *words: str) -> None:
        (notice,) = conversation.take_notices()
        assert notice.startswith("This conversation is not kept on disk: ")
        assert notice.endswith(" It goes on in memory, until this kernel ends.")
        for word in words:
            assert word in notice
        conversation.add(turn, UserMessage("later"))
        conversation.begin(CellTurn(None, "next"))
        assert conversation.take_notices() == []
        assert [turn.prompt for turn in conversation.turns] == ["prompt", "next"]
        assert conversation.messages[-1].content == "later"

    @pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")])
    def test_a_read_only_folder(self, path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
        def refuse(self: Path, *_: Any, **__: Any) -> None:
            raise OSError(error.errno, error.strerror, str(self))

        monkeypatch.setattr(Path, "mkdir", refuse)
        conversation, turn = started(path, UserMessage("x"))
        self.check(conversation, turn, error.strerror, str(path.parent))

    def test_a_folder_that_is_gone(self, tmp_path: Path) -> None:
        conversation, turn = started(tmp_path / "gone" / ".pi_notebook" / "nb.jsonl")
        self.check(conversation, turn, "No such file or directory")

    @pytest.mark.parametrize("make", ["link", "pipe", "folder"])
    def test_what_is_no_plain_file_is_not_written_to(self, path: Path, make: str) -> None:
        path.parent.mkdir()
        target = path.parent.parent / "target"
        target.write_text("mine")
        if make == "link":
            path.symlink_to(target)
        elif make == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        conversation, turn = started(path, UserMessage("x"))
        self.check(conversation, turn)
        assert target.read_text() == "mine"

    def test_a_disk_that_is_full_in_the_middle_of_a_line(self, path: Path) -> None:
        code = """
import json, resource, signal, sys
from pathlib import Path
from pi_notebook.ai.messages import UserMessage
from pi_notebook.notebook._markdown import code_block, escape_markdown
from pi_notebook.notebook.conversation import CellTurn, Conversation
from pi_notebook.notebook.store import ConversationLog
conversation = Conversation("", ConversationLog(Path(sys.argv[1])))
turn = CellTurn(None, "prompt")
conversation.begin(turn)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
for number in range(100):
    conversation.add(turn, UserMessage("x" * 300))
print(json.dumps([conversation.take_notices(), len(conversation.messages)]))
"""
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
        notices, messages = json.loads(done.stdout)
        assert messages == 100
        assert notices == [
            f"This conversation is not kept on disk: File too large ({path}). "
            "It goes on in memory, until this kernel ends."
        ]
        assert path.stat().st_size == 4000
        (kept,), told = read_conversations(path)
        assert 5 < len(kept.history().path[0].messages) < 12
        assert len(told) == 1 and "torn" in told[0]

    def test_when_the_trouble_is_over_everything_is_written(self, path: Path) -> None:
        path.parent.parent.joinpath(".pi_notebook").write_text("in the way")
        conversation, turn = started(path, UserMessage("one"))
        assert len(conversation.take_notices()) == 1
        conversation.end(turn, "done")
        path.parent.unlink()
        conversation.begin(CellTurn(None, "two"))
        (kept,), _ = read_conversations(path)
        assert [turn.prompt for turn in kept.history().path] == ["prompt", "two"]
        assert kept.history().path[0].messages[0].content == "one"


class TestContent:
    """What goes in comes out the same, as far as a request can tell."""

    @pytest.mark.parametrize(
        "message",
        [
            UserMessage("text \u2028 \ud800 \x00 \U0001f600"),
            UserMessage([TextContent("a", "sig"), ImageContent("aGk=", "image/png")]),
            AssistantMessage(
                [
                    ThinkingContent("hm", "sig-1"),
                    ThinkingContent("", "opaque", True),
                    TextContent("a"),
                    ToolCall("1", "f", {"a": [1, None, {"b": 1.5}]}, "thought-1"),
                    ToolCall("2", "f", {}, "thought-2"),
                    ToolCall("3", "f", "no JSON {"),
                    ToolCall("4", "f", [1]),
                ],
                "google-generative-ai",
                "google",
                "gemini",
                Usage(1, 2, 3, 4, 5, 6, 7, Cost(1, 2, 3, 4, 5)),
                "tool_use",
                raw_stop_reason="STOP",
                response_id="r",
                response_model="gemini-x",
            ),
            AssistantMessage([], "a", "p", "m", stop_reason="error", error_message="no"),
        ],
    )
    def test_every_part_of_a_message_survives(self, path: Path, message: Any) -> None:
        """Signatures too: https://github.com/tidyverse/ellmer/issues/946."""
        started(path, message)
        assert read_back(path)[0] == message
        assert read_back(path)[0].timestamp == message.timestamp

    def test_images_in_results_are_kept_whole(self, path: Path) -> None:
        image = ImageContent("QUJD" * 500_000, "image/png")
        call = AssistantMessage([ToolCall("1", "f", {})], stop_reason="tool_use")
        answer = ToolResultMessage("1", "f", [TextContent("plot"), image], {"n": 1}, Usage(1), ["g"], True, 12)
        started(path, call, answer)
        assert read_back(path) == [call, answer]

    def test_arguments_that_are_no_json_are_written_as_what_comes_closest(self, path: Path) -> None:
        message = AssistantMessage([ToolCall("1", "f", {"n": float("nan"), "s": {3}})], stop_reason="tool_use")
        started(path, message)
        assert read_back(path)[0].tool_calls[0].arguments == {"n": None, "s": [3]}

    @pytest.mark.parametrize("way", ["environment", "by hand", "of another name"])
    def test_no_key_reaches_the_file(self, path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
        key = "sk-test-0123456789+/abcdef=="
        if way == "environment":
            monkeypatch.setenv("OPENAI_API_KEY", key)
        elif way == "by hand":
            keys.set_key("openai", key)
            keys.set_key("openai", None)
        else:
            monkeypatch.setenv("MY_KEY", key)
            keys.from_environment("MY_KEY")
        try:
            call = AssistantMessage([ToolCall("1", "f", {"key": key, key: 1})], stop_reason="tool_use")
            details = {"env": {"OPENAI_API_KEY": key}, "object": SimpleNamespace(key=key)}
            answer = ToolResultMessage("1", "f", [TextContent(f"the key is {key}.")], details)
            conversation, _ = started(path, UserMessage(f"use {key}"), call, answer)
            conversation.begin(CellTurn(None, key, line=f"--system {key}"))
            text = path.read_text()
            assert "0123456789" not in text
            assert read_back(path)[2].text == "the key is ***."
        finally:
            keys._seen.discard(key)

    @pytest.mark.parametrize("known", [["sk-12345", "sk-1234567"], ["sk-1234567", "sk-12345"]])
    def test_a_key_that_begins_with_another_is_hidden_whole(self, known: list[str]) -> None:
        assert encode({"a": "sk-1234567 sk-12345"}, known) == b'{"a":"*** ***"}\n'

    @given(
        st.text("ab1Z-_.~+/=:|&<>'\"\\\\$%", min_size=8, max_size=20),
        st.sampled_from(
            [str, json.dumps, html.escape, escape_markdown, code_block, lambda text: html.escape(repr(text))]
        ),
        st.sampled_from([str, json.dumps]),
    )
    def test_a_key_is_hidden_in_whatever_form_it_stands(
        self, key: str, inner: Callable[[str], str], outer: Callable[[str], str]
    ) -> None:
        assert "before *** after" in without_keys(outer(inner(f"before {key} after")), [key])

    @given(st.text(min_size=8), st.text())
    def test_a_line_without_its_keys_is_still_json(self, key: str, text: str) -> None:
        line = encode({"a": f"{text}{key}{text}", key: [key]}, [key])
        assert line.endswith(b"\n") and isinstance(json.loads(line), dict)

    @pytest.mark.parametrize("placeholder", ["none", "user", "EMPTY", "ollama"])
    def test_a_placeholder_for_a_key_does_not_spoil_the_text(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, placeholder: str
    ) -> None:
        monkeypatch.setenv("VLLM_API_KEY", placeholder)
        started(path, UserMessage("the user has none, EMPTY, ollama"))
        assert read_back(path)[0].content == "the user has none, EMPTY, ollama"
        keys._seen.discard(placeholder)

    @pytest.mark.parametrize("size", [2_000_000])
    def test_a_large_result_is_written_in_one_go(self, path: Path, size: int) -> None:
        call = AssistantMessage([ToolCall("1", "f", {})], stop_reason="tool_use")
        conversation, turn = started(path, call)
        at = time.monotonic()
        conversation.add(turn, ToolResultMessage("1", "f", [TextContent("é" * size)]))
        assert time.monotonic() - at < 5
        assert len(read_back(path)[1].text) == size


@dataclasses.dataclass(slots=True)
class Diff:
    diff: str
    old: Any = None


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class TestDetails:
    """`details` may hold anything: what is kept is JSON, and bounded."""

    @pytest.mark.parametrize(
        ("details", "kept"),
        [
            ({"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
            (Diff("+x", Diff("-y")), {"diff": "+x", "old": {"diff": "-y", "old": None}}),
            ((1, 2), [1, 2]),
            ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
            (float("nan"), "nan"),
            (10**30, str(10**30)),
            (Path("x"), "PosixPath('x')"),
            ({3}, "{3}"),
        ],
    )
    def test_what_is_kept(self, details: Any, kept: Any) -> None:
        assert bounded(details) == kept

    def test_fields_that_a_repr_leaves_out_are_not_kept(self) -> None:
        model = Model("m", "scripted", headers={"authorization": "Bearer sk-live-ABCDEF99"})
        assert bounded([model])[0]["id"] == "m"
        assert "ABCDEF99" not in json.dumps(bounded([model]))

    def test_an_object_whose_repr_fails(self) -> None:
        assert bounded([Broken()])[0].startswith("<Broken instance at")

    def test_an_object_that_cannot_be_read(self) -> None:
        class Evil(dict):  # type: ignore[type-arg]
            def items(self) -> Any:
                raise RuntimeError("no")

        assert bounded(Evil(a=1)) == "<Evil: reading it failed with RuntimeError>"

    def test_large_and_endless_details_are_cut(self) -> None:
        circle: list[Any] = []
        circle.append(circle)
        many = {str(n): "x" * 1000 for n in range(10_000)}
        for details in (circle, many, "x" * 10_000_000, list(range(1_000_000)), {"a": ["y" * 200_000, "z"]}):
            assert len(json.dumps(bounded(details))) < 1.5 * DETAILS_LIMIT
        assert bounded("x" * (DETAILS_LIMIT + 100)).endswith("… (108 characters more)")
        assert list(bounded(many))[-1] == "…"

    anything = st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.builds(object)),
        lambda inner: st.one_of(
            st.lists(inner), st.dictionaries(st.one_of(st.text(), st.integers(), st.tuples(st.text())), inner)
        ),
        max_leaves=20,
    )

    @given(anything)
    def test_any_details_and_any_arguments_can_be_written_and_read(self, value: Any) -> None:
        answer = ToolResultMessage("1", "f", [TextContent("x")], value)
        call = AssistantMessage([ToolCall("1", "f", {"value": value})])
        for message in (answer, call):
            line = encode({"message": message_record(message)})
            assert line.count(b"\n") == 1
            assert message_from_json(json.loads(line)["message"]).role == message.role
