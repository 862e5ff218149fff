"""Part `loop`: scenarios of turns, tool calls, hooks, queues and aborts against recorded traces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .case import PUBLIC_DATA, Case, Outcome, difference
from .loop_driver import run_scenario
from .loop_rules import RULES

PATTERNS = [
    re.compile(pattern, re.DOTALL)
    for pattern in json.loads((PUBLIC_DATA / "reference_texts.json").read_text("utf-8"))["patterns"]
]
OWN_TEXT = "<text>"
VALIDATION = "Validation failed for tool"


def cases(data: Path) -> Iterable[Case]:
    for file in sorted((data / "scenarios").glob("*.json")):
        golden = data / "golden" / file.name
        if golden.is_file():
            yield Case(file.stem, (json.loads(file.read_text("utf-8")), json.loads(golden.read_text("utf-8"))))


def run(case: Case) -> Outcome:
    scenario, golden = case.data
    if "js_only" in scenario:
        return Outcome.by_rule("js_only")
    ours = run_scenario(scenario)
    problem = compare(golden["golden_0_84"], ours, scenario, golden)
    if problem is None:
        return Outcome.passed()
    if "golden_1_6" in golden:
        newer = compare(golden["golden_1_6"], ours, scenario, golden)
        if newer is None:
            return Outcome.passed()
        problem = f"{problem}; 1.6: {newer}"
    for name, touches in RULES.items():
        if touches(scenario):
            return Outcome.by_rule(name)
    return Outcome.failed(problem)


def compare(golden: dict[str, Any], ours: dict[str, Any], scenario: dict[str, Any], record: Any) -> str | None:
    """The first difference between a recorded trace and ours."""
    expected, actual = normalise(golden, ours, bool(record.get("loose_error_text")))
    for trace in (expected, actual):
        if scenario["calls_order"] == "per_call" and "calls" in trace:
            trace["calls"] = group_calls(trace["calls"])
    return difference(expected, actual)


def group_calls(calls: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for call in calls:
        groups.setdefault(str(call.get("toolCallId")), []).append(call)
    return groups


def normalise(expected: Any, actual: Any, loose: bool) -> tuple[Any, Any]:
    """Copies in which a text of the reference's own and our text at the same place are made equal."""
    expected, actual = tidy(expected), tidy(actual)
    _align(expected, actual, loose, "")
    return expected, actual


def tidy(value: Any, key: str = "") -> Any:
    """A copy without what only JavaScript's values can tell apart: absent from empty, null content from none."""
    if isinstance(value, list):
        return [tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    drop = {"isError"} if key in ("result", "partialResult") else set()
    out = {name: tidy(item, name) for name, item in value.items() if name not in drop}
    if key == "usage":
        return {name: item for name, item in out.items() if item}
    if out.get("addedToolNames") == []:
        del out["addedToolNames"]
    if "content" in out and out["content"] is None:
        out["content"] = []
    return out


def _align(expected: Any, actual: Any, loose: bool, key: str) -> None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        failed = expected.get("isError") is True and actual.get("isError") is True
        for name in expected.keys() & actual.keys():
            if is_own_text(expected[name], actual[name], name, loose and failed):
                expected[name] = actual[name] = OWN_TEXT
            else:
                _align(expected[name], actual[name], loose, name)
    elif isinstance(expected, list) and isinstance(actual, list):
        for one, other in zip(expected, actual, strict=False):
            _align(one, other, loose, key)


def is_own_text(expected: Any, actual: Any, key: str, loose: bool) -> bool:
    """Whether `expected` was composed by the reference and `actual` says the same in our words."""
    if not isinstance(expected, str) or not isinstance(actual, str) or not actual:
        return False
    if key in ("errorMessage", "raised", "error"):
        return True
    if key != "text":
        return False
    if expected.startswith(VALIDATION):
        return actual.startswith(VALIDATION) and error_paths(expected) <= error_paths(actual)
    return any(pattern.fullmatch(expected) for pattern in PATTERNS) or loose


def error_paths(text: str) -> set[str]:
    """The paths of a validation text: between `  - ` and the first `: `."""
    return {line[4:].split(": ")[0] for line in text.splitlines() if line.startswith("  - ")}
