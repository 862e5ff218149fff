"""What a function returns, as a tool result: content for the model, `details` for the person, the whole as `value`."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from ..ai.messages import ImageContent, TextContent, UserContent
from ._cut import MAX_BYTES, MAX_LINES, cut_middle, utf8_size
from ._json_form import bytes_text, is_listed, json_form, json_text, safe_text
from ._pictures import NoPicture, image_type, is_picture, matplotlib_figure, picture
from ._python_text import python_text
from ._tables import is_table, table_text
from ._tracebacks import describe_exception as describe_exception
from ._tracebacks import short_traceback as short_traceback
from .tool import Progress, ToolResult

if TYPE_CHECKING:
    from .output import Captured

NOTHING = "Done. It returned nothing and printed nothing."
MAX_IMAGES = 20
_SHORT_ARRAY = 100
_DEFAULT_REPR = re.compile(r"<[\w.<>]+ (object|instance)( at 0x[0-9a-fA-F]+)?>")
_REPRS = ("_repr_png_", "_repr_jpeg_", "_repr_markdown_", "_repr_html_", "_repr_svg_", "_repr_latex_")


def to_tool_result(value: Any, captured: Captured | None = None) -> ToolResult:
    """The result for a returned `value`; a `ToolResult` stays what it is, as a copy.

    Args:
        captured: What the call printed and displayed. It is the result if `value` is None; else what was displayed
            is for the person, as `displayed`.

    `details` is what a person should see: `value` itself, for None `captured`. Never raises.
    """
    if isinstance(value, ToolResult):
        whole = value.value if value.value is not None else value.details
        blocks = value.content
        if not all(isinstance(block, TextContent | ImageContent) for block in blocks):
            blocks = [block for item in blocks for block in to_content(item)]
        result = replace(value, content=blocks)
        result.value = result.text if whole is None else whole
        result.displayed = (*value.displayed, *_displayed(captured, result.value))
        return result
    if isinstance(value, Progress):
        return ToolResult((), value)
    details = value if value is not None else captured or None
    return ToolResult(to_content(value, captured), details, value=value, displayed=_displayed(captured, value))


def is_simple(value: Any) -> bool:
    """Whether making the result of `value` costs nothing and touches nobody's objects."""
    if isinstance(value, ToolResult):
        return all(isinstance(block, TextContent | ImageContent) for block in value.content)
    return value is None or isinstance(value, str | int | float | bool)


def to_content(value: Any, captured: Captured | None = None) -> list[UserContent]:
    """Text and image blocks for a model. Neighbouring texts are joined; all text together keeps to 2,000 lines and
    50 KB (head and tail, with the true size), and the images to `MAX_IMAGES`. Never raises."""
    if type(value) in (int, bool) or (type(value) is str and len(value) < MAX_LINES):  # most results, and no limit near
        return [TextContent(value if isinstance(value, str) else json_text(value))]
    return _shown(value, _captured_blocks(captured) if value is None else _blocks(value, _plain_text))


def variable_content(value: Any) -> list[UserContent]:
    """As `to_content`, for a variable that a person names in a prompt: what has no better form than JSON stands as
    Python writes it, `None` as well."""
    return _shown(value, _blocks(value, python_text))


def _shown(value: Any, found: Iterator[UserContent]) -> list[UserContent]:
    try:
        blocks = list(found)
    except Exception as error:  # an object whose own methods fail
        blocks = [
            TextContent(f"{safe_text(value)}\n(It could not be shown otherwise: {type(error).__name__}: {error})")
        ]
    return _limited(_joined(blocks))


def _blocks(value: Any, plain: Callable[[Any], str]) -> Iterator[UserContent]:
    """`plain` writes what is neither text, image nor rich."""
    if isinstance(value, TextContent | ImageContent):
        yield value
    elif isinstance(value, ToolResult):
        yield from to_tool_result(value).content
    elif isinstance(value, str):
        yield TextContent(str(value))
    elif _is_rich(value):
        yield from _rich_blocks(value)
    elif isinstance(value, Mapping) and any(map(_is_rich_item, value.values())):
        for key, item in value.items():
            yield TextContent(f"{safe_text(key)}:")
            yield from _blocks(item, plain)
    elif is_listed(value) and any(map(_is_rich_item, value)):
        for item in value:
            yield from _blocks(item, plain)
    else:
        yield TextContent(plain(value))


def _captured_blocks(captured: Captured | None) -> Iterator[UserContent]:
    text = captured.text if captured is not None else ""
    if text.strip():
        yield TextContent(text)
    displays = captured.displays if captured is not None else []
    for shown in displays:
        yield from _display_blocks(shown)
    if not text.strip() and not displays:
        yield TextContent(NOTHING)


def _display_blocks(shown: Any) -> Iterator[UserContent]:
    return mimebundle_blocks(shown) if isinstance(shown, dict) else _blocks(shown, _plain_text)


def _displayed(captured: Captured | None, value: Any) -> Sequence[UserContent]:
    """What was displayed besides `value`; a figure that is (in) the value is shown as that. Never raises."""
    if value is None or captured is None or not captured.displays:
        return ()
    items = [value, *(value.values() if isinstance(value, Mapping) else value if is_listed(value) else ())]
    own = {id(figure) for item in items if (figure := matplotlib_figure(item)) is not None}
    blocks: list[UserContent] = []
    for shown in captured.displays:
        if id(shown) not in own:
            try:
                blocks += _display_blocks(shown)
            except Exception as error:
                blocks.append(TextContent(f"[what was displayed cannot be shown: {type(error).__name__}: {error}]"))
    return _limited(_joined(blocks))


