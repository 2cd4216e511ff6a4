"""The HTML document around a page: style, policy, embedded data and script.

Unusual: the content security policy forbids every request and every script but the document's own, by hash; so markup
that a model wrote could not even run if it slipped through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from smmd_lightning.checkpoints.atomic import write_text


def document(title: str, body: str, data: Any = None) -> str:
    """Returns a self-contained document.

    Args:
        title: Title, plain text.
        body: HTML of the page.
        data: Rows for the table of answers, with its script; None for a page without one.
    """
    assets = files("smmd_lightning.report")
    style = assets.joinpath("page.css").read_text(encoding="utf-8")
    scripts, policy = "", "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    if data is not None:
        script = assets.joinpath("page.js").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        scripts = f'<script type="application/json" id="answers">{embedded(data)}</script><script>{script}</script>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{body}</main>{scripts}</body></html>\n"
    )


def embedded(data: Any) -> str:
    r"""JSON that can stand inside a script element, whatever text it holds.

    >>> embedded(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for sign in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def section(title: str, content: str, kind: str = "plots") -> str:
    """Returns a section with its heading; nothing for no content."""
    return f'<section><h2>{escape(title)}</h2><div class="{kind}">{content}</div></section>' if content else ""


def write_document(file: str | Path, text: str) -> Path:
    """Writes a document, whole or not at all."""
    write_text(file, text)
    return Path(file)
