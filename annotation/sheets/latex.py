"""The methods section as LaTeX, with its citations as BibTeX."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files

from plumbline.exhibits.table import as_latex
from plumbline.reading import parse_yaml

_ABOVE = "% needs \\usepackage{natbib}, and methods.bib as a bibliography"


@functools.cache
def citations() -> Mapping[str, Mapping[str, str]]:
    """Return works by key: their name in the methods section (`phrase`), LaTeX citation (`cited`), and BibTeX entry."""
    content: dict[str, dict[str, str]] = parse_yaml(
        files("annotation.sheets").joinpath("citations.yaml").read_text(encoding="utf-8")
    )
    return content


def methods_latex(paragraphs: Sequence[str], above: str = "") -> tuple[str, str]:
    r"""Return the section and its bibliography: works are cited where a paragraph names them, and listed if any does.

    Args:
        paragraphs: plain text.
        above: a note before all else, such as that ratings are simulated; none if empty.

    Returns:
        (LaTeX, BibTeX). Everything but the citations is escaped as text, including a study's own names.

    >>> methods_latex(["Agreement is AC2 (Gwet 2008, Br. J. Math. Stat. Psychol. 61, 29-48)."])[0].splitlines()[-1]
    'Agreement is AC2 \\citep{gwet2008}.'
    """
    lines = [_ABOVE, "\\section*{Methods}"]
    lines += [f"\\textbf{{{as_latex(above)}}}"] if above else []
    used: dict[str, None] = {}
    for paragraph in paragraphs:
        text = as_latex(paragraph)
        for key, work in citations().items():
            phrase = as_latex(work["phrase"])
            if phrase in text:
                used[key] = None
                alone = "" if "cited" in work else f"\\citep{{{key}}}"
                text = text.replace(f"({phrase})", alone) if alone else text
                text = text.replace(phrase, work.get("cited", f"\\citealp{{{key}}}"))
        lines.append(text)
    return "\n\n".join(lines) + "\n", "".join(citations()[key]["entry"] for key in used)
