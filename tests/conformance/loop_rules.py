"""Where the loop differs from the reference on purpose: per rule a predicate on the scenario alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pi_notebook.agent.execute_phase import CANCEL_AFTER


def behaviours(scenario: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for tool in scenario.get("tools", []):
        behaviour = tool["behavior"]
        yield from behaviour.get("by_call_id", {}).values()
        yield behaviour.get("default", {})
        yield from behaviour.get("sequence", [])
        yield behaviour


def calls_of(scenario: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The tool calls of each scripted reply."""
    for turn in scenario["turns"]:
        yield [block for block in turn["content"] if block["type"] == "toolCall"]


def a_listener_raises(scenario: dict[str, Any]) -> bool:
    return any("throw" in listener for listener in scenario.get("listeners", []))


def a_tool_returns_no_result_object(scenario: dict[str, Any]) -> bool:
    return any("result_raw" in do and not is_result(do["result_raw"]) for do in behaviours(scenario))


def is_result(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("content") is None or isinstance(value["content"], list))


def reset_in_a_run(scenario: dict[str, Any]) -> bool:
    in_triggers = any(step["do"] == "reset" for t in scenario.get("triggers", []) for step in t["do"])
    steps = scenario.get("steps", [])
    in_background = any("background" in step for step in steps) and any(step["do"] == "reset" for step in steps)
    return in_triggers or in_background


def ids_repeat_in_a_batch(scenario: dict[str, Any]) -> bool:
    return any(len(calls) != len({call["id"] for call in calls}) for calls in calls_of(scenario))


def a_tool_outlives_an_abort(scenario: dict[str, Any]) -> bool:
    """A tool that may run on for longer than our tools are given after an abort."""
    config = scenario.get("config", {})
    hooks = [entry["action"] for key in ("beforeToolCall", "afterToolCall") for entry in config.get(key, [])]
    steps = [*scenario.get("steps", []), *(s for t in scenario.get("triggers", []) for s in t["do"])]
    aborts = (
        "abort" in config
        or any(action.get("abort") for action in hooks)
        or any(do.get("abort_self") for do in behaviours(scenario))
        or any(step["do"] == "abort" for step in steps)
    )
    limit = CANCEL_AFTER * 1000
    return aborts and any(
        max(do.get("delay_ms", 0), do.get("abort_delay_ms", 0)) >= limit for do in behaviours(scenario)
    )


def an_argument_is_null(scenario: dict[str, Any]) -> bool:
    return any(
        isinstance(call["arguments"], dict) and None in call["arguments"].values()
        for calls in calls_of(scenario)
        for call in calls
    )


def arguments_are_no_object(scenario: dict[str, Any]) -> bool:
    return any(not isinstance(call["arguments"], dict | str) for calls in calls_of(scenario) for call in calls)


def an_argument_is_json_text(scenario: dict[str, Any]) -> bool:
    arguments = [call["arguments"] for calls in calls_of(scenario) for call in calls]
    values = [value for given in arguments for value in (given.values() if isinstance(given, dict) else [given])]
    return any(isinstance(value, str) and value.strip()[:1] in ("[", "{") for value in values)


RULES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "L1": a_tool_outlives_an_abort,
    "L2": a_listener_raises,
    "L3": a_tool_returns_no_result_object,
    "L4": reset_in_a_run,
    "L5": ids_repeat_in_a_batch,
    "A1": an_argument_is_null,
    "A3": arguments_are_no_object,
    "A5": an_argument_is_json_text,
}
