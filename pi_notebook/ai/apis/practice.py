"""The built-in `practice` model: no language model; it matches words of the prompt to tools and calls them.

It serves to try tools, approvals and the card without a key. The same conversation always gets the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ..model import Context, Model, StreamOptions
from ..stream import Reply, StreamEvent
from ._playback import ABORTED, Pace, describe_tool, estimated_usage, play, with_ids
from ._practice_arguments import fill
from ._practice_slots import Filled, Memory
from ._practice_words import Match, Step, ToolWords, steps, tokens

__all__ = ["describe_tool", "notice", "stream"]

WORD_DELAY = 0.008
"""Seconds between streamed pieces, so that a person sees the reply grow; `Model.compat["delay"]` sets another."""

_TOGETHER = re.compile(r"\b(?:in parallel|at the same time|at once|simultaneously)\b", re.IGNORECASE)
_ASKED = re.compile(r"To call `([\w-]+)` I still need ")
_LONG_LINE, _LONG_RESULT, _LONG_ARGUMENT = 160, 12, 60


def notice() -> str:
    """One line for the card: what `practice` is, and how to get a real model."""
    return (
        "practice is no language model: it matches words of your prompt to tools. For a real model set "
        "ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama, or name one with -m provider:model."
    )


async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """Answer the last prompt of `context` or go on with it. See `ai.model.stream`."""
    reply = Reply(model.api, model.provider, model.id)
    with Pace(float(model.compat.get("delay", WORD_DELAY)), options.signal) as pace:
        yield reply.start()
        blocks = with_ids(answer(context, options.tool_choice), context)
        async for event in play(reply, blocks, pace):
            yield event
        reply.usage = estimated_usage(context, blocks)
        if pace.aborted:
            yield reply.error(ABORTED, aborted=True)
        else:
            yield reply.done("tool_use" if any(block.type == "tool_call" for block in blocks) else "stop")


@dataclass(slots=True)
class _Run:
    """The conversation since the last finished reply: prompts, replies with calls, results."""

    before: Sequence[Message]
    messages: Sequence[Message]

    @classmethod
    def last(cls, messages: Sequence[Message]) -> _Run:
        start = len(messages)
        while start and not _finished(messages[start - 1]):
            start -= 1
        return cls(messages[:start], messages[start:])

    @property
    def prompt(self) -> str:
        return "\n".join(_said(message) for message in self.messages if message.role == "user").strip()

    @property
    def replies(self) -> list[AssistantMessage]:
        return [message for message in self.messages if message.role == "assistant" and message.tool_calls]

    @property
    def results(self) -> list[ToolResultMessage]:
        return [message for message in self.messages if message.role == "tool_result"]


def _finished(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls


_PREVIEW = re.compile(r"^(?:[ \t]*\|.*\||\w+: [\d,]+ rows x [\d,]+ columns|Columns: .*)$\n*", re.MULTILINE)


def _said(message: UserMessage) -> str:
    """What the person wrote, without the previews of tables that were inserted into it."""
    text = message.content
    if not isinstance(text, str):
        text = " ".join(block.text for block in text if block.type == "text")
    return re.sub(r"(`[^`\n]+`):\s+(?=[.,;:!?])", r"\1", _PREVIEW.sub("", text))


def answer(context: Context, tool_choice: str | None = None) -> list[AssistantContent]:
    """The whole reply: calls with a line on why, or a report on what the calls came to, or a question."""
    run = _Run.last(context.messages)
    tools = [ToolWords.of(tool) for tool in context.tools] if tool_choice != "none" else []
    plan = _plan(context.messages, tools)
    useful = [step for step in plan if step.match is not None]
    done = len(run.replies)
    failed = any(result.is_error for result in run.results[-len(run.replies[-1].tool_calls) :]) if done else False
    if not useful:
        return [TextContent(_report(run, []) if run.results else _helpless(context, run.prompt))]
    position = sum(len(_names(reply)) for reply in run.replies)
    rest = useful[position:]
    if failed or not rest:
        return [TextContent(_report(run, [step for step in plan if step.match is None], rest if failed else []))]
    together = len(rest) if _TOGETHER.search(run.prompt) else 1
    return _calls(rest[:together], run, context.messages)


def _names(reply: AssistantMessage) -> list[str]:
    """The steps of one reply: calls of one tool in a row are one step (`in Paris and Oslo`)."""
    return list(dict.fromkeys(call.name for call in reply.tool_calls))


def _plan(messages: Sequence[Message], tools: Sequence[ToolWords]) -> list[Step]:
    """The steps of the current prompt; an answer to a question of ours goes on with the prompt it was about."""
    run = _Run.last(messages)
    plan = steps(_TOGETHER.sub("", run.prompt), tools)
    question = _ASKED.search(run.before[-1].text) if run.before and run.before[-1].role == "assistant" else None
    if not question or any(step.match and step.match.by_name for step in plan):
        return plan
    earlier = _plan(run.before[:-1], tools)
    for index, step in enumerate(earlier):
        if step.match and step.match.tool.tool.name == question[1]:
            return [Step(f"{step.text}\n{run.prompt}", step.match), *earlier[index + 1 :]]
    return plan


def _calls(todo: Sequence[Step], run: _Run, messages: Sequence[Message]) -> list[AssistantContent]:
    memory = _memory(messages, run)
    lines: list[str] = []
    calls: list[ToolCall] = []
    questions: list[str] = []
    for step in todo:
        match = step.match
        assert match is not None
        filled = fill(match, step.text, memory)
        if filled.missing:
            questions.append(_question(match, filled))
            continue
        lines.append(_why(match, filled))
        name = match.tool.tool.name
        calls.append(ToolCall("", name, filled.arguments))
        for value in filled.alternatives:
            calls.append(ToolCall("", name, {**filled.arguments, filled.listed: value}))
        memory.arguments.insert(0, filled.arguments)
    if not calls:
        report = [_report(run, [])] if run.results else []
        return [TextContent("\n\n".join([*report, *questions]))]
    return [TextContent("\n".join([*lines, *questions])), *calls]


def _memory(messages: Sequence[Message], run: _Run) -> Memory:
    arguments: list[Mapping[str, Any]] = [
        call.arguments
        for message in reversed(messages)
        if message.role == "assistant"
        for call in message.tool_calls
        if isinstance(call.arguments, dict)
    ]
    results = [message for message in messages if message.role == "tool_result" and not message.is_error]
    return Memory(arguments, results[-1].text if results else None)


# -- words -------------------------------------------------------------------------------------------------------


def _why(match: Match, filled: Filled) -> str:
    words = " and ".join(f"“{word}”" for word in dict.fromkeys(match.words[:3]))
    verb = "points" if len(set(match.words[:3])) == 1 else "point"
    text = f"{words} {verb} to `{match.tool.tool.name}`."
    for name in filled.remembered:
        text += f" `{name}` is not named, so I take {_shown(filled.arguments[name])} as before."
    return text


def _question(match: Match, filled: Filled) -> str:
    properties = match.tool.tool.schema.get("properties") or {}
    needs = []
    for name in filled.missing:
        description = str(properties.get(name, {}).get("description", "")).strip().rstrip(".")
        needs.append(f"`{name}`" + (f" ({description})" if description else ""))
    return (
        f"To call `{match.tool.tool.name}` I still need {_and(needs)}. "
        f'Please tell me, with texts in quotes: for example `{filled.missing[0]}: "..."`.'
    )


def _helpless(context: Context, prompt: str) -> str:
    if not context.tools:
        return (
            "I have no tools here, and without one I can do nothing: decorate a function with `@tool` in a cell, "
            "run that cell, then ask again."
        )
    lines = []
    for tool in context.tools:
        first = tool.description.strip().split("\n")[0]
        parameters = ", ".join(dict(tool.schema.get("properties") or {}))
        lines.append(f"- `{tool.name}({parameters})`" + (f": {first}" if first else ""))
    opening = "None of my tools fits that." if tokens(prompt) else "There is nothing to do in this prompt."
    return "\n".join([f"{opening} I can call:", "", *lines, "", "Use words of one of them, and name its values."])


def _report(run: _Run, unserved: Sequence[Step], left: Sequence[Step] = ()) -> str:
    calls = {call.id: call for reply in run.replies for call in reply.tool_calls}
    parts = [_outcome(calls.get(result.tool_call_id), result) for result in run.results]
    if left:
        names = [f"`{step.match.tool.tool.name}`" for step in left if step.match]
        parts.append(f"So I did not go on to {_and(names)}.")
    parts += [f"I have no tool for “{step.text}”." for step in unserved]
    return "\n\n".join(parts)


def _outcome(call: ToolCall | None, result: ToolResultMessage) -> str:
    said = f"`{_spelled(call)}`" if call else f"`{result.tool_name}`"
    text = result.text.strip()
    images = sum(block.type == "image" for block in result.content)
    if result.is_error:
        return f"{said} did not work out: {_block(text or 'no reason was given')}"
    shown = {0: "", 1: "an image"}.get(images, f"{images} images")
    if not text:
        return f"{said} gave {shown}." if shown else f"{said} is done; it gave no text."
    return f"{said} gave {shown + ' and ' if shown else ''}{_block(text)}"


def _block(text: str) -> str:
    """A result inside a sentence if it is short, else as a block of its own: tables as they are, the rest as code."""
    lines = text.split("\n")
    if len(lines) == 1 and len(text) <= _LONG_LINE:
        if re.fullmatch(r"[-+\w.,:% ]{1,40}(?<!\.)", text):
            return f"**{text}**."
        return text + ("" if text[-1] in ".!?" else ".")
    kept = [line[: 4 * _LONG_LINE] for line in lines[:_LONG_RESULT]]
    more = len(lines) - len(kept)
    tail = f"\n\n… and {more} more line{'s' * (more > 1)}, in the row of the call." if more else ""
    if all(line.lstrip().startswith("|") for line in kept if line.strip()):
        return "this:\n\n" + "\n".join(kept) + tail
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    return f"this:\n\n{fence}text\n" + "\n".join(kept) + f"\n{fence}{tail}"


def _spelled(call: ToolCall) -> str:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return f"{call.name}({', '.join(f'{name}={_shown(value)}' for name, value in arguments.items())})".replace("`", "'")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONG_ARGUMENT else f"{text[: _LONG_ARGUMENT - 1]}…"


def _and(items: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
