"""A figure as SVG that can stand in a page: no styles of its own, no ids that two pictures share, fewer bytes."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

from stormctl.report.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE_BLOCK = re.compile(r"<style.*?</style>", re.DOTALL)
_HEAD = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_ID = re.compile(r'\sid="([^"]+)"')
_USED = re.compile(r'(?:xlink:)?href="#([^"]+)"|url\(#([^)]+)\)')
_ROOT = re.compile(r"<svg[^>]*>")
_LONG = re.compile(r"(?<![\w#.-])(-?\d+\.\d{3,})(?![\w.])")
_FONT = re.compile(r"(?:(\w+) )?(?:(\d+) )?([\d.]+)px (.+)")
_VIEW = re.compile(r'viewBox="([^"]+)"')
_BASE64 = re.compile(r'(href="data:[^"]*")')


@styled
def inline_svg(made: Figure, name: str, title: str, text_alternative: str) -> str:
    """The figure as an ``<svg>`` element for a page.

    Its style attributes become presentation attributes, so that the page's policy need not allow inline styles; its
    ids begin with ``name``, and those that nothing refers to are gone. A screen reader takes it for one image, and
    reads its title and the text alternative.
    """
    sink = io.StringIO()
    made.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    text = _HEAD.sub("", sink.getvalue(), count=1)
    for part in (_STYLE_BLOCK, _METADATA, _COMMENT):
        text = part.sub("", text)
    text = _STYLE.sub(lambda found: _attributes(found[1]), text)
    used = {one or two for one, two in _USED.findall(text)}
    text = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _USED.sub(lambda found: f'href="#{name}-{found[1]}"' if found[1] else f"url(#{name}-{found[2]})", text)
    text = "".join(
        part if index % 2 else _LONG.sub(lambda found: f"{float(found[1]):.2f}".rstrip("0").rstrip("."), part)
        for index, part in enumerate(_BASE64.split(text))
    )
    view = _VIEW.search(text)
    root = (
        f'<svg viewBox="{view[1] if view else "0 0 576 432"}" role="img" focusable="false" stroke-linejoin="round" '
        f'stroke-linecap="butt" aria-labelledby="{name}-is {name}-says"><title id="{name}-is">{escape(title)}</title>'
        f'<desc id="{name}-says">{escape(text_alternative)}</desc>'
    )
    text = _ROOT.sub(lambda _: root, text, count=1)
    return re.sub(r"\n\s*", "\n", text).replace("xlink:href", "href").strip()


def _attributes(style: str) -> str:
    """``fill: red; font: 11px 'X'`` as attributes."""
    found: dict[str, str] = {}
    for part in style.split(";"):
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if name == "font":
            font = _FONT.fullmatch(value)
            if font is not None:
                found["font-size"], found["font-family"] = font[3], font[4]
                if font[1] or font[2]:
                    found["font-weight"] = font[1] or font[2]
        elif name and value:
            found[name] = value
    return "".join(f' {name}="{value}"' for name, value in found.items())
