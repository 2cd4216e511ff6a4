"""What a report is made of, written as Markdown and as HTML: headings, text, tables, pictures.

One real example::

    blocks = [Heading("Results"), Text("Two seeds."), TextTable(("loss", "mean"), [("CE", "0.61")])]
    markdown(blocks); html(blocks, pictures={})
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of plain texts."""

    items: Sequence[str]


@dataclass(frozen=True)
class Link:
    """A cell that leads to a file, relative to the report."""

    text: str
    target: str


@dataclass(frozen=True)
class TextTable:
    """A table of plain texts and links."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Link]]


@dataclass(frozen=True)
class Picture:
    """A PNG file, relative to the report."""

    file: str
    title: str


Block = Heading | Text | Bullets | TextTable | Picture


def markdown(blocks: Sequence[Block]) -> str:
    """Writes Markdown that refers to files beside it."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f"{'#' * level} {_plain(text)}")
            case Text(text):
                parts.append(_plain(text))
            case Bullets(items):
                parts.append("\n".join(f"- {_plain(item)}" for item in items))
            case TextTable(header, rows):
                lines = [header, ["---"] * len(header), *rows]
                parts.append("\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines))
            case Picture(file, title):
                parts.append(f"![{_plain(title)}]({file})")
    return "\n\n".join(parts) + "\n"


def html(blocks: Sequence[Block], pictures: Mapping[str, bytes]) -> str:
    """Writes the body of a page that needs no other file.

    Args:
        blocks: The report.
        pictures: Contents of the files that `Picture` names.
    """
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f"<h{level}>{escape(text)}</h{level}>")
            case Text(text):
                parts.append(f"<p>{escape(text)}</p>")
            case Bullets(items):
                parts.append("<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>")
            case TextTable(header, rows):
                head = "".join(f"<th>{escape(name)}</th>" for name in header)
                body = "".join(
                    "<tr>" + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
                )
                table = f'<table style="white-space:nowrap"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
                parts.append(f'<div style="overflow-x:auto">{table}</div>')
            case Picture(file, title):
                source = base64.b64encode(pictures[file]).decode()
                # Plots have a white ground of their own, in a dark page as well.
                parts.append(
                    f"<figure><figcaption>{escape(title)}</figcaption>"
                    f'<img style="max-width:100%" alt="{escape(title)}" src="data:image/png;base64,{source}"></figure>'
                )
    return "\n".join(parts)


def _plain(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")


def _cell(cell: str | Link) -> str:
    return f"[{_plain(cell.text)}]({cell.target})" if isinstance(cell, Link) else _plain(cell)


def _html_cell(cell: str | Link) -> str:
    if isinstance(cell, Link):
        return f'<a href="{escape(cell.target, quote=True)}">{escape(cell.text)}</a>'
    return escape(cell)
