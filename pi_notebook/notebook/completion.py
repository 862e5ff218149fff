"""Tab in an agent cell: options, models, tools, choices, sessions, variables in `{`, and the commands of `%agent`.

One matcher of IPython's own completer, so that it works in a terminal and, by the kernel, in every front end.
No property is called and no server is asked.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from ..agent.tool import Tool
from ..ai.model import Model
from ._literal_spans import is_inside, literal_spans
from .extension import COMPLETION
from .options import Word, option_strings, split_words
from .prompt import is_live
from .rules import Rules

if TYPE_CHECKING:
    from .magics import AgentMagics

_CELL = re.compile(r"\s*%%agent(?=\s|$)")
_LINE = re.compile(r"\s*%agent\s+")
_NAME = r"[^\W\d]\w*"
_FIELD = re.compile(rf"""(?<!\$)\{{(?P<path>(?:{_NAME}\.)*)(?P<end>(?:{_NAME})?)$""")
_ITEM = re.compile(rf"""(?<!\$)\{{(?P<path>{_NAME}(?:\.{_NAME})*)\[(?P<end>["'][^"'\]]*|)$""")
_KEY_NAME = re.compile(r"KEY|TOKEN|SECRET", re.IGNORECASE)


@dataclass(slots=True)
class Offer:
    """What could stand in the place of `fragment`, the text before the cursor. `kind`: as front ends show it."""

    fragment: str
    texts: list[str]
    kind: str = "instance"

    def fitting(self) -> list[str]:
        """Those that go on from the fragment; where none does, those that hold it (`sonnet`)."""
        begin = [text for text in self.texts if text.startswith(self.fragment)]
        return begin or [text for text in self.texts if self.fragment and self.fragment.lower() in text.lower()]


def make_matcher(magics: AgentMagics) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """A matcher for `shell.Completer.custom_matchers`."""

    def match_agent(context: CompletionContext) -> SimpleMatcherResult:
        offer = offer_for(context.full_text, context.cursor_line, context.cursor_position, magics)
        found = offer.fitting() if offer is not None else []
        if offer is None or not found:
            return {"completions": []}
        return {
            "completions": [SimpleCompletion(text=text, type=offer.kind) for text in found],
            "matched_fragment": offer.fragment,
            "suppress": True,
            "ordered": True,
        }

    matcher: Callable[[CompletionContext], SimpleMatcherResult]
    matcher = context_matcher(identifier=COMPLETION, priority=1000)(match_agent)
    return matcher


def offer_for(text: str, line_number: int, column: int, magics: AgentMagics) -> Offer | None:
    """What can stand at the cursor; None where the cursor is not in an agent's cell or command."""
    lines = text.split("\n")
    before = lines[line_number][:column]
    if match := _LINE.match(before):
        return _command_offer(before[match.end() :], magics)
    head = _head_line(lines, line_number)
    if head is None:
        return None
    if head == line_number:
        match = _CELL.match(before)
        return _line_offer(before[match.end() :], magics) if match else None
    body = "\n".join([*lines[head + 1 : line_number], before])
    rest = "\n".join([lines[line_number][column:], *lines[line_number + 1 :]])
    return _field_offer(body, rest, magics.shell.user_ns)


def _head_line(lines: list[str], line_number: int) -> int | None:
    """The line of `%%agent`: the first of the cell, or below other cell magics."""
    for number, line in enumerate(lines[: line_number + 1]):
        if _CELL.match(line):
            return number
        if line.strip() and not line.lstrip().startswith("%%"):
            return None
    return None


# ---- the line of %%agent -----------------------------------------------------------------------------------------


def _line_offer(line: str, magics: AgentMagics) -> Offer | None:
    options = option_strings(magics.agent_cell.parser)
    words = split_words(line)
    if not words or (line[-1:].isspace() and not words[-1].quote):
        words.append(Word("", len(line)))
    current, earlier = words[-1], words[:-1]
    name, equals, value = current.text.partition("=")
    if equals and name in options:
        return _value_offer(options[name], value, current, magics)
    last = earlier[-1].text if earlier else ""
    if last in options and options[last].nargs != 0:
        return _value_offer(options[last], current.text, current, magics)
    if current.quote or (current.text and not current.text.startswith("-")):
        return None
    given = {options[word.text].dest for word in earlier if word.text in options}
    names = [name for name, action in options.items() if action.dest not in given]
    return Offer(current.text, [n for n in names if n.startswith("--")] + [n for n in names if n[1:2] != "-"], "option")


def _value_offer(action: argparse.Action, value: str, word: Word, magics: AgentMagics) -> Offer | None:
    namespace = magics.shell.user_ns
    if action.dest == "system":
        return _field_offer(value, "", namespace)
    if action.dest == "tools":
        chosen, comma, fragment = value.rpartition(",")
        listed = chosen.split(",") if comma else []
        return Offer(fragment, [name for name in _tool_names(magics) if name not in listed], "function")
    values: dict[str, Callable[[], Iterable[str]]] = {
        "model": lambda: _model_names(namespace),
        "approve": lambda: ["ask", "all", "none", *_holding(Rules, namespace)],
        "session": lambda: _session_names(magics),
        "out": lambda: _variables(namespace),
        "api_key_env": lambda: sorted(name for name in os.environ if _KEY_NAME.search(name)),
        "base_url": lambda: ["http://127.0.0.1:", "https://"],
    }
    if action.choices is not None:
        return Offer(value, [str(choice) for choice in action.choices])
    return Offer(value, list(values[action.dest]())) if action.dest in values else None


def _model_names(namespace: dict[str, Any]) -> list[str]:
    from ..ai.prices import known_models
    from ..ai.providers import PRACTICE, PROVIDERS

    known = known_models()
    names = [*_holding(Model, namespace), PRACTICE.id]
    for provider in PROVIDERS:
        names += [f"{provider}:{model}" for model in known.get(provider, ())] or [f"{provider}:"]
    return names


def _tool_names(magics: AgentMagics) -> list[str]:
    from ..tools import NAMES
    from .toolset import SETS, notebook_tools

    here = [tool.name for tool in notebook_tools(magics.shell)]
    return list(dict.fromkeys([*here, *NAMES, *SETS, *_holding(Tool, magics.shell.user_ns)]))


def _session_names(magics: AgentMagics) -> list[str]:
    """Sessions of this kernel, and those that are kept of this notebook."""
    from urllib.parse import unquote

    own = magics.place.file("")
    kept = [path.stem for path in [own, *magics.place.others("")] if path.stem.startswith(f"{own.stem}@")]
    names = [unquote(stem.removeprefix(f"{own.stem}@")) for stem in kept]
    return list(dict.fromkeys([name for name in [*magics.conversations, *names] if name]))


def _holding(kind: type, namespace: dict[str, Any]) -> list[str]:
    return [name for name in _variables(namespace) if isinstance(namespace[name], kind)]


def _variables(namespace: dict[str, Any]) -> list[str]:
    names = [name for name in list(namespace) if is_live(name, namespace)]
    return [name for name in names if not isinstance(namespace[name], ModuleType)]


# ---- %agent ------------------------------------------------------------------------------------------------------


def _command_offer(line: str, magics: AgentMagics) -> Offer | None:
    from ..ai.providers import PROVIDERS
    from .commands import COMMANDS

    words = [word.text for word in split_words(line)]
    if not words or line[-1:].isspace():
        words.append("")
    if len(words) == 1:
        return Offer(words[0], list(COMMANDS), "keyword")
    if len(words) > 2:
        return None
    values: dict[str, Callable[[], list[str]]] = {
        "help": lambda: list(COMMANDS),
        "tools": lambda: _tool_names(magics),
        "key": lambda: [provider.name for provider in PROVIDERS.values() if provider.key_names],
        "show": lambda: [str(number) for number in range(1, len(magics.conversation.turns) + 1)],
        "resume": lambda: ["list", *_session_names(magics)],
    }
    return Offer(words[1], values[words[0]]()) if words[0] in values else None


# ---- the prompt --------------------------------------------------------------------------------------------------


def _field_offer(before: str, after: str, namespace: dict[str, Any]) -> Offer | None:
    """Names in an open brace before the cursor, where the prompt would insert something."""
    match = _FIELD.search(before) or _ITEM.search(before)
    if match is None:
        return None
    # As if it were closed: what is literal does not depend on what is to be completed
    closed = f"{before}}}{after.removeprefix('}')}"
    if is_inside(match.start(), literal_spans(closed)):
        return None
    path = [name for name in match["path"].split(".") if name]
    if not path:
        return Offer(match["end"], _variables(namespace))
    found, value = _look_up(path, namespace)
    if not found:
        return None
    if match.re is _ITEM:
        quote = match["end"][:1] or '"'
        closing = "" if match["end"] and after.startswith(quote) else quote
        return Offer(match["end"], _keys(value, quote, closing), "value")
    try:
        names = [name for name in dir(value) if not name.startswith("_") and name.isidentifier()]
    except Exception:
        return None
    return Offer(match["end"], names, "property")


def _look_up(path: list[str], namespace: dict[str, Any]) -> tuple[bool, Any]:
    """The value of dotted names, by what stands in their objects: no property is called."""
    if not is_live(path[0], namespace):
        return False, None
    value = namespace[path[0]]
    for name in path[1:]:
        try:
            value = object.__getattribute__(value, "__dict__")[name]
        except (AttributeError, KeyError):
            return False, None
    return True, value


def _keys(value: Any, quote: str, closing: str) -> list[str]:
    keys: list[Any] = []
    if type(value) is dict:
        keys = list(value)
    elif str(type(value).__module__).partition(".")[0] == "pandas" and hasattr(value, "columns"):
        keys = list(value.columns)
    plain = [key for key in keys if type(key) is int or (type(key) is str and _is_plain(key, quote))]
    return [f"{quote}{key}{closing}" if isinstance(key, str) else repr(key) for key in plain]


def _is_plain(key: str, quote: str) -> bool:
    return key.isprintable() and quote not in key and "\\" not in key
