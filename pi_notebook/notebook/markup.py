"""Hostile text made fit to be shown: escaping, Markdown and tables as sanitised HTML, coloured code.

Every text from a model, a tool or a person passes through here on its way to HTML. Markdown is parsed with HTML
switched off, rendered by rules that emit no image and only web links, and then sanitised as if it had not been.
Nothing that comes out loads, runs, or leaves its place on the page.
"""

from __future__ import annotations

import html
import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from ..ai.json_arguments import without_lone_surrogates
from ._style import part

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
_TABLE_TAGS = frozenset({"table", "thead", "tbody", "tr", "th", "td", "br", "strong", "em", "span"})
_TAGS = _TABLE_TAGS | {"a", "blockquote", "code", "del", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol"}
_TAGS |= {"p", "pre", "s", "ul"}
_ATTRIBUTES = {"*": {"class", "dir"}, "a": {"href", "title"}, "ol": {"start"}}
_TABLE_ATTRIBUTES = {"th": {"colspan", "rowspan"}, "td": {"colspan", "rowspan"}}

# Characters that show nothing, or change where other characters show: C0 and C1 controls, bidi marks, zero widths,
# fillers, variation selectors of other scripts, tags. A joiner between emoji is kept.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
    "|(?<![\u2190-\U0001faff\ufe0f])\u200d"
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_MAX_COLOURED = 50_000


def escape(text: str) -> str:
    """`text` as HTML text or attribute value."""
    return html.escape(without_lone_surrogates(text).replace("\x00", "\ufffd"))


def plain(text: str) -> str:
    """`text` without terminal colours and cursor movements."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """`text` with each hidden character (control, bidi, zero width) as `[U+202E]`; a newline as `⏎` unless kept."""
    text = _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", without_lone_surrogates(text))
    return text if keep_newlines else text.replace("\n", "⏎")


def visible_html(text: str) -> str:
    """`text` as HTML, with each hidden character as a marked `U+202E`."""
    text = without_lone_surrogates(text)
    if not _HIDDEN.search(text):
        return html.escape(text)
    pieces, end = [], 0
    for found in _HIDDEN.finditer(text):
        pieces.append(html.escape(text[end : found.start()]))
        pieces.append(f"<span{part('mark')}>U+{ord(found[0]):04X}</span>")
        end = found.end()
    return "".join(pieces) + html.escape(text[end:])


def markdown_html(source: str) -> str:
    """Markdown as sanitised HTML."""
    tokens = parse_markdown(source, {})
    return render_markdown(tokens, {})


def parse_markdown(source: str, env: MutableMapping[str, Any]) -> list[Any]:
    """The tokens of `source`; `env` keeps link definitions for the blocks that follow."""
    tokens: list[Any] = _parser().parse(without_lone_surrogates(source).replace("\x00", "\ufffd"), env)
    return tokens


def render_markdown(tokens: Sequence[Any], env: MutableMapping[str, Any], *, continued: bool = False) -> str:
    """Tokens of whole blocks as sanitised HTML. `continued`: a code block goes on from the one before."""
    parser = _parser()
    rendered = parser.renderer.render(tokens, parser.options, {**env, "continued": continued})
    return _clean_markdown(rendered)


def _clean_markdown(rendered: str) -> str:
    import nh3

    return nh3.clean(
        rendered,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes=set(LINK_SCHEMES),
        url_relative="deny",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def table_of(value: Any) -> str:
    """Sanitised HTML of the table that `value` shows itself as, without any looks of its own; else ""."""
    if value is None or isinstance(value, str | bytes | int | float | bool | list | tuple | dict | set):
        return ""
    method = getattr(type(value), "_repr_html_", None)
    if method is None:
        return ""
    try:
        shown = method(value)
    except Exception:
        return ""
    return clean_table(shown)


def clean_table(shown: Any) -> str:
    """Sanitised HTML of the tables in `shown`; "" if it is no HTML with a table, or more than 500 KB."""
    if not isinstance(shown, str) or "<table" not in shown or len(shown) > 500_000:
        return ""
    import nh3

    cleaned = nh3.clean(
        without_lone_surrogates(shown),
        tags=set(_TABLE_TAGS),
        attributes=_TABLE_ATTRIBUTES,
        clean_content_tags={"style", "script"},
    )
    cleaned = cleaned[cleaned.index("<table") :] if "<table" in cleaned else ""
    return re.sub(r"\s*\n\s*", "", cleaned)


def styled_table(table: str) -> str:
    """A `table_of` with our looks."""
    head, end, body = table.partition("</thead>")
    looks = (("table", ("md-table",)), ("tr", ("md-tr",)), ("th", ("md-th", "md-right")), ("td", ("md-td", "md-right")))
    for tag, names in looks:
        head = re.sub(rf"<{tag}(?=[ >])", f"<{tag}{part(*names)}", head)
        names = ("md-td", "md-left") if tag == "th" else names
        body = re.sub(rf"<{tag}(?=[ >])", f"<{tag}{part(*names)}", body)
    table = head + end + body
    return f"<div{part('md-wide', 'scroll')}>{table}</div>"


def code_html(code: str, language: str) -> str:
    """Code as HTML, coloured if its language is known. Never raises."""
    lexer = _lexer(language) if language and len(code) <= _MAX_COLOURED else None
    if lexer is None:
        return escape(code)
    pieces: list[tuple[str, str]] = []
    code = without_lone_surrogates(code)
    # Some lexers know a line only by its end
    for kind, text in lexer.get_tokens(code if code.endswith("\n") else code + "\n"):
        name = _part_of(kind)
        if pieces and pieces[-1][0] == name:
            pieces[-1] = (name, pieces[-1][1] + text)
        else:
            pieces.append((name, text))
    if pieces and not code.endswith("\n"):
        pieces[-1] = (pieces[-1][0], pieces[-1][1].removesuffix("\n"))
    return "".join(f"<span{part(name)}>{escape(text)}</span>" if name else escape(text) for name, text in pieces)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _part_of(kind: Any) -> str:
    from pygments.token import Token  # type: ignore[import-untyped]

    parts = (
        (Token.Comment, "c"),
        (Token.Keyword, "k"),
        (Token.Operator.Word, "k"),
        (Token.Literal.String, "s"),
        (Token.Literal.Number, "n"),
        (Token.Name.Function, "f"),
        (Token.Name.Class, "f"),
        (Token.Name.Builtin, "f"),
        (Token.Name.Tag, "f"),
        (Token.Name.Decorator, "at"),
        (Token.Generic.Inserted, "in"),
        (Token.Generic.Deleted, "out"),
        (Token.Generic.Subheading, "at"),
        (Token.Generic.Heading, "c"),
    )
    return next((name for parent, name in parts if kind in parent), "")


# The Markdown parser


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False, "maxNesting": 20})
    parser.inline.ruler.before("escape", "math", _math)
    parser.inline.ruler.before("escape", "dollar", _dollar)
    looks = {
        "paragraph_open": "md-p",
        "heading_open": "md-h",
        "bullet_list_open": "md-list",
        "ordered_list_open": "md-list",
        "blockquote_open": "md-quote",
        "tr_open": "md-tr",
        "th_open": "md-th",
        "td_open": "md-td",
        "hr": "md-rule",
        "link_open": "md-link",
    }
    rules: dict[str, Any] = vars(parser.renderer)["rules"]
    for kind, name in looks.items():
        rules[kind] = _with_looks(name)
    rules["table_open"] = lambda tokens, index, options, env: f"<div{part('md-wide')}><table{part('md-table')}>"
    rules["table_close"] = lambda tokens, index, options, env: "</table></div>"
    rules["fence"] = rules["code_block"] = _code_block
    rules["code_inline"] = lambda tokens, index, options, env: (
        f"<code{part('md-code')}>{escape(tokens[index].content)}</code>"
    )
    rules["image"] = _image
    rules["math"] = lambda tokens, index, options, env: (
        f'<span class="tex2jax_process mathjax_process">{escape(tokens[index].content)}</span>'
    )
    rules["dollar"] = lambda tokens, index, options, env: '<span class="tex2jax_ignore mathjax_ignore">$</span>'
    return parser


def _with_looks(name: str) -> Any:
    def render(tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        if token.hidden:
            return ""
        align = str(token.attrs.get("style", "")).removeprefix("text-align:")
        looks = part(name, f"md-{align}") if align else part(name)
        others = "".join(f' {key}="{escape(str(value))}"' for key, value in token.attrs.items() if key != "style")
        following = tokens[index + 1].content if index + 1 < len(tokens) else ""
        direction = "" if following.isascii() and name != "md-list" else ' dir="auto"'
        return f"<{token.tag}{looks}{others}{direction}>"

    return render


def _code_block(tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    looks = part("md-pre", "md-part") if env["continued"] else part("md-pre")
    return f"<pre{looks}>{code_html(token.content.removesuffix(chr(10)), language)}</pre>"


def _image(tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    """A picture on the web is named, never loaded."""
    token = tokens[index]
    alt = token.content or "image"
    address = token.attrs.get("src", "")
    if not address.startswith(("http://", "https://")):
        return f"[image: {escape(alt)}]"
    return f'<a href="{escape(address)}"{part("md-link")}>[image: {escape(alt)}]</a>'


_MATH = re.compile(
    r"\$\$(?=\S)(?:[^$\\]|\\.)+?\$\$|\$(?=[^\s$])(?:[^$\\\n]|\\.)*?(?<!\s)\$(?!\d)|\\\((?:.|\n)+?\\\)|\\\[(?:.|\n)+?\\\]",
)


def _math(state: Any, silent: bool) -> bool:
    """Formulas are kept as they are, for the front end: Markdown must not eat their underscores."""
    if state.src[state.pos] not in "$\\":
        return False
    found = _MATH.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        state.push("math", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _dollar(state: Any, silent: bool) -> bool:
    """A lone dollar is money: no front end may pair it with the next one."""
    if state.src[state.pos] != "$":
        return False
    if not silent:
        state.push("dollar", "", 0).content = "$"
    state.pos += 1
    return True
