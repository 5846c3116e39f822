"""Formulas of the method pages as MathML, which browsers show by themselves: no script, no font.

The documents have them as GitHub reads them: a block ```math, and $`x`$ within a line. What the converter does not know
it leaves as it stands; here that ends the build, so that no formula is shown half.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert

_INLINE = re.compile(r"\$`([^`]+)`\$")
_CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
_LATEX = frozenset("\\{}#_$&%")  # none of it is left in a formula that was understood


def with_formulas(markdown: str) -> str:
    """A page's text with the formulas within its lines as MathML; blocks of code are left as they are."""
    return "".join(
        part if number % 2 else _INLINE.sub(_inline, part) for number, part in enumerate(_CODE.split(markdown))
    )


def block(source: str, *_: object, **__: object) -> str:
    """Formulas that stand under each other, one a line (SuperFences asks for this)."""
    lines = (f"<div>{mathml(line, display='block')}</div>" for line in source.splitlines() if line.strip())
    return f'<div class="formula" tabindex="0">{"".join(lines)}</div>'


def mathml(latex: str, *, display: str = "inline") -> str:
    """One formula. Raises ValueError for what is no LaTeX, or none that the converter knows."""
    try:
        made = convert(latex, display=display)
    except Exception as error:  # the converter's own, which have no common base
        raise ValueError(f"formula {latex!r} is not understood ({type(error).__name__})") from error
    for part in ET.fromstring(made).iter():  # noqa: S314 (our own documents)
        tag, said = part.tag.rpartition("}")[2], part.text or ""
        whole = len(part) == _PARTS.get(tag, len(part)) and (tag != "mi" or said)
        if not whole or _LATEX & set(said):
            raise ValueError(f"formula {latex!r} is not understood at {said or tag!r}")
    return made


def _inline(found: re.Match[str]) -> str:
    return f"<span>{mathml(found[1])}</span>"  # Markdown takes a line that begins with <math> for a block
