"""``report.html``: a storm as one page that needs nothing beside it, neither network nor another file."""

from stormctl.report.html.page import html_text, write_html

__all__ = ["html_text", "write_html"]
