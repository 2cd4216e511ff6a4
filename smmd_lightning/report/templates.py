"""The templates of a page: Jinja files in the folder `templates`, with everything escaped that is not marked as HTML.

One real example::

    render("tiles.html", tiles=[Tile("Exact match", "78 %", "75 % to 81 %")])
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("smmd_lightning.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> Markup:
    """Returns a template's HTML.

    Args:
        template: File name of the template.
        **values: What it shows. A text is escaped; only `Markup` is taken as HTML.

    Raises:
        jinja2.TemplateError: The template needs a value that was not given.
    """
    return Markup(_environment().get_template(template).render(**values))
