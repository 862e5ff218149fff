"""Fills a tool's arguments from the words of a prompt, by type, enum and name, for the `practice` model."""

from __future__ import annotations

import re

from ._practice_roles import COUNTS, FILE_TYPES, ORDINALS, SAID_WHOLE
from ._practice_slots import Filled, Memory, Slots
from ._practice_values import NOTHING, NUMBER_WORDS, condition, convert, fits, resolved
from ._practice_words import PRONOUNS, Match, split_name, stem, stems


def fill(match: Match, text: str, memory: Memory) -> Filled:
    """Arguments for the tool of `match` from the step `text`; strong evidence is used before weak evidence."""
    filler = _Filler(match, text, memory)
    for take in (
        filler.named,
        filler.enums_and_flags,
        filler.conditions,
        filler.axes,
        filler.after_prepositions,
        filler.numbers,
        filler.typed_values,
        filler.free_text,
        filler.plain_words,
        filler.remembered,
        filler.words_of_the_tool,
    ):
        take()
    filler.list_of_values()
    order = list(filler.properties)
    filler.done.arguments = dict(sorted(filler.done.arguments.items(), key=lambda item: order.index(item[0])))
    filler.done.missing = [name for name in filler.required if name not in filler.done.arguments]
    return filler.done


class _Filler(Slots):
    """Ways to find values, strongest evidence first."""

    def named(self) -> None:
        """`bins=5`, `bins: 5`, `column price`, `the price column`, `5 bins`."""
        for name in self.open():
            keys = {stem(part) for part in split_name(name)}
            whole = {name.lower(), "".join(split_name(name)).lower()}
            for index, token in enumerate(self.tokens):
                if token.kind not in ("word", "path") or not (token.text.lower() in whole or {token.key} == keys):
                    continue
                for near, strict in self._neighbours(index):
                    if not strict and self.role(name) in SAID_WHOLE:
                        continue
                    value = self._value(near, name)
                    if value is not NOTHING and (strict or self._telling(near)):
                        self.put(name, value, near, index)
                        break
                if name in self.done.arguments:
                    break
                if self.role(name) != "by" and self.role(name) not in SAID_WHOLE:
                    self.used.add(index)

    def _neighbours(self, index: int) -> list[tuple[int, bool]]:
        """Where the value of a parameter named at `index` may stand; True: whatever stands there is meant."""
        after = index + 1
        if self._text(after) in ("=", ":", "is", "to", "named", "called"):
            return [(after + 1, self._text(after) in ("=", ":", "named", "called")), (index - 1, False)]
        return [(after, False), (index - 1, False)]

    def enums_and_flags(self) -> None:
        """A value of an enum that the prompt says, and booleans by their name: `with header`, `no header`."""
        for name in self.open():
            schema = self.properties[name]
            values = schema.get("enum")
            if values:
                for index in range(len(self.tokens)):
                    value = self._value(index, name)
                    if value is not NOTHING and index not in self.taken:
                        self.put(name, value, index)
                        break
                else:
                    if len(values) == 1 and name in self.required:
                        self.put(name, values[0])
            elif schema.get("type") == "boolean":
                keys = {stem(part) for part in split_name(name)}
                for index, token in enumerate(self.tokens):
                    if token.kind == "word" and token.key in keys and token.key not in self.words.name:
                        no = {"no", "not", "without", "don't", "never", "false", "off"}
                        near = {self._text(index + step) for step in (-2, -1, 1)}
                        self.put(name, not near & no, index)
                        break

    def conditions(self) -> None:
        """`where`-like parameters: a condition in quotes, in operators, or in words (`a negative price`)."""
        for name in self.open():
            if self.role(name) != "condition":
                continue
            quoted = [
                index
                for index, token in enumerate(self.tokens)
                if token.kind == "quoted" and self.free(index) and re.search(r"[<>=!]|\b(?:in|like|is)\b", token.text)
            ]
            if quoted:
                self.put(name, self.tokens[quoted[0]].text, quoted[0])
            elif found := condition(self.text):
                said, start, end = found
                inside = [index for index, token in enumerate(self.tokens) if token.start < end and token.end > start]
                self.put(name, said, *inside)

    def axes(self) -> None:
        """`price by region`, `y against x`: the two axes of a plot."""
        names = {name.lower(): name for name in self.open()}
        if not {"x", "y"} <= names.keys():
            return
        for index in range(1, len(self.tokens) - 1):
            if self._text(index) in ("by", "against", "vs", "versus", "over", "per"):
                y, x = self._value(index - 1, names["y"]), self._value(index + 1, names["x"])
                if NOTHING not in (y, x) and self._telling(index - 1) and self._telling(index + 1):
                    self.put(names["y"], y, index - 1)
                    self.put(names["x"], x, index + 1)
                    return

    def after_prepositions(self) -> None:
        """`in sales` fills a table or file, `by region` a grouping; names that a description gives as examples."""
        for name in self.open(required=True):
            role = self.role(name)
            words = {"container": ("in", "from", "into", "on"), "by": ("by", "per")}.get(role, ())
            if role == "container" and self._words_left() >= len(self.open(required=True)):
                words = (*words, "of")
            for index in reversed(range(len(self.tokens) - 1)) if words else ():
                near = index + 1 + (self._text(index + 1) in ("the", "a", "my", "our", "this"))
                if self._text(index) in words and near < len(self.tokens) and self._telling(near):
                    value = self._value(near, name)
                    if value is not NOTHING:
                        self.put(name, value, near)
                        break

    def _words_left(self) -> int:
        return sum(self._telling(index) for index in range(len(self.tokens)))

    def numbers(self) -> None:
        """Numbers in the order of the parameters; an optional one of several takes only what words tie to it."""
        for name in self.open():
            if not self._numeric(name):
                continue
            several = sum(map(self._numeric, self.open())) > 1
            for index, token in enumerate(self.tokens):
                pointing = self._points(index) and name in self.required
                digits = token.kind == "number" or token.text.lower() in NUMBER_WORDS
                if not self.free(index) or not (pointing or digits):
                    continue
                if name not in self.required and several and not self._tied(name, index):
                    continue
                value = self._pointed(name) if pointing else self._value(index, name)
                if value is not NOTHING:
                    self.put(name, value, index)
                    break

    def _numeric(self, name: str) -> bool:
        return self.properties[name].get("type") in ("number", "integer")

    def _tied(self, name: str, index: int) -> bool:
        """Whether the words around a number speak of this parameter: `5 lines`, `timeout of 3`, `first 5`."""
        if self._text(index - 1) in ORDINALS and any(other.lower() in COUNTS for other in self.open()):
            return name.lower() in COUNTS
        about = set(map(stem, split_name(name))) | stems(str(self.properties[name].get("description", "")))
        near = [i for i in (index - 2, index - 1, index + 1) if 0 <= i < len(self.tokens)]
        return any(self.tokens[i].key in about for i in near)

    def typed_values(self) -> None:
        """Quotes, paths, dates and JSON in the order of the parameters that take them."""
        for name in self.open():
            role = self.role(name)
            if self._numeric(name) or (self.properties[name].get("type") == "array" and self._loose_items(name)):
                continue
            if role == "pattern" and self._file_type(name):
                continue
            free = [index for index in range(len(self.tokens)) if self.free(index)]
            if role == "container":
                free = [i for i in free if self.tokens[i].kind in ("path", "link")] or free
            for index in free:
                pointing = self._points(index) and name in self.required and role in ("container", "plain")
                if not pointing and not self._solid(index, role):
                    continue
                value = self._pointed(name) if pointing else self._value(index, name)
                if value is not NOTHING:
                    self.put(name, value, index)
                    break

    def _points(self, index: int) -> bool:
        return self.tokens[index].kind == "word" and self._text(index) in PRONOUNS

    def _solid(self, index: int, role: str) -> bool:
        """Whether a token is a value by its form, for a parameter of this role."""
        token = self.tokens[index]
        if token.kind == "path" and (role == "pattern" or role in SAID_WHOLE):
            return role == "pattern" and bool({"*", "?"} & set(token.text))
        return token.kind not in ("word", "mark", "operator", "number")

    def _loose_items(self, name: str) -> bool:
        """`1, 2 and 3`, or several quotes, as an array."""
        item = resolved(self.properties[name].get("items", {}), self.words.tool.schema)
        kinds = ("number",) if item.get("type") in ("number", "integer") else ("quoted", "path", "date", "link")
        if any(token.kind == "json" and self.free(index) for index, token in enumerate(self.tokens)):
            return False
        items = {
            index: value
            for index, token in enumerate(self.tokens)
            if self.free(index) and token.kind in kinds and (value := convert(token, item)) is not NOTHING
        }
        if items:
            self.put(name, list(items.values()), *items)
        return bool(items)

    def _file_type(self, name: str) -> bool:
        """`find the CSV files` as a glob."""
        if any(token.kind in ("quoted", "path") and self.free(i) for i, token in enumerate(self.tokens)):
            return False
        for index, token in enumerate(self.tokens):
            kind = token.text.lower().rstrip("s")
            if kind in FILE_TYPES and self.free(index):
                self.put(name, f"*.{kind}", index)
                return True
        return False

    def free_text(self) -> None:
        """Texts and queries: the rest of the step after the words that name the tool."""
        for name in self.open(required=True):
            role = self.role(name)
            if role not in ("text", "code") or self.properties[name].get("type", "string") != "string":
                continue
            after = self.text.partition(": ")[2].strip() if ": " in self.text else ""
            if not after and role == "text":
                named = [self.tokens[index].end for index in self.used]
                after = self.text[max(named, default=len(self.text)) :]
                after = re.sub(r"^\W*(?:(?:for|about|that|with|of|on|says?|saying)\b)?\s*", "", after)
            if after := after.strip(" .?!\n"):
                self.put(name, after, *range(len(self.tokens)))

    def plain_words(self) -> None:
        """What is left: capitalised names first, then words that the tool's description does not use."""
        self._take_words(described=False)

    def words_of_the_tool(self) -> None:
        """At last, words that the tool's description uses as well."""
        self._take_words(described=True)

    def _take_words(self, described: bool) -> None:
        for name in sorted(self.open(required=True), key=lambda name: self.role(name) == "container"):
            schema = self.properties[name]
            if schema.get("type", "string") != "string" or self.role(name) in SAID_WHOLE:
                continue
            left = [i for i, token in enumerate(self.tokens) if token.content and self.free(i)]
            left = [i for i in left if self._text(i) not in ORDINALS]
            left = [i for i in left if self.tokens[i].key not in self.words.parameters] or left
            ranked = sorted((i for i in left if described or self._rank(i) < 2), key=self._rank)
            for index in ranked:
                value = self._value(index, name)
                if value is not NOTHING:
                    value, span = self._whole_name(index, value)
                    self.put(name, value, *span)
                    break

    def _rank(self, index: int) -> int:
        return 0 if self._capital(index) else 2 if self.tokens[index].key in self.words.description else 1

    def remembered(self) -> None:
        """The same parameter of an earlier call, for names of things; never for conditions, code or texts."""
        for name in self.open(required=True):
            schema = self.properties[name]
            if schema.get("type", "string") != "string" or self.role(name) in SAID_WHOLE:
                continue
            for arguments in self.memory.arguments:
                if isinstance(arguments.get(name), str) and fits(arguments[name], schema):
                    self.put(name, arguments[name])
                    self.done.remembered.append(name)
                    break

    def list_of_values(self) -> None:
        """`weather in Paris, Oslo and Rome`: further values of the same kind."""
        for name, index in self.index_of.items():
            if self.properties[name].get("type", "string") != "string" or self.role(name) not in (
                "plain",
                "container",
            ):
                continue
            place, kind = index, (self.tokens[index].kind, self._capital(index))
            values = []
            while True:
                while (
                    self.free(place + 1)
                    and not self.tokens[place + 1].content
                    and (self._text(place + 1) in (",", "and", "or"))
                ):
                    place += 1
                place += 1
                if not (self.free(place) and self._text(place - 1) in (",", "and", "or")):
                    break
                if (self.tokens[place].kind, self._capital(place)) != kind or not self._telling(place):
                    break
                value = self._value(place, name)
                if value is NOTHING:
                    break
                value, span = self._whole_name(place, value)
                values.append(value)
                place = span[-1]
            if values:
                self.done.listed, self.done.alternatives = name, values
                return
