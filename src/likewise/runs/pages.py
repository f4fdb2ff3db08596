"""The pages that jobs write: one file each, which loads nothing, for wide and narrow, light and dark screens.

A room's template extends `page.html.j2` and fills its blocks `title` and `body`; `page.css` is the style of all.
"""

from collections.abc import Callable
from importlib.resources import files


def page_of(room: str, template: str, *functions: Callable[..., object], **values: object) -> str:
    """Return a page.

    Args:
        room: Package of the template, such as "likewise.searching.choose".
        template: File of the template.
        functions: Functions that the template calls.
        values: Values of the template; a missing name is an error.
    """
    from jinja2 import DictLoader, Environment, StrictUndefined

    own = files("likewise.runs")
    sources = {
        **{name: own.joinpath(name).read_text(encoding="utf-8") for name in ("page.html.j2", "dots.html.j2")},
        template: files(room).joinpath(template).read_text(encoding="utf-8"),
    }
    environment = Environment(
        loader=DictLoader(sources), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {function.__name__: function for function in functions}
    style = own.joinpath("page.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(style=style, **values)
