"""What a docstring in Google, NumPy, Sphinx or Epydoc style says of a function and its parameters."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"^\s*(:\w[\w ]*:|:\w+ .*:|@\w+.*:|(Args|Arguments|Parameters|Params|Attributes|Keyword Args|Keyword Arguments|"
    r"Other Parameters|Returns?|Yields?|Raises|Examples?)\s*:?\s*$)",
    re.MULTILINE,
)


@dataclass(slots=True)
class Docstring:
    """`description` without the sections; `parameters` by name, `types` where the docstring names one."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Read `text` in whichever style it is; without sections it is the description as it stands."""
    text = inspect.cleandoc(text or "")
    if not _SECTION.search(text):
        return Docstring(text)
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Docstring(text)
    parts = [parsed.short_description, parsed.long_description]
    if parsed.returns is not None and parsed.returns.description and not parsed.returns.is_generator:
        parts.append(f"Returns: {_one_line(parsed.returns.description)}")
    result = Docstring("\n\n".join(part.strip() for part in parts if part and part.strip()))
    for each in parsed.params:
        for name in each.arg_name.split(","):
            name = name.strip().lstrip("*\\")
            result.parameters[name] = _one_line(each.description or "")
            if each.type_name:
                result.types[name] = each.type_name
    return result


def _one_line(text: str) -> str:
    """A description that was wrapped in the source, without the wrapping; paragraphs and lists stay."""
    paragraphs = re.split(r"\n\s*(?=\n|[-*] )", text.strip())
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
