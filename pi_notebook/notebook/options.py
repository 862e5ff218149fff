"""The line of an agent cell: its words, the values that options take, and what is said of mistakes.

Not IPython's `arg_split`, which leaves the quotes in. Here a quotation is what stands between `'...'` or `"..."`; the
quotes themselves go. Backslashes stay as they are (`C:\\data`), but for one before the quote that ends a quotation.
Nothing is expanded: no `{x}`, no `$x`, no `~`.
"""

from __future__ import annotations

import argparse
import difflib
import keyword
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from IPython.core.error import UsageError

_TYPOGRAPHIC = {
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u2018": "'",
    "\u2019": "'",
    "\u2014": "--",
    "\u2013": "--",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_NAMES = frozenset({"In", "Out", "_", "__", "___", "_ih", "_oh", "_dh", "get_ipython"})


@dataclass(slots=True)
class Word:
    """One word of a line.

    Args:
        start: Where it begins.
        quote: The quote that is still open at its end, or empty.
        is_quoted: It began with a quote.
    """

    text: str
    start: int
    quote: str = ""
    is_quoted: bool = False


def split_words(line: str) -> list[Word]:
    """The words of `line`, the last one maybe unfinished. A quote inside a word (`don't`) opens no quotation."""
    words: list[Word] = []
    word: Word | None = None
    at = 0
    while at < len(line):
        character = line[at]
        if word is None:
            if not character.isspace():
                word = Word("", at, is_quoted=character in "'\"")
                words.append(word)
                continue
        elif word.quote:
            if character == "\\" and line[at + 1 : at + 2] == word.quote and _closes_later(line, at + 2, word.quote):
                at += 1
                word.text += word.quote
            elif character == word.quote:
                word.quote = ""
            else:
                word.text += character
        elif character.isspace():
            word = None
        elif character in "'\"" and not word.text[-1:].isalnum():
            word.quote = character
        else:
            word.text += character
        at += 1
    return words


def _closes_later(line: str, at: int, quote: str) -> bool:
    """Whether the quotation goes on behind an escaped quote: `"C:\\"` ends with its backslash."""
    return quote in line[at:]


def parse_line(parser: argparse.ArgumentParser, line: str) -> argparse.Namespace:
    """The options of an agent cell's line.

    Raises:
        UsageError: In one line, what cannot be understood.
    """
    words = split_words(line)
    if words and words[-1].quote:
        raise UsageError(f"%%agent: a quotation is not closed; it begins at {_short(line[words[-1].start :])}.")
    try:
        arguments, rest = parser.parse_known_args(list(_joined(words, parser)))
    except SystemExit:
        raise UsageError("See %%agent? for the options.") from None
    except UsageError as error:
        raise UsageError(_short(str(error), 300)) from None
    if rest:
        raise UsageError(_unrecognized(rest, parser))
    return arguments


def _joined(words: list[Word], parser: argparse.ArgumentParser) -> Iterator[str]:
    """The words, with an option and a quoted value in one: argparse takes a value like `-x` for an option."""
    options = option_strings(parser)
    at = 0
    while at < len(words):
        text = words[at].text
        at += 1
        if text in options and options[text].nargs is None and at < len(words) and words[at].is_quoted:
            text = f"{text}={words[at].text}"
            at += 1
        yield text


def option_strings(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options by their names, `--model` and `-m`."""
    return {name: action for action in parser._actions for name in action.option_strings}


def _unrecognized(rest: Sequence[str], parser: argparse.ArgumentParser) -> str:
    said = f"unrecognized arguments: {_short(' '.join(rest))}."
    first = rest[0]
    if set(said) & set(_TYPOGRAPHIC):
        return f"{said} Typographic quotes and dashes are no quotes and hyphens here: write \" or ' and --."
    if not first.startswith("-"):
        return f"{said} What the agent should do stands below the %%agent line; %%agent? lists the options."
    name = first.partition("=")[0]
    if name in ("-h", "--help"):
        return "%%agent? shows the help, %agent help the commands."
    known = {option.lstrip("-"): option for option in option_strings(parser)}  # hyphens are no likeness
    near = difflib.get_close_matches(name.lstrip("-"), known, n=1)
    return f"{said} Did you mean {known[near[0]]}?" if near else f"{said} %%agent? lists the options."


def _short(text: str, length: int = 100) -> str:
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= length else f"{text[: length - 3]}..."


# ---- values ------------------------------------------------------------------------------------------------------


def count(text: str) -> int:
    """A whole number from 0."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 (0: no limit)")
    return number


def amount(text: str) -> float:
    """A number from 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 (0: no limit)")
    return number


def environment_name(text: str) -> str:
    """The name of an environment variable. What is none may be the key itself, and is not repeated."""
    if not _VARIABLE.fullmatch(text):
        raise argparse.ArgumentTypeError("takes the name of an environment variable that holds the key, not the key")
    return text


def check_variable_name(name: str) -> None:
    """Raise UsageError for what `--out` cannot set."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"--out {_short(repr(name))} is no variable name.")
    if name in RESERVED_NAMES:
        raise UsageError(f"--out {name}: that variable belongs to IPython.")


# ---- the prompt --------------------------------------------------------------------------------------------------


def split_silencer(line: str, cell: str) -> tuple[str, str, bool]:
    """Line and prompt without a final `;`, and whether there was one.

    It counts at the end of the line, and behind the prompt's last word; in code of Markdown it is code.
    """
    from ._literal_spans import code_spans, is_inside

    bare_line = line.strip().removesuffix(";").rstrip()
    silent = bare_line != line.strip()
    text = cell.rstrip()
    if text.endswith(";") and not is_inside(len(text) - 1, code_spans(text)):
        return bare_line, text[:-1].rstrip(), True
    return bare_line, cell.strip("\n"), silent


HELP_EPILOG = """
A word with spaces needs 'quotes' or "quotes". Nothing on the line is expanded, but {name} in --system.
Defaults: %config AgentMagics lists them, %config AgentMagics.model = "..." sets one until the kernel ends, and
c.AgentMagics.model = "..." in ipython_config.py for good. Commands about the agent: %agent help.

The prompt:
  {name}, {name.attr}, {name["key"]}, {name[0]} insert live variables: texts and numbers where they stand, tables as
  a preview, figures as images. They stay as they are in code (fences, `inline`), {{...}}, ${...}, \\cmd{...} and
  $x_{...}$; so do all other braces, calls and format specs.
  A ; at the end is not sent, and keeps the result out of Out and _ (not in code, and not out of --out).

Examples:
  %%agent -m anthropic:claude-sonnet-4-5 --tools notebook,read -o answer
  %%agent -m openai-compatible:my-model --base-url http://127.0.0.1:8080/v1
"""
