"""`RunView`: agent events reduced to what one run looks like.

Pure Python: nothing here knows a widget, HTML or a terminal. The work per delta is O(1); nothing is joined, parsed or
copied until somebody draws.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..agent.events import (
    AgentEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from ..agent.output import OutputCleared
from ..agent.tool import ConsoleText, Progress, ToolResult
from ..ai.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, Usage, UserMessage
from ._items import ConsoleTail, Item, Level, Notice, Row, State, Steering, Text, end_state

if TYPE_CHECKING:
    from ..agent.hooks import Decision, Question

Outcome: TypeAlias = Literal["done", "stopped", "interrupted", "failed"]


class RunView:
    """What one run shows, kept current by `apply` and a few calls of the runner.

    Every method may be called from any thread. Whoever reads more than one attribute holds `lock`.

    Args:
        model: Label of the model that answers (`provider:id`).
        prompt: What was asked, as text.
        notice: A word about the model (for `practice`: that it is no language model).
        inserted: One line per variable that was put into the prompt.
        warnings: One line per near miss in the prompt, or anything else to be warned of.
        max_turns: Limit of turns, if there is one.
        labels: Display name of a tool, by its name.
        clock: Seconds since 1970.

    Attributes:
        items: What happened, in order; it only grows.
        queued: Steering messages that the model has not got yet.
        being_said: A person has sent a word whose last letters are on their way; it will be in `queued` in a moment.
        turn: Replies of the model, with the one that is awaited.
        retry: A word about a request that is being repeated, or "".
        version: Goes up with every change.
    """

    def __init__(
        self,
        model: str,
        prompt: str = "",
        *,
        notice: str = "",
        inserted: Sequence[str] = (),
        warnings: Sequence[str] = (),
        max_turns: int | None = None,
        labels: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.model_notice = notice
        self.inserted = list(inserted)
        self.warnings = list(warnings)
        self.max_turns = max_turns
        self.lock = threading.RLock()
        self.items: list[Item] = []
        self.queued: list[str] = []
        self.being_said = False
        self.turn = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.cost: float | None = 0.0
        self.retry = ""
        self.outcome: Outcome | None = None
        self.version = 0
        self.clock = clock
        self.started = clock()
        self.ended: float | None = None
        self._labels = labels or (lambda name: name)
        self._blocks: dict[int, Text | Row] = {}  # of the reply that is arriving, by content index
        self._calls: list[Row] = []  # of the current turn
        self._replied = False

    # What the run is doing

    @property
    def rows(self) -> list[Row]:
        return [item for item in self.items if item.kind == "row"]

    @property
    def open_rows(self) -> list[Row]:
        """Calls of the current turn that have no result yet."""
        return [row for row in self._calls if not row.final]

    @property
    def elapsed(self) -> float:
        return (self.ended or self.clock()) - self.started

    @property
    def status(self) -> str:
        """What is going on, in words for a person."""
        if self.outcome:
            return self.outcome
        waiting = sum(row.state == "waiting for you" for row in self.open_rows)
        running = sum(row.state == "running" for row in self.open_rows)
        if waiting:
            return "waiting for you" if waiting == 1 else f"waiting for you: {waiting} questions"
        if self.retry:
            return "retrying"
        if running:
            return "running a tool" if running == 1 else f"running {running} tools"
        last = self.items[-1] if self.items else None
        if last is not None and last.kind == "text" and last.open:
            return "writing"
        if last is not None and last.kind == "row" and last.writing:
            return "writing a call"
        return "thinking"

    # What the runner and the approver tell

    def ask(self, question: Question) -> None:
        """A person has to decide about a call; its arguments are the final ones.

        A question about a call that was asked before (edited arguments did not fit) takes the earlier one's place.
        """
        with self.lock:
            call = question.tool_call
            row = self._find(call.id, lambda row: row.question is not None and row.question.tool_call is call)
            row = row or self._find(call.id, lambda row: row.question is None and not row.final)
            row = row or self._add_row(call)
            row.question = question
            row.decision = None
            row.arguments = question.arguments
            self._set_state(row, "waiting for you")

    def answered(self, question: Question, decision: Decision) -> None:
        """The question is settled, by whomever `decision.by` names."""
        with self.lock:
            for row in self._calls:
                if row.question is question:
                    row.decision = decision
                    if decision.kind == "edit":
                        row.arguments = decision.arguments
                    if not row.final:
                        self._set_state(row, "blocked" if decision.kind == "block" else "queued")

    def running(self, tool_call_id: str) -> None:
        """The call's own code begins now."""
        with self.lock:
            row = self._find(tool_call_id, lambda row: not row.begun and not row.final)
            if row:
                self._begin(row)

    def notice(self, text: str, level: Level = "info") -> None:
        with self.lock:
            last = self.items[-1] if self.items else None
            if last is not None and last.kind == "notice" and last.text == text:
                return
            self._add(Notice(text, level))

    def steer(self, text: str) -> None:
        """A person said `text`; it is shown as queued until the model gets it."""
        with self.lock:
            self.queued.append(text)
            self.version += 1

    def retrying(self, attempt: int, delay: float, reason: str) -> None:
        """The request failed and is repeated after `delay` seconds; the word goes away with the next event."""
        with self.lock:
            self.retry = f"attempt {attempt + 1} in {delay:.0f} s: {reason}"
            self.version += 1

    def finish(self, outcome: Outcome = "done") -> None:
        """The run is over; what is still open is stopped. Later events change nothing. The first call counts."""
        with self.lock:
            if self.outcome:
                return
            self.ended = self.clock()
            for item in self.items:
                if item.kind == "row":
                    item.writing = False
                    if not item.final:
                        item.ended = self.ended
                        self._set_state(item, "stopped")
                elif item.kind in ("text", "thinking"):
                    self._close(item)
            self.retry = ""
            self.outcome = outcome
            self.version += 1

    # What the agent tells

    def apply(self, event: AgentEvent) -> None:
        """Take in one event of the agent."""
        with self.lock:
            if self.outcome:
                return
            if self.retry and event.type != "turn_start":
                self.retry = ""
            self.version += 1
            match event:
                case MessageUpdate():
                    self._streamed(event.assistant_message_event)
                case ToolExecutionUpdate():
                    self._updated(event)
                case MessageStart():
                    if event.message.role == "assistant":
                        self._blocks = {}
                        self._calls = []
                case MessageEnd():
                    self._message(event.message)
                case ToolExecutionStart():
                    self._started(event)
                case ToolExecutionEnd():
                    self._ended(event)
                case _ if event.type == "turn_start":
                    self.turn += 1

    def replay(self, messages: Iterable[Message]) -> None:
        """Show a stored transcript: the same view that the run had, without its progress."""
        with self.lock:
            for message in messages:
                if message.role == "assistant":
                    self.turn += 1
                    self._blocks = {}
                    self._calls = []
                self._message(message)

    def _streamed(self, event: Any) -> None:
        index = event.content_index
        match event.type:
            case "text_delta" | "thinking_delta":
                text = self._text(index, "text" if event.type == "text_delta" else "thinking")
                text.pieces.append(event.delta)
                text.version += 1
            case "text_start" | "thinking_start":
                self._text(index, "text" if event.type == "text_start" else "thinking")
            case "text_end" | "thinking_end":
                self._close(self._text(index, "text" if event.type == "text_end" else "thinking"))
            case "toolcall_start":
                block = event.reply.blocks[index]
                self._blocks[index] = row = self._add_row(ToolCall(block.call_id, block.name, {}))
                row.writing = True
            case "toolcall_delta":
                block = event.reply.blocks[index]
                row = self._row_at(index, ToolCall(block.call_id, block.name, {}))
                self._name(row, block.call_id, block.name)
                row.write_arguments(event.delta)
                row.version += 1
            case "toolcall_end":
                self._call_is_whole(index, event.tool_call)

    def _message(self, message: Message) -> None:
        match message:
            case AssistantMessage():
                self._replied = True
                if message.stop_reason == "aborted" and not _says_anything(message):
                    self.turn -= 1  # after a stop the loop ends with a reply that nobody was asked for
                for index, content in enumerate(message.content):
                    if content.type == "tool_call":
                        self._call_is_whole(index, content)
                        continue
                    words = content.text if content.type == "text" else content.thinking
                    if not words and index not in self._blocks:
                        continue
                    text = self._text(index, content.type)
                    if not text.pieces:
                        text.pieces.append(words)
                    self._close(text)
                self._count(message.usage)
                self._tell_end_of(message)
            case UserMessage():
                self._user_said(message)
            case ToolResultMessage():
                row = self._find(message.tool_call_id, lambda row: not row.final)
                if row:
                    result = ToolResult(message.content, message.details, message.usage, is_error=message.is_error)
                    result.duration_ms = message.duration_ms
                    self._end(row, result, message.duration_ms)

    def _tell_end_of(self, message: AssistantMessage) -> None:
        if message.stop_reason == "error":
            self.notice(message.error_message or "The model's reply failed.", "error")
        elif message.stop_reason == "length":
            self.notice("The reply was cut off: it reached the limit of tokens.", "warning")

    def _user_said(self, message: UserMessage) -> None:
        content = message.content
        text = content if isinstance(content, str) else "".join(b.text for b in content if b.type == "text")
        if text in self.queued:
            self.queued.remove(text)
        elif not self._replied:
            return  # the prompt itself
        self._add(Steering(text))

    def _started(self, event: ToolExecutionStart) -> None:
        row = self._find(event.tool_call_id, lambda row: row.started is None and not row.final)
        row = row or self._add_row(ToolCall(event.tool_call_id, event.tool_name, event.args))
        row.started = self.clock()
        row.version += 1

    def _updated(self, event: ToolExecutionUpdate) -> None:
        row = self._find(event.tool_call_id, lambda row: row.started is not None and not row.final)
        if row is None:
            return
        if not row.begun:
            self._begin(row)
        details = event.partial_result.details
        if isinstance(details, Progress):
            row.progress = details
        elif isinstance(details, ConsoleText):
            row.console.write(str(details.text))
        elif isinstance(details, OutputCleared):
            row.console, row.partial = ConsoleTail(), None
        else:
            row.partial = event.partial_result
        row.version += 1

    def _ended(self, event: ToolExecutionEnd) -> None:
        row = self._find(event.tool_call_id, lambda row: row.started is not None and not row.final)
        if row:
            if not row.decision or row.decision.kind != "edit":
                row.arguments = event.args if event.args is not None else row.arguments
            self._end(row, event.result, event.duration_ms, event.is_error)

    def _end(self, row: Row, result: ToolResult, duration_ms: int | None, is_error: bool | None = None) -> None:
        from .markup import table_of

        row.result = result
        row.table = table_of(result.value)
        row.duration_ms = duration_ms
        row.ended = self.clock()
        row.partial = None
        failed = result.is_error if is_error is None else is_error
        self._set_state(row, end_state(row, result) if failed else "done")
        if result.usage:
            self._count(result.usage)

    # Small steps

    def _add(self, item: Item) -> None:
        self.items.append(item)
        self.version += 1

    def _add_row(self, call: ToolCall) -> Row:
        row = Row(call.id, call.name, self._labels(call.name), arguments=call.arguments)
        row.model_arguments = call.arguments
        self._calls.append(row)
        self._add(row)
        return row

    def _find(self, tool_call_id: str, fits: Callable[[Row], bool]) -> Row | None:
        """The first fitting call of this turn with this id; ids may repeat."""
        return next((row for row in self._calls if row.tool_call_id == tool_call_id and fits(row)), None)

    def _text(self, index: int, kind: Literal["text", "thinking"]) -> Text:
        found = self._blocks.get(index)
        if found is None or found.kind != kind:
            found = self._blocks[index] = Text(kind, self.clock())
            self._add(found)
        return found

    def _row_at(self, index: int, call: ToolCall) -> Row:
        found = self._blocks.get(index)
        if found is None or found.kind != "row":
            found = self._blocks[index] = self._add_row(call)
        return found

    def _call_is_whole(self, index: int, call: ToolCall) -> None:
        row = self._row_at(index, call)
        if row.started is None and row.question is None:
            self._name(row, call.id, call.name)
            row.arguments = row.model_arguments = call.arguments
            row.writing = False
            row.version += 1

    def _name(self, row: Row, call_id: str, name: str) -> None:
        row.tool_call_id = call_id
        if row.name != name:
            row.name = name
            row.label = self._labels(name)

    def _close(self, text: Text) -> None:
        if text.open:
            text.open = False
            text.ended = self.clock()
            text.version += 1

    def _begin(self, row: Row) -> None:
        row.begun = True
        row.started = self.clock()
        self._set_state(row, "running")

    def _set_state(self, row: Row, state: State) -> None:
        row.state = state
        row.version += 1
        self.version += 1

    def _count(self, usage: Usage) -> None:
        self.tokens_in += usage.input + usage.cache_read + usage.cache_write
        self.tokens_out += usage.output
        if usage.cost is not None and self.cost is not None:
            self.cost += usage.cost.total
        elif usage.total_tokens or usage.input or usage.output:
            self.cost = None


def _says_anything(message: AssistantMessage) -> bool:
    return any(block.type != "text" or block.text for block in message.content)