def _plain_text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_text(bytes(value))
    form = json_form(value)  # a text for a date, a path, a Decimal
    return form if isinstance(form, str) else json_text(form)


# ---- rich objects ---------------------------------------------------------------------------------


def _is_rich(value: Any, inside: bool = False) -> bool:
    """Whether `value` has a better form than JSON; `inside` a list or dict, a short array is best as JSON."""
    if value is None or isinstance(value, str | int | float | type):
        return False
    if isinstance(value, TextContent | ImageContent | ToolResult) or is_picture(value):
        return True
    if is_table(value):
        return not inside or is_table(value, longer_than=_SHORT_ARRAY)
    return any(_own(value, name) is not None for name in (*_REPRS, "_repr_mimebundle_"))


def _is_rich_item(value: Any) -> bool:
    return _is_rich(value, inside=True)


def _rich_blocks(value: Any) -> Iterator[UserContent]:
    try:
        image = picture(value)
    except NoPicture as error:
        yield TextContent(f"[{error}]")
        return
    if image is not None:
        yield image
        return
    if (text := table_text(value)) is not None:
        yield TextContent(text)
        return
    bundle = {}
    for name, kind in zip(_REPRS, _KINDS, strict=True):
        data = _call(value, name)
        if data is not None:
            bundle[kind] = data
    if not bundle and (data := _call(value, "_repr_mimebundle_")) is not None:
        bundle = dict(data)
    text = safe_text(value)
    if not _DEFAULT_REPR.fullmatch(text):
        bundle["text/plain"] = text
    yield from mimebundle_blocks(bundle) if bundle else [TextContent(text)]


_KINDS = ("image/png", "image/jpeg", "text/markdown", "text/html", "image/svg+xml", "text/latex")


def mimebundle_blocks(bundle: Mapping[str, Any]) -> Iterator[UserContent]:
    """The best of a mimebundle for a model: its image, else Markdown, plain text, LaTeX, the text of its HTML.

    Plain text that is only a default `repr` comes last. Image data is bytes or base64 text.
    """
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        if bundle.get(kind):
            yield _image(bundle[kind], kind)
            return
    plain = str(bundle.get("text/plain", ""))
    informative = plain and not _DEFAULT_REPR.fullmatch(plain)
    for kind in ("text/markdown", "text/plain", "text/latex", "text/html", "application/json", "image/svg+xml"):
        data = bundle.get(kind)
        if data and (kind != "text/plain" or informative):
            yield TextContent(_text_of(kind, data))
            return
    yield TextContent(plain or f"[{', '.join(bundle) or 'nothing'}]")


def _text_of(kind: str, data: Any) -> str:
    if kind == "text/html":
        return html_text(str(data))
    return json_text(data) if kind == "application/json" else str(data)


def _image(data: Any, kind: str) -> ImageContent:
    if isinstance(data, bytes):
        return ImageContent(base64.b64encode(data).decode("ascii"), image_type(data) or kind)
    return ImageContent("".join(str(data).split()), kind)


def _own(value: Any, name: str) -> Any:
    """A display method of the object's class; an instance that answers to every name has none."""
    return getattr(type(value), name, None)


def _call(value: Any, name: str) -> Any:
    if _own(value, name) is None:
        return None
    try:
        data = getattr(value, name)()
    except Exception:
        return None
    return data[0] if isinstance(data, tuple) and data else data


class _HtmlText(HTMLParser):
    _BREAKS = frozenset({"br", "p", "div", "tr", "li", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "pre"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")
        if tag in self._BREAKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._BREAKS:
            self.parts.append("\n")
        self.hidden = max(self.hidden - (tag in ("script", "style")), 0)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


def html_text(html: str) -> str:
    """The text of an HTML fragment, without scripts and styles."""
    parser = _HtmlText()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split(" ")).strip() for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)


# ---- limits ---------------------------------------------------------------------------------------


def _joined(blocks: list[UserContent]) -> list[UserContent]:
    joined: list[UserContent] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if isinstance(block, TextContent) and isinstance(last, TextContent):
            joined[-1] = TextContent(f"{last.text}\n\n{block.text}")
        else:
            joined.append(block)
    return joined


def _limited(blocks: list[UserContent]) -> list[UserContent]:
    images = [block for block in blocks if isinstance(block, ImageContent)]
    if len(images) > MAX_IMAGES:
        dropped = {id(image) for image in images[MAX_IMAGES:]}
        note = TextContent(f"[... {len(dropped)} of {len(images)} images left out ...]")
        blocks = [*(block for block in blocks if id(block) not in dropped), note]
    texts = [block for block in blocks if isinstance(block, TextContent)]
    size = sum(utf8_size(block.text) for block in texts)
    lines = sum(block.text.count("\n") + 1 for block in texts)
    if size <= MAX_BYTES and lines <= MAX_LINES:
        return blocks
    share = min(MAX_BYTES / max(size, 1), MAX_LINES / max(lines, 1)) if len(texts) > 1 else 1.0
    return [
        replace(block, text=_cut_share(block.text, share, len(texts))) if isinstance(block, TextContent) else block
        for block in blocks
    ]


def _cut_share(text: str, share: float, count: int) -> str:
    """Each of several texts keeps its share of the limits; a short one stays whole."""
    if count == 1:
        return cut_middle(text)
    size, lines = utf8_size(text), text.count("\n") + 1
    return cut_middle(text, max(int(lines * share), MAX_LINES // count), max(int(size * share), MAX_BYTES // count))
