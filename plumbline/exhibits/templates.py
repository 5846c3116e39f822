"""Words as templates (jinja2): sentences, plain text, Markdown and HTML; a name without a value is an error in each."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal

from plumbline.exhibits.table import CODE, as_markdown, in_prose
from plumbline.importing import jinja2, markupsafe
from plumbline.words import count

Form = Literal["sentences", "text", "markdown", "html"]


@functools.cache
def environment(form: Form = "text") -> jinja2.Environment:
    """Return the environment of templates of a form: how white space is read, and what is escaped.

    Markdown and HTML escape what a template shows, unless the template calls it safe. Lines of sentences are joined
    by spaces (`blocks`), so these templates keep all line breaks.
    """
    environment = jinja2.Environment(
        autoescape=form == "html",
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(source),
        trim_blocks=form != "sentences",
        lstrip_blocks=form != "sentences",
        finalize=(lambda value: value if isinstance(value, markupsafe.Markup) else as_markdown(str(value)))
        if form == "markdown"
        else None,
    )
    environment.filters |= {
        "count": lambda things, *noun: count(things if isinstance(things, int | float) else len(things), *noun),
        **{"verb": verb, "listed": listed, "coded": _coded},
    }
    return environment


def blocks(name: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the blocks of a template of sentences by name, in its order: each a paragraph, empty if nothing holds."""
    template = environment("sentences").get_template(name)
    context = template.new_context(dict(facts))
    return {block: " ".join("".join(render(context)).split()) for block, render in template.blocks.items()}


def text(name: str, facts: Mapping[str, Any]) -> str:
    """Fill a template of plain text."""
    return environment().get_template(name).render(facts).rstrip()


def html(name: str, facts: Mapping[str, Any]) -> str:
    """Fill a template of HTML."""
    return environment("html").get_template(name).render(facts)


def markdown(name: str, facts: Mapping[str, Any]) -> str:
    """Fill a Markdown template; there is at most one blank line between lines."""
    filled = environment("markdown").get_template(name).render(facts)
    return re.sub(r"\n{3,}", "\n\n", filled).rstrip() + "\n"


def listed(things: Iterable[str]) -> str:
    """Join names as `a, b and c`."""
    names = list(things)
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def verb(number: int, thing: str, single: str, several: str) -> str:
    """Return a number with its noun and verb: `1 rater was`, `2 raters were`."""
    return f"{count(number, thing)} {single if number == 1 else several}"


def _coded(text: str) -> markupsafe.Markup:
    """Return a text as escaped HTML: what stands between backticks is code, and numbers elsewhere have minus signs."""
    parts = CODE.split(text)
    return markupsafe.Markup("").join(
        markupsafe.Markup("<code>{}</code>").format(part) if number % 2 else markupsafe.escape(in_prose(part))
        for number, part in enumerate(parts)
    )


def source(name: str) -> str:
    """Return a template's source: `package/folder/file`."""
    package, _, path = name.partition("/")
    return files(package).joinpath(path).read_text(encoding="utf-8")
