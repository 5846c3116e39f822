"""A table of a report: with all its digits for CSV, as printed for people, and as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from generation.page import Table

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~$#])")
# What pandas escapes in cells and heads, for captions, which it does not.
_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)


@dataclass(frozen=True)
class Exhibit:
    """A table: `name` is that of its files, `frame` has all digits, `printed` (words alone) is what people read.

    `notes` say what its numbers lack, and why.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    printed: pd.DataFrame
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """It as it stands on a page, which names the file."""
        return Table(self.printed, f"{self.caption} ({self.name}.csv)")

    def parts(self) -> list[str | Table]:
        """It as it stands on a page, with its notes below."""
        return [self.table(), *(["\n".join(self.notes)] if self.notes else [])]

    def markdown(self) -> str:
        """It as a table of Markdown, notes as a list below. What is text stays text."""
        heads = list(map(str, self.printed.columns))
        lines = [f"**{_markdown(self.caption)}**", "", _line(map(_markdown, heads))]
        lines.append(_line("---:" if numeric else "---" for numeric in self._numeric()))
        lines += [_line(map(_markdown, row)) for row in self.printed.itertuples(index=False)]
        lines += ["", *(f"- {_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """It as a table of LaTeX (package booktabs), notes in its caption. What is text stays text."""
        caption = " ".join([f"{self.caption}.", *self.notes])
        drawn: str = self.printed.to_latex(
            index=False,
            escape=True,
            column_format="".join("r" if numeric else "l" for numeric in self._numeric()),
            caption=(_latex(caption), _latex(self.caption)),
            label=f"tab:{self.name}",
            position="t",
        )
        return f"% needs \\usepackage{{booktabs}}\n{drawn}"

    def _numeric(self) -> list[bool]:
        """Which columns hold numbers: those without a letter in any of their cells."""
        return [not any(map(str.isalpha, "".join(cells))) for _, cells in self.printed.items()]


def reasons(labels: Iterable[str], given: Iterable[str]) -> tuple[str, ...]:
    """A line for each reason with all that it is given for; "all" where that is everything."""
    names = list(labels)
    found: dict[str, list[str]] = {}
    for label, reason in zip(names, given, strict=True):
        found.setdefault(reason, []).append(label)
    return tuple(
        f"{'all' if len(mine) == len(names) > 1 else ', '.join(dict.fromkeys(mine))}: {reason}"
        for reason, mine in found.items()
        if reason
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _latex(text: str) -> str:
    return " ".join(text.split()).translate(_LATEX)
