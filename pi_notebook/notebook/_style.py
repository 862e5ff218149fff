"""One visual system for the live card and the static transcript.

Each part has a name and one list of declarations. HTML is written with names (`part`), for which the live card
carries a stylesheet; the transcript gets the declarations themselves (`inlined`), because front ends drop `<style>`
from notebooks that are not trusted. So these declarations hold what survives there: inherited text colours, mid-tone
colours that read on white and on black, no `var()`.
"""

from __future__ import annotations

import re
from functools import lru_cache

BLUE, GREEN, AMBER, RED, GREY = "#3178d6", "#1f8f4e", "#a8730f", "#dc4437", "#7d7d7d"
_LINE = "rgba(128,128,128,0.28)"
_FILL = "rgba(128,128,128,0.08)"
_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:0.92em"

PARTS = {
    "card": f"border:1px solid {_LINE};border-radius:6px;overflow:hidden;font-size:13px;line-height:1.5;margin:2px 0",
    "head": "display:flex;flex-wrap:wrap;align-items:center;gap:2px 14px;padding:5px 12px",
    "bar": f"background-color:{_FILL};border-bottom:1px solid {_LINE}",
    "model": "font-weight:600;overflow-wrap:anywhere",
    "fact": "opacity:0.7;white-space:nowrap",
    "push": "margin-left:auto;white-space:nowrap;font-weight:600",
    "body": "padding:6px 12px 8px 12px",
    "text": "margin:2px 0;overflow-wrap:anywhere",
    "muted": "opacity:0.7",
    "small": "font-size:0.92em",
    "mono": _MONO,
    "blue": f"color:{BLUE}",
    "green": f"color:{GREEN}",
    "amber": f"color:{AMBER}",
    "red": f"color:{RED}",
    "grey": f"color:{GREY}",
    # Rows
    "row": f"background-color:{_FILL};border-left:3px solid {GREY};border-radius:3px;margin:4px 0;padding:3px 10px",
    "edge-blue": f"border-left-color:{BLUE}",
    "edge-green": f"border-left-color:{GREEN}",
    "edge-amber": f"border-left-color:{AMBER}",
    "edge-red": f"border-left-color:{RED}",
    "line": "overflow-wrap:anywhere",
    "symbol": "display:inline-block;width:16px",
    "label": "font-weight:600;margin-right:6px",
    "inline": f"{_MONO};opacity:0.75;margin-right:6px",
    "value": f"{_MONO}",
    "state": "float:right;line-height:1.65;margin-left:12px;white-space:nowrap;font-size:0.92em",
    "fold": "margin:2px 0",
    "summary": "cursor:pointer;opacity:0.7;font-size:0.92em",
    "pre": f"{_MONO};white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4;margin:2px 0;padding:0;"
    "background-color:transparent;border:0;color:inherit",
    "scroll": "max-height:340px;overflow:auto",
    "key": f"{_MONO};opacity:0.7;min-width:70px;line-height:1.4;margin:2px 0;overflow-wrap:anywhere",
    "argument": "flex:1 1 240px;min-width:0",
    "image": "max-width:100%;height:auto;margin:4px 0",
    "track": f"background-color:{_LINE};border-radius:3px;height:5px;margin:5px 0 3px 0;overflow:hidden",
    "fill": f"background-color:{BLUE};border-radius:3px;height:5px",
    "note": "margin:4px 0;padding:1px 10px;font-size:0.92em;overflow-wrap:anywhere;border-left:3px solid",
    "said": f"margin:4px 0;padding:1px 10px;border-left:3px solid {BLUE};overflow-wrap:anywhere",
    "mark": f"{_MONO};color:{RED};border:1px solid {RED};border-radius:3px;padding:0 2px;font-size:0.8em",
    "arg": "display:flex;flex-wrap:wrap;gap:0 10px;margin:1px 0",
    "aside": "padding:4px 12px 0 12px",
    # Markdown
    "md-p": "margin:4px 0",
    "md-h": "font-size:1.1em;font-weight:600;margin:10px 0 4px 0",
    "md-list": "margin:4px 0;padding-left:24px",
    "md-quote": f"margin:4px 0;padding:0 0 0 10px;border-left:3px solid {_LINE};opacity:0.85",
    "md-code": f"{_MONO};background-color:{_FILL};border-radius:3px;padding:0 3px;color:inherit",
    "md-pre": f"{_MONO};background-color:{_FILL};border:0;border-radius:4px;line-height:1.4;margin:6px 0;"
    "padding:6px 10px;overflow-x:auto;white-space:pre;color:inherit",
    "md-part": "margin-top:0;margin-bottom:0;border-radius:0",
    "md-wide": "overflow-x:auto;margin:6px 0",
    "md-table": "border-collapse:collapse;border:0;margin:0",
    "md-th": f"border:0;border-bottom:1px solid {GREY};padding:2px 10px;font-weight:600;text-align:left",
    "md-td": f"border:0;border-bottom:1px solid {_LINE};padding:2px 10px;text-align:left",
    "md-tr": "background-color:transparent",
    "md-left": "text-align:left",
    "md-right": "text-align:right",
    "md-center": "text-align:center",
    "md-rule": f"border:0;border-top:1px solid {_LINE};margin:8px 0",
    "md-link": f"color:{BLUE}",
    # Code
    "k": "color:#9a5fe0",
    "s": f"color:{GREEN}",
    "n": "color:#1a8a94",
    "f": f"color:{BLUE}",
    "c": f"color:{GREY};font-style:italic",
    "in": f"color:{GREEN}",
    "out": f"color:{RED}",
    "at": "color:#9a5fe0",
    **{f"w{percent}": f"width:{percent}%" for percent in range(0, 101, 2)},
}


