"""The HTML document around a page: style, policy, embedded data and script.

Unusual: the content security policy forbids every request and every script but the document's own, by hash; so markup
that a model wrote could not even run if it slipped through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from smmd_lightning.checkpoints.atomic import write_text
from smmd_lightning.report.templates import render


def document(title: str, body: str, data: Any = None) -> str:
    """Returns a self-contained document.

    Args:
        title: Title, plain text.
        body: HTML of the page.
        data: Rows for the table of answers, with its script; None for a page without one.
    """
    assets = files("smmd_lightning.report")
    style = assets.joinpath("page.css").read_text(encoding="utf-8")
    script, policy = "", "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    if data is not None:
        script = assets.joinpath("page.js").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    page = render(
        "document.html",
        title=title,
        body=Markup(body),
        style=Markup(style),
        policy=Markup(policy),
        script=Markup(script),
        data=Markup(embedded(data)),
    )
    return str(page)  # plain text: what is put into it from here on is not escaped


def embedded(data: Any) -> str:
    r"""JSON that can stand inside a script element, whatever text it holds; numbers that are not finite become null.

    >>> embedded(["</script>", float("nan")])
    '["\\u003c/script\\u003e",null]'
    """
    text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for sign in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def section(title: str, content: str, kind: str = "plots") -> str:
    """Returns a section with its heading; nothing for no content."""
    return f'<section><h2>{escape(title)}</h2><div class="{kind}">{content}</div></section>' if content else ""


def write_document(file: str | Path, text: str) -> Path:
    """Writes a document, whole or not at all."""
    write_text(file, text)
    return Path(file)
