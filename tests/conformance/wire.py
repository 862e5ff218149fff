"""What the parts `requests` and `streams` share: recorded JSON to our own values, and the comparison."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pi_notebook.ai.message_json import message_from_json
from pi_notebook.ai.model import Context, CostRates, Model, StreamOptions

from .case import Case, Outcome, difference

KEY = "TEST-KEY"
Rule = tuple[str, Callable[[dict[str, Any]], bool]]


def cases(folder: Path) -> Iterable[Case]:
    for file in sorted(folder.glob("*.json")):
        yield Case(file.stem, json.loads(file.read_text("utf-8")))


def outcome(
    found: str | None, kind: Literal["REQUEST_RULES", "STREAM_RULES", "RETRY_RULES"], data: dict[str, Any]
) -> Outcome:
    """Passed without a difference; else sorted under the first rule whose predicate holds for the input."""
    if found is None:
        return Outcome.passed()
    for module in (f"rules_{data['api'].replace('-', '_')}", "rules_wire"):
        rules: list[Rule] = getattr(importlib.import_module(f"{__package__}.{module}"), kind, [])
        for name, touches in rules:
            if touches(data):
                return Outcome.by_rule(name)
    return Outcome.failed(found)


@dataclass(frozen=True, slots=True)
class RecordedTool:
    name: str
    description: str
    schema: dict[str, Any]
    constrained_sampling: Literal["prefer", "require"] | None


def tool_from(data: dict[str, Any]) -> RecordedTool:
    sampling = data.get("constrainedSampling") or {}
    strict = sampling.get("strict", "prefer") if sampling.get("type") == "json_schema" else None
    return RecordedTool(data["name"], data["description"], data["parameters"], strict)


def context_from(data: dict[str, Any]) -> Context:
    return Context(
        data.get("systemPrompt") or "",
        [message_from_json(message) for message in data["messages"]],
        [tool_from(tool) for tool in data.get("tools") or ()],
    )


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def rates_from(data: dict[str, Any]) -> CostRates:
    return CostRates(data["input"], data["output"], data["cacheRead"], data["cacheWrite"])


def model_from(data: dict[str, Any], call: str, options: dict[str, Any], server: str) -> Model:
    """The recorded model. `stream` sends options as they are: only the unified entry looks at the model's limits.

    Anthropic needs a limit in each request, so there both look.
    """
    unified = call == "streamSimple"
    cost = data["cost"]
    sampling = {**(data.get("samplingParams") or {}), **(options.get("samplingParams") or {})}
    return Model(
        id=data["id"],
        api=data["api"],
        provider=data["provider"],
        base_url=data["baseUrl"].replace("<SERVER>", server),
        name=data["name"],
        reasoning=data["reasoning"],
        thinking_levels=data.get("thinkingLevelMap") or {},
        input=data["input"],
        cost=replace(rates_from(cost), above={t["inputTokensAbove"]: rates_from(t) for t in cost.get("tiers") or ()}),
        context_window=data["contextWindow"] if unified else None,
        max_tokens=data["maxTokens"] if unified or data["api"] == "anthropic-messages" else None,
        headers=data.get("headers") or {},
        sampling_params=sampling if unified else options.get("samplingParams") or {},
        compat={snake(name): value for name, value in (data.get("compat") or {}).items()},
    )


def options_from(data: dict[str, Any]) -> StreamOptions:
    """Recorded options as ours; those that only steer the reference's own machinery have no counterpart."""
    choice = data.get("toolChoice")
    if isinstance(choice, dict):
        choice = (choice.get("function") or choice)["name"]
    return StreamOptions(
        api_key=data.get("apiKey", KEY),
        temperature=data.get("temperature"),
        max_tokens=data.get("maxTokens"),
        thinking=data.get("reasoning") or data.get("reasoningEffort") or "off",
        thinking_budgets=data.get("thinkingBudgets"),
        tool_choice="required" if choice == "any" else choice,
        cache_retention=data.get("cacheRetention", "short"),
        session_id=data.get("sessionId"),
        metadata=data.get("metadata"),
        headers=data.get("headers"),
        max_retries=data.get("maxRetries", 0),
        max_retry_delay=data.get("maxRetryDelayMs", 60_000) / 1000,
    )


def wire_difference(expected: Any, actual: Any, reference_texts: re.Pattern[str]) -> str | None:
    """`difference`, where any text of ours equals one that the reference composed or made up at that place."""
    return difference(expected, _with_free_texts(expected, actual, reference_texts))


def _with_free_texts(expected: Any, actual: Any, free: re.Pattern[str]) -> Any:
    """`actual`, with the expected text wherever the two may differ."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {
            key: _with_free_texts(expected[key], value, free) if key in expected else value
            for key, value in actual.items()
        }
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return [_with_free_texts(*pair, free) for pair in pairs] + actual[len(expected) :]
    if isinstance(expected, str) and isinstance(actual, str) and actual and expected != actual:
        lines, ours = expected.split("\n"), actual.split("\n")
        if "<GENERATED>" in expected or free.fullmatch(expected):
            return expected
        if len(lines) == len(ours) and all(a == b or free.fullmatch(a) for a, b in zip(lines, ours, strict=True)):
            return expected
        return _same_json(expected, actual)
    return actual


def _same_json(expected: str, actual: str) -> str:
    """Arguments travel as JSON in a text: there, too, key order and the form of a number have no meaning."""
    if not (expected.startswith("{") and actual.startswith("{")):
        return actual
    try:
        return expected if difference(json.loads(expected), json.loads(actual)) is None else actual
    except ValueError:
        return actual


def reference_texts(data: Path) -> re.Pattern[str]:
    """Texts that the reference composes itself."""
    patterns = json.loads((data / "reference_texts.json").read_text("utf-8"))["patterns"]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.DOTALL)