def part(*names: str) -> str:
    """The attribute that marks an element as a part, with a space before it."""
    return ' class="' + " ".join(f"pi-{name}" for name in names) + '"'


_TAG = re.compile(r"<[a-z][a-z0-9]*(?: [a-z-]+=\"[^\"]*\")+>")
_PART = re.compile(r' class="(pi-[a-z0-9 -]*)"')


def inlined(markup: str) -> str:
    """`markup` with its parts' names replaced by their declarations, for where no stylesheet goes along.

    Only inside tags: text may hold quotation marks, but no `<`, and an attribute's value holds none of the former.
    """
    return _TAG.sub(lambda tag: _PART.sub(lambda found: _declarations(found[1]), tag[0]), markup)


@lru_cache(maxsize=256)
def _declarations(names: str) -> str:
    return ' style="' + ";".join(PARTS[name.removeprefix("pi-")] for name in names.split(" ")) + '"'


# Parts that an element of rendered Markdown has anyway
_ELEMENTS = {
    "md-p": "p",
    "md-h": "h1,h2,h3,h4,h5,h6",
    "md-list": "ul,ol",
    "md-quote": "blockquote",
    "md-code": "code",
    "md-pre": "pre",
    "md-table": "table",
    "md-tr": "tr",
    "md-th": "th",
    "md-td": "td",
    "md-rule": "hr",
    "md-link": "a",
}
_FOR_MATH = re.compile(r'<span class="tex2jax_[a-z_ 2]*">([^<]*)</span>')
_COLOUR = re.compile(r'<span class="pi-([a-z]+)">')
_IMPLIED = re.compile(r"(?:pi-(?:" + "|".join([*_ELEMENTS, "md-left"]) + r")(?: |(?=\")))")


def lean(markup: str) -> str:
    """Rendered Markdown without the names that follow from its elements, for a stylesheet that knows it as `text`, and
    without marks for typesetting, which widgets do not get."""
    markup = _FOR_MATH.sub(r"\1", markup)
    # What spans are left colour code, with a good part of all bytes
    markup = _COLOUR.sub(r"<i class=pi-\1>", markup).replace("</span>", "</i>")
    return _TAG.sub(lambda tag: _IMPLIED.sub("", tag[0]).replace(' class=""', ""), markup)


