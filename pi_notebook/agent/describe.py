"""A tool for people: its schema as a rich object; and for providers: the JSON that each is sent for it."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any

from ..errors import ToolDefinitionError
from ._tables import markdown_table

if TYPE_CHECKING:
    from .tool import Tool


def wire_description(tool: Tool, api: str) -> Any:
    """What `api` (the name of an API, or of a provider that speaks one) is sent for `tool`.

    Raises:
        ModelError: Unknown name; says which there are.
    """
    from ..ai.model import Model, adapter
    from ..ai.providers import PROVIDERS

    provider = PROVIDERS.get(api)
    if provider is None:
        return adapter(api).describe_tool(None, tool)
    model = Model("", provider.api, provider.name, compat=provider.compat)
    return adapter(provider.api).describe_tool(model, tool)


class ToolDescription:
    """What a model is told of a tool, and how the tool runs. Renders in a notebook; `str` is plain text."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @property
    def schema(self) -> dict[str, Any]:
        """Empty while an annotation waits for a later cell; `problem` then says for what."""
        return {} if self.problem else self.tool.schema

    @property
    def problem(self) -> str:
        """Why the tool cannot be used yet; empty if it can."""
        try:
            self.tool.schema  # noqa: B018 (asking for it resolves it)
        except ToolDefinitionError as error:
            return str(error)
        return ""

    def facts(self) -> list[tuple[str, str]]:
        """How the tool runs, as (what, value): mode, approval, where defined, and so on."""
        tool = self.tool
        if isinstance(tool.approval, bool):
            approval = "asks before each run" if tool.approval else "not needed"
        else:
            approval = f"asked for by {_name(tool.approval)}"
        facts = [("not yet usable", self.problem)] if self.problem else []
        facts.append(("approval", approval))
        facts.append(("mode", tool.execution_mode or "as the agent says"))
        facts.append(("runs on", _PLACES[tool.runs_on]))
        if tool.constrained_sampling:
            facts.append(("strict schema", tool.constrained_sampling))
        if tool.timeout is not None:
            facts.append(("timeout", f"{tool.timeout:g} s"))
        if where := getattr(tool, "where", ""):
            facts.append(("defined", where))
        return facts

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Name, type, default or "required", and description of each parameter."""
        schema = self.schema
        required = schema.get("required", ())
        rows = []
        for name, each in schema.get("properties", {}).items():
            if name in required:
                need = "required"
            else:
                need = json.dumps(each["default"], ensure_ascii=False) if "default" in each else "optional"
            rows.append((name, type_text(each, schema), need, str(each.get("description", ""))))
        return rows

    def __repr__(self) -> str:
        lines = [self.tool.name, self.tool.description, ""]
        lines += [f"  {name}: {kind} ({need}) {text}".rstrip() for name, kind, need, text in self.rows()]
        lines += ["", *(f"  {what}: {value}" for what, value in self.facts())]
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        code = fenced(json.dumps(self.schema, indent=2, ensure_ascii=False), "json")
        table = markdown_table(
            ("parameter", "type", "default", "description"),
            [[plain_markdown(cell) for cell in row] for row in self.rows()],
        )
        facts = [f"- {what}: {plain_markdown(value)}" for what, value in self.facts()]
        parts = [f"**{plain_markdown(self.tool.name)}**", plain_markdown(self.tool.description)]
        parts += ["\n".join(table)] if self.rows() else ["No parameters."]
        return "\n\n".join([*parts, "\n".join(facts), code])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(kind)}</code></td>"
            f"<td><code>{escape(need)}</code></td><td>{escape(text)}</td></tr>"
            for name, kind, need, text in self.rows()
        )
        head = "<tr><th>parameter</th><th>type</th><th>default</th><th>description</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else "<p>No parameters.</p>"
        facts = "".join(f"<li>{escape(what)}: {escape(value)}</li>" for what, value in self.facts())
        schema = escape(json.dumps(self.schema, indent=2, ensure_ascii=False))
        description = escape(self.tool.description).replace("\n", "<br>")
        return (
            f"<div><p><b>{escape(self.tool.name)}</b></p><p>{description}</p>{table}<ul>{facts}</ul>"
            f"<details><summary>JSON Schema</summary><pre>{schema}</pre></details></div>"
        )


_PLACES = {
    "loop": "the agent's event loop, beside other calls",
    "plain": "the notebook's main thread, one at a time (a thread of its own in a script)",
    "worker": "a thread of its own, beside other calls",
    "executor": "its executor",
}


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def type_text(schema: Any, root: dict[str, Any]) -> str:
    """A schema in a few words: `integer`, `array of string`, `"a" | "b"`, `Address`."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return " | ".join(dict.fromkeys(type_text(each, root) for each in schema[keyword]))
    kind = schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), dict) and schema["items"]:
        return f"array of {type_text(schema['items'], root)}"
    form = f" ({schema['format']})" if "format" in schema else ""
    return (" | ".join(kind) if isinstance(kind, list) else str(kind)) + form


def fenced(text: str, language: str = "") -> str:
    """`text` as a Markdown code block that nothing in it can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def plain_markdown(text: str) -> str:
    """`text` as Markdown that shows it literally: nothing in it is markup or HTML."""
    escaped = "".join(f"\\{char}" if char in "\\`*_{}[]()#+-.!~>" else char for char in text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "  ")
