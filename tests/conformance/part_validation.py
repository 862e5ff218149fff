"""Part `validation`: coercion and validation of arguments by a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from pi_notebook.agent.arguments import compile_schema
from pi_notebook.errors import ToolArgumentsError, ToolDefinitionError

from .case import Case, Outcome, difference


def cases(data: Path) -> Iterable[Case]:
    for file in sorted((data / "validation").glob("*.json")):
        for case in json.loads(file.read_text("utf-8")):
            yield Case(case["id"], case)


def run(case: Case) -> Outcome:
    schema, arguments = case.data["schema"], case.data["args"]
    before = json.dumps(arguments)
    ours = outcome_of(schema, arguments)
    if json.dumps(arguments) != before:
        return Outcome.failed("the input was changed")
    problems = []
    for golden in (case.data["golden_0_84"], case.data.get("golden_1_6")):
        if golden is not None:
            problem = unlike(golden, ours)
            if problem is None:
                return Outcome.passed()
            problems.append(problem)
    rule = rule_for(schema, arguments)
    return Outcome.by_rule(rule) if rule else Outcome.failed("; or ".join(problems))


def outcome_of(schema: Any, arguments: Any) -> dict[str, Any]:
    """What we do, in the form of a golden; `error_paths` as the text for the model names them."""
    try:
        return {"ok": True, "value": compile_schema(schema).validate("t", arguments)}
    except ToolArgumentsError as error:
        return {"ok": False, "error_paths": named_paths(str(error))}
    except ToolDefinitionError as error:
        return {"ok": False, "raised": str(error)}


def named_paths(text: str) -> list[str]:
    """The paths that a text `Validation failed for tool ...` names, each once."""
    lines = text.split("\n\nReceived arguments:\n")[0].split("\n")
    return list(dict.fromkeys(line[4:].split(": ")[0] for line in lines if line.startswith("  - ")))


def unlike(golden: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """How our outcome differs from a golden: ok or not, the value, and every path of an error must be named."""
    if golden["ok"] != ours["ok"]:
        return f"expected {json.dumps(golden)[:200]}, got {json.dumps(ours)[:200]}"
    if golden["ok"]:
        return difference(golden["value"], ours["value"], "value")
    if "raised" in golden:
        return None
    if "raised" in ours:
        return f"expected errors at {golden['error_paths']}, but the tool was refused: {ours['raised']}"
    missing = set(golden["error_paths"]) - set(ours["error_paths"])
    return f"no error at {sorted(missing)}, only at {ours['error_paths']}" if missing else None


def rule_for(schema: Any, arguments: Any) -> str | None:
    """The rule that can touch a case with this input."""
    if not isinstance(arguments, dict) and not (isinstance(arguments, str) and _decoded(arguments) is not None):
        return "A3"
    if not isinstance(arguments, dict):
        return "A5"
    for part, value in located(schema, schema, arguments):
        if value is None and not _fits(schema, part, None):
            return "A1"
    for part, value in located(schema, schema, arguments):
        wants_container = {"array", "object"} & _types(schema, part)
        if (
            isinstance(value, str)
            and _decoded(value) is not None
            and wants_container
            and not _fits(schema, part, value)
        ):
            return "A5"
    return None


def located(root: Any, schema: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value inside `value` with the schema of its place."""
    for part in _in_place(root, schema):
        if isinstance(value, dict):
            known = part.get("properties", {})
            for key, item in value.items():
                below = known.get(key, part.get("additionalProperties"))
                if isinstance(below, dict):
                    yield below, item
                    yield from located(root, below, item)
        elif isinstance(value, list):
            items = part.get("items")
            prefix = items if isinstance(items, list) else part.get("prefixItems", [])
            for index, item in enumerate(value):
                below = prefix[index] if index < len(prefix) else items
                if isinstance(below, dict):
                    yield below, item
                    yield from located(root, below, item)


def _in_place(root: Any, schema: Any, seen: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """The schema and those that it applies to the very same value."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(keyword, []):
            yield from _in_place(root, branch, seen)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
        target = root
        for part in reference[1:].split("/")[1:]:
            target = target[part]
        yield from _in_place(root, target, (*seen, reference))


def _types(root: Any, schema: Any) -> set[str]:
    types: set[str] = set()
    for part in _in_place(root, schema):
        named = part.get("type", [])
        types |= {named} if isinstance(named, str) else set(named)
    return types


def _fits(root: Any, schema: Any, value: Any) -> bool:
    definitions = {key: root[key] for key in ("$defs", "definitions") if isinstance(root, dict) and key in root}
    return _Lenient({**schema, **definitions}).is_valid(value)


def _known_type(validator: Any, types: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """An unknown type admits anything, as in the reference."""
    names = [types] if isinstance(types, str) else types
    if not any(name not in JSON_TYPES or validator.is_type(value, name) for name in names):
        yield ValidationError("type")


JSON_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_Lenient = extend(Draft202012Validator, {"type": _known_type})


def _decoded(text: str) -> Any:
    """The list or object whose JSON `text` is, else None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list | dict) else None
