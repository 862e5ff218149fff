"""What a parameter is for, by its name and description, for the `practice` model: that decides which words fill it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ._practice_words import split_name, stem

_ROLES = {
    "code": {"code", "command", "script", "cmd", "sql", "source"},
    "condition": {"where", "condition", "filter", "predicate", "expression", "expr"},
    "container": {
        "table", "data", "file", "path", "database", "db", "sheet", "folder", "filename", "variable", "array",
        "model", "repository", "repo",
    },
    "text": {
        "text", "query", "question", "message", "prompt", "content", "note", "title", "body", "comment", "topic",
        "term", "sentence", "phrase",
    },
    "by": {"by", "group", "groupby", "key", "sort"},
    "pattern": {"pattern", "glob"},
}  # fmt: skip
SAID_WHOLE = ("code", "condition", "text")
"""Roles whose value is more than one word."""
ORDINALS = frozenset({"first", "last", "top", "only"})
COUNTS = frozenset({"n", "k", "limit", "count", "rows", "lines", "head", "top", "number", "size"})
FILE_TYPES = frozenset({"csv", "json", "txt", "py", "md", "parquet", "xlsx", "png", "jpg", "svg", "ipynb", "yaml"})


def role_of(name: str, schema: Mapping[str, Any]) -> str:
    """`code`, `condition`, `container`, `text`, `by`, `pattern`, or `plain`."""
    last = (split_name(name.lower()) or [name])[-1]
    keys = {name.lower(), last, stem(last)}
    description = str(schema.get("description", "")).lower()
    if keys & {"query", "filter"} and re.search(r"pandas|condition|sql|filter|where", description):
        return "condition"
    return next((role for role, names in _ROLES.items() if keys & names), "plain")
