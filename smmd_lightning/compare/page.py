"""The report of a comparison as a page: the same document, header, contents and sections as the page about a run.

One real example::

    comparison_page(report.blocks(), report.pictures)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from smmd_lightning.compare.blocks import Block, Heading, Text, html
from smmd_lightning.report.document import document
from smmd_lightning.report.templates import render


def comparison_page(blocks: Sequence[Block], pictures: Mapping[str, bytes]) -> str:
    """Returns a page that needs no other file.

    Args:
        blocks: The report: its title, one line that sums it up, how it was done, then a part below each heading.
        pictures: Contents of the files that the blocks name.

    Raises:
        ValueError: The report does not begin with a title and a line of text.
    """
    match blocks:
        case [Heading(title, 1), Text(summary), *rest]:
            parts: list[tuple[str, list[Block]]] = [("Method", [])]
        case _:
            raise ValueError(f"A report begins with a title and a line of text, got {list(blocks[:2])}.")
    for block in rest:
        if isinstance(block, Heading) and block.level == 2:
            parts.append((block.text, []))
        else:
            parts[-1][1].append(block)
    sections = [
        {"key": f"part-{number}", "title": name, "kind": "", "content": Markup(html(below, pictures))}
        for number, (name, below) in enumerate(parts)
        if below
    ]
    return document(title, render("page.html", name=title, summary=summary, sections=sections))