# Only the live card is sure to be drawn by a front end that knows `--jp-*`.
_LIVE = """
.pi-card.widget-box{overflow:hidden}
.jp-OutputArea-output .pi-card.widget-box{margin-right:20px}
.pi-card .widget-html,.pi-card .widget-html-content{margin:0;padding:0;line-height:1.5;font-size:13px;height:auto;
 overflow:visible;width:100%;color:var(--jp-content-font-color1,inherit);
 font-family:var(--jp-content-font-family,inherit)}
.pi-card .widget-html{min-height:0;flex:0 0 auto}
.pi-card .widget-box{margin:0;overflow:visible}
.pi-card{border-color:var(--jp-border-color2,rgba(128,128,128,.28));background:var(--jp-layout-color1,transparent)}
.pi-bar{border-bottom-color:var(--jp-border-color2,rgba(128,128,128,.28))}
.pi-card .pi-headbox{flex-flow:row nowrap;align-items:center;width:100%}
.pi-card .pi-headbox>.widget-html{flex:1 1 auto;width:auto;min-width:0}
.pi-card .pi-spoken,.pi-card .pi-named>.widget-label{position:absolute;width:1px;height:1px;margin:0;padding:0;
 overflow:hidden;clip:rect(0 0 0 0);white-space:nowrap}
.pi-card button.jupyter-button{width:auto;height:26px;line-height:24px;padding:0 12px;margin:2px 8px 2px 0;
 border-radius:4px;font-size:12px;flex:0 0 auto;background:var(--jp-layout-color1,transparent);
 border:1px solid var(--jp-border-color1,rgba(128,128,128,.5));color:var(--jp-ui-font-color1,inherit);
 box-shadow:none}
.pi-card button.jupyter-button:hover:enabled{background:var(--jp-layout-color3,rgba(128,128,128,.16))}
.pi-card button.jupyter-button:focus-visible,.pi-card input:focus-visible,.pi-card textarea:focus-visible,
.pi-card summary:focus-visible{outline:2px solid var(--jp-brand-color1,#3178d6);outline-offset:1px}
.pi-card button.pi-yes{background:#1f7a45;border-color:#1f7a45;color:#fff}
.pi-card button.pi-yes:hover:enabled{background:#186338}
.pi-card button.pi-no{border-color:#dc4437;color:#dc4437}
.pi-card button.pi-stop{margin:2px 10px 2px 0}
.pi-card .pi-ask{border:1px solid #a8730f;border-left-width:3px;border-radius:3px;margin:6px 12px;padding:4px 10px 6px;
 width:auto;align-self:stretch}
.pi-card .pi-askrow{flex-flow:row wrap;align-items:center}
.pi-card .pi-askrow>.widget-text,.pi-card .pi-steer>.widget-text{flex:1 1 180px;width:auto;min-width:120px;
 margin:2px 8px 2px 0}
.pi-card .pi-steer{flex-flow:row nowrap;padding:2px 4px 6px 12px;width:100%}
.pi-card .widget-text input{height:26px;font-size:12px;font-family:inherit}
.pi-card .pi-field{width:100%;margin:2px 0}
.pi-card .pi-field .widget-label{width:auto;min-width:90px;max-width:200px}
.pi-card .pi-field textarea{font-family:var(--jp-code-font-family,monospace);font-size:12px}
.pi-card .pi-hint{margin:-2px 0 4px 98px}
.pi-card .pi-rowbox{margin:2px 0;padding:3px 10px}
.pi-card .pi-text.widget-box{margin:2px 0}
.pi-card .pi-askbox{max-height:340px;overflow:auto;margin:4px 0;padding:2px 8px;border-radius:3px;
 background:rgba(128,128,128,.08)}
.pi-card .pi-body:has(>.pi-past>.widget-html .pi-unfold:not([open])) .pi-earlier{display:none}
.pi-card .pi-past{flex-flow:row wrap;align-items:center;column-gap:8px}
.pi-card .pi-past>.widget-html:not(.pi-earlier){width:auto}
.pi-card details>summary{list-style-position:inside}
.pi-card .pi-thought{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;display:block}
.pi-card .pi-fill{transition:width .12s linear}
.pi-card .pi-body{width:100%}
.pi-card .pi-rowbox:has(.pi-state.pi-blue){border-left-color:#3178d6}
.pi-card .pi-rowbox:has(.pi-state.pi-green){border-left-color:#1f8f4e}
.pi-card .pi-rowbox:has(.pi-state.pi-amber){border-left-color:#a8730f}
.pi-card .pi-rowbox:has(.pi-state.pi-red){border-left-color:#dc4437}
@media (prefers-reduced-motion:reduce){.pi-card .pi-fill{transition:none}}
"""


def stylesheet() -> str:
    """The `<style>` element of the live card."""
    parts = "".join(f".pi-{name}{{{rules}}}" for name, rules in PARTS.items())
    # Twice the class: a front end's own rules for tables, code and headings in outputs must not win.
    markdown = "".join(
        f".pi-card .pi-{name}.pi-{name}{{{rules}}}" for name, rules in PARTS.items() if name.startswith("md-")
    )
    elements = "".join(
        ",".join(f".pi-card .pi-text.pi-text {element}" for element in _ELEMENTS[name].split(","))
        + f"{{{PARTS[name]}}}"
        for name in _ELEMENTS
    )
    # Alignment and the seams of a cut code block come after what they change
    last = "".join(
        f".pi-card .pi-text.pi-text .pi-{name}{{{PARTS[name]}}}"
        for name in PARTS
        if name.startswith("md-") and name not in _ELEMENTS
    )
    parts += ".pi-text i{font-style:normal}.pi-text i.pi-c{font-style:italic}"
    return f"<style>{parts}{markdown}{elements}{last}{_LIVE}</style>"
