"""A schema as Gemini takes it in `parametersJsonSchema`."""

from __future__ import annotations

from typing import Any, NoReturn

from ._schema_walk import Schema, children, compact, described, listed, referenced, refuse, with_children

MAX_NODES = 5_000  # of one schema with its references written out; more is a mistake or an attack

# Documented for JSON Schema there, or recorded as taken: `const` without a type is, with one it is rewritten.
_GOOGLE_TAKES = {
    "$schema", "$id", "$anchor", "type", "format", "title", "description", "default", "enum", "const", "anyOf",
    "oneOf", "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum",
    "maximum", "minProperties", "maxProperties", "properties", "propertyOrdering", "required", "nullable",
    "additionalProperties",
}  # fmt: skip
_GOOGLE_KEEPS = _GOOGLE_TAKES - {"$schema", "$id", "$anchor", "const", "oneOf", "additionalProperties"}
_GOOGLE_FORMATS = {"date-time", "date", "time", "enum", "int32", "int64", "float", "double"}
_NO_RULES = {
    "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$dynamicAnchor", "$vocabulary",
    "discriminator", "example", "examples", "deprecated", "readOnly", "writeOnly",
}  # fmt: skip
_MAY_DIFFER = {"title", "description", *_NO_RULES}
_KINDS = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def google_form(tool: str, schema: Schema) -> Schema:
    return _GoogleForm(tool, schema).write(schema, "", ("#",)) if _must_be_rewritten(schema) else schema


def _must_be_rewritten(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return (
        not schema.keys() <= _GOOGLE_TAKES
        or ("const" in schema and "type" in schema)
        or not all(isinstance(value, str) for value in schema.get("enum") or ())
        or any(_must_be_rewritten(child) for *_, child in children(schema))
    )


class _GoogleForm:
    """One schema being rewritten; `root` is where its references point."""

    def __init__(self, tool: str, root: Schema) -> None:
        self.tool = tool
        self.root = root
        self.nodes = 0

    def write(self, schema: Any, path: str, open_references: tuple[str, ...]) -> Any:
        if not isinstance(schema, dict):
            return schema
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.refuse(path, f"with its references written out the schema has more than {MAX_NODES} parts")
        schema, open_references = self.without_reference(schema, path, open_references)
        if "allOf" in schema:
            schema, open_references = self.merged(schema, path, open_references)
        schema = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        if "oneOf" in schema:
            schema["anyOf"] = [*(schema.get("anyOf") or []), *schema.pop("oneOf")]
        written = with_children(schema, lambda child, at: self.write(child, at, open_references), path)
        return _in_googles_words(written)

    def without_reference(
        self, schema: Schema, path: str, open_references: tuple[str, ...]
    ) -> tuple[Schema, tuple[str, ...]]:
        while "$ref" in schema:
            reference = schema["$ref"]
            if reference in open_references:
                self.refuse(path, f"it refers to itself ({reference}), which Gemini cannot express; limit its depth")
            open_references = (*open_references, reference)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = referenced(self.root, reference)
            if target is None:
                self.refuse(path, f"its reference {reference!r} leads to no schema inside this one")
            schema = {**target, **beside}
        return schema, open_references

    def merged(self, schema: Schema, path: str, open_references: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """`allOf` as one schema. Keys beside it, then earlier parts, win where nothing is lost by it."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            if not isinstance(part, dict):
                continue
            part, open_references = self.without_reference(part, path, open_references)
            if "allOf" in part:
                part, open_references = self.merged(part, path, open_references)
            for key, value in part.items():
                if key == "properties":
                    merged[key] = {**value, **merged.get(key, {})}
                elif key == "required":
                    merged[key] = list(dict.fromkeys([*merged.get(key, []), *value]))
                elif merged.setdefault(key, value) != value and key not in _MAY_DIFFER:
                    self.refuse(path, f"the parts of its allOf disagree about {key}")
        return merged, open_references

    def refuse(self, path: str, reason: str) -> NoReturn:
        refuse(self.tool, "Google", path, reason)


def _in_googles_words(schema: Schema) -> Schema:
    """`schema` with what Gemini refuses said in the description instead."""
    kept = {key: value for key, value in schema.items() if key in _GOOGLE_KEEPS and key != "format"}
    rules = {
        key: value
        for key, value in schema.items()
        if key not in _GOOGLE_KEEPS and key not in _NO_RULES and key != "additionalProperties"
    }
    if isinstance(values_of_map := schema.get("additionalProperties"), dict) and values_of_map:
        described(kept, f"Keys are free; each value: {compact(values_of_map)}.")
    if (format_ := schema.get("format")) is not None:
        (kept if format_ in _GOOGLE_FORMATS else rules)["format"] = format_
    values = [rules.pop("const")] if "const" in rules else kept.pop("enum", None)
    if values is not None:
        _put_values(kept, values)
    if rules:
        described(kept, f"Rules (JSON Schema): {compact(rules)}")
    return kept


def _put_values(schema: Schema, values: list[Any]) -> None:
    """An enum where all values are text, or text and null; else the type and a sentence."""
    texts = [value for value in values if value is not None]
    if texts and all(isinstance(value, str) for value in texts):
        text = {"type": "string", "enum": texts}
        if len(texts) == len(values):
            schema.update(text)
        else:
            schema.pop("type", None)
            schema["anyOf"] = [text, {"type": "null"}]
        return
    kinds = list(dict.fromkeys(_KINDS.get(type(value), "object") for value in values))
    schema.setdefault("type", kinds[0] if len(kinds) == 1 else kinds)
    described(schema, f"Must be {listed(values)}." if len(values) == 1 else f"One of: {listed(values)}.")
