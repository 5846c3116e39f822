"""A table of a report: with all its digits for CSV, as printed for people, and as Markdown and LaTeX.

CSV files are such as a spreadsheet reads and cannot run. What reports wrote in their folder goes with the next one;
everything else there is the user's and stays.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pandas as pd

from plumbline.errors import DataError
from plumbline.reading import read_json
from plumbline.store import atomic, is_remote, write_json
from plumbline.words import printable, readable

Row = Mapping[Hashable, Any]
Cell = str | Callable[[Row], str]  # a column of the frame as it is, or what is made of a row


def printed(frame: pd.DataFrame, columns: Mapping[str, Cell]) -> pd.DataFrame:
    """What people read of a frame: a cell for each head and row."""
    return pd.DataFrame(
        [
            {head: str(row[cell]) if isinstance(cell, str) else cell(row) for head, cell in columns.items()}
            for row in frame.to_dict(orient="records")
        ]
    )


def cell(name: str, form: Callable[[Any], str]) -> Cell:
    """A column in a form of its own."""
    return lambda row: form(row[name])


_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~$#])")
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
        "<": r"\textless{}",  # in LaTeX's own font (OT1) these three are other signs
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': "''",  # babel makes commands of it
        "[": "{[}",  # after the end of a row, and in a short caption, these would be options
        "]": "{]}",
        "*": "{*}",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "−": "$-$",
        "→": r"$\rightarrow$",
    }
)
_MINUS = re.compile(r"(?<![\w.\-])-(?=\.?\d)")  # the sign of a number
# A cell of a number, or of two ends, with how sure it is.
_NUMBERS = re.compile(r"[-+]?[\d.,]+%?( ± [\d.]+| to [-+]?[\d.,]+%?)?( ?[(\[][-+\d.,% ]+[)\]])*")
_DASHES = re.compile(r"-(?=-)")  # of which LaTeX would make one dash, as in `--study`
# What pdfLaTeX has letters for without more packages; the dashes, quotes and dots are those of typed English.
_LATIN = re.compile("[^\u0000-\u017f‐-—‘’‚“”„†‡•…‰€™]")
_WIDE = 40  # letters of a cell, from which a column breaks its lines
_NOTE = 110  # letters in a line of notes
_MANY = 8  # columns of a long table that need the smallest letters
_PAGE = 40  # lines that stand on one page
MOST_ROWS = 120  # of a table on a page of HTML; its file has all


@dataclass(frozen=True)
class Table:
    """A frame as it is printed: cells are words already, or whole numbers; `caption` says what it shows.

    `notes` say what its numbers lack, and why; the page has those of all tables once.
    """

    frame: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()


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

    def table(self, *, cut: bool = False) -> Table:
        """It as it stands on a page, which names the file; a long one is `cut` to `MOST_ROWS`, and says so."""
        printed, caption = self.printed, self.caption
        if cut and len(printed) > MOST_ROWS:
            caption = f"{caption}; the first {MOST_ROWS} of {len(printed):,} rows, the file has all"
            printed = printed.head(MOST_ROWS)
        return Table(with_minus(printed), f"{caption} ({self.name}.csv)", self.notes)

    def files(self) -> dict[str, bytes]:
        """Its files by name, in `tables/`: CSV with all digits, Markdown, LaTeX."""
        return {
            f"tables/{self.name}.csv": csv_bytes(self.frame),
            f"tables/{self.name}.md": self.markdown().encode(),
            f"tables/{self.name}.tex": self.latex().encode(),
        }

    def markdown(self) -> str:
        """It as a table of Markdown, notes as a list below. What is text stays text."""
        heads = list(map(str, self.printed.columns))
        lines = [f"**{as_markdown(self.caption)}**", "", _line(map(as_markdown, heads))]
        lines.append(_line("---:" if numeric else "---" for numeric in self._numeric()))
        lines += [_line(map(as_markdown, row)) for row in self.printed.itertuples(index=False)]
        lines += ["", *(f"- {as_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """It as a table of LaTeX, notes below. What is text stays text.

        Too wide a table is made smaller (graphicx), too long a one breaks over pages (longtable). A comment on top
        names the packages, and says where letters need another engine than pdfLaTeX.
        """
        long = self._lines() > _PAGE
        table = "\n".join(self._pages() if long else self._float())
        packages = ["array", "booktabs", "longtable" if long else "graphicx"]
        letters = sorted(set(_LATIN.findall(table)))
        says = f"% and XeLaTeX or LuaLaTeX with a font for these letters: {''.join(letters)}\n" if letters else ""
        return f"% needs \\usepackage{{{','.join(packages)}}}\n{says}{table}\n"

    def _float(self) -> list[str]:
        """Lines of LaTeX: a table on one page."""
        fit = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
        begin = ["\\begin{table}[t]", "\\centering", *self._title(), fit, f"\\begin{{tabular}}{{{self._form()}}}"]
        return [
            *begin,
            *self._head(),
            *self._rows(),
            "\\bottomrule",
            "\\end{tabular}%",
            "}",
            *self._below(),
            "\\end{table}",
        ]

    def _pages(self) -> list[str]:
        """Lines of LaTeX: a table over several pages, with its head on each."""
        caption, label = self._title()
        size = "\\footnotesize" if len(self.printed.columns) < _MANY else "\\scriptsize"
        head = [size, "\\setlength{\\tabcolsep}{3pt}", f"\\begin{{longtable}}{{{self._form()}}}", caption]
        head += [rf"{label} \\", *self._head(), "\\endfirsthead", *self._head(), "\\endhead"]
        end = ["\\bottomrule", "\\endlastfoot", *self._rows(), "\\end{longtable}"]
        return ["\\begingroup", *head, *end, *self._below(), "\\endgroup"]

    def _title(self) -> list[str]:
        return [f"\\caption{{{as_latex(self.caption)}}}", f"\\label{{tab:{self.name}}}"]

    def _head(self) -> list[str]:
        return ["\\toprule", _row(self.printed.columns), "\\midrule"]

    def _rows(self) -> list[str]:
        return [_row(cells) for cells in self.printed.itertuples(index=False)]

    def _below(self) -> list[str]:
        """The notes. In the caption they would be too long for LaTeX, which sets it in one line first."""
        text = " ".join(as_latex(_sentence(note)) for note in self.notes)
        return [rf"\par\smallskip{{\footnotesize\raggedright {text}\par}}"] if text else []

    def _form(self) -> str:
        """The columns' kinds: those with a cell too long for one line break their lines."""
        wide = [max(map(len, cells), default=0) > _WIDE for _, cells in self.printed.items()]
        return "".join(map(_column, self._numeric(), wide))

    def _lines(self) -> int:
        """About how many lines it takes, with its notes."""
        rows = sum(
            max((1 + len(cell) // _WIDE for cell in row), default=1) for row in self.printed.itertuples(index=False)
        )
        return rows + len(" ".join(self.notes)) // _NOTE

    def _numeric(self) -> list[bool]:
        """Which columns hold numbers: those without a letter in any of their cells."""
        return [not any(map(str.isalpha, "".join(cells))) for _, cells in self.printed.items()]


def reasons(labels: Iterable[str], whys: Iterable[str]) -> tuple[str, ...]:
    """A line for each reason with all that it is given for; "all" where that is everything."""
    names = list(labels)
    labels_of: dict[str, list[str]] = {}
    for label, reason in zip(names, whys, strict=True):
        labels_of.setdefault(reason, []).append(label)
    return tuple(
        f"{'all' if len(mine) == len(names) > 1 else ', '.join(dict.fromkeys(mine))}: {reason}"
        for reason, mine in labels_of.items()
        if reason
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_minus(printed: pd.DataFrame) -> pd.DataFrame:
    """The table with minus signs, not hyphens, before its numbers; cells of words stay as they are."""
    return printed.map(
        lambda cell: _MINUS.sub("−", cell) if isinstance(cell, str) and _NUMBERS.fullmatch(cell) else cell
    )


def as_markdown(text: str) -> str:
    """A line of text that stays text in Markdown."""
    return _MARKDOWN.sub(r"\\\1", printable(" ".join(text.split())))


def as_latex(text: str) -> str:
    """A line of text that stays text in LaTeX."""
    plain = printable(" ".join(text.split())).translate(_LATEX)
    return _DASHES.sub("-{}", _MINUS.sub("$-$", plain))


def _row(cells: Iterable[object]) -> str:
    return f"{' & '.join(as_latex(str(cell)) for cell in cells)} \\\\"


def _column(numeric: bool, wide: bool) -> str:
    if wide:
        return r">{\raggedright\arraybackslash}p{0.28\linewidth}"
    return "r" if numeric else "l"


def _sentence(text: str) -> str:
    """A note with an end: notes follow each other."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


LIST = "files.json"

# A spreadsheet takes a cell that starts with one of these for a formula (full-width ones too).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as CSV (UTF-8 with mark, as spreadsheets want it); texts that would run get a leading apostrophe.

    What no reader of CSV gets through (a null, say) is U+FFFD.
    """
    safe, returns = frame.copy(), False
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_inert)
            returns |= any("\r" in cell for cell in safe[column] if isinstance(cell, str))
    # A carriage return ends a row, and Python's writer sees no need to quote it.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    text: str = safe.rename(columns=_inert).to_csv(index=False, quoting=quoting)
    return text.encode("utf-8-sig")


def plain(value: Any) -> Any:
    """What JSON can hold: undefined numbers are null."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_file(value: Any) -> bytes:
    """A value as a file of JSON (UTF-8): undefined numbers are null, and what JSON does not have is its words."""
    return (json.dumps(plain(value), indent=2, ensure_ascii=False, default=str) + "\n").encode()


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, atomically."""
    with atomic(path) as file:
        file.write(csv_bytes(frame))


def _inert(value: object) -> object:
    if not isinstance(value, str):
        return value
    return readable(f"'{value}" if value.startswith(_FORMULA) else value)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a report's files (names below the folder, with `/`) atomically; those of the report before it go.

    A list in the folder holds their names and hashes: a file that is not in it, or is not as it was written, stays.
    Raises DataError, before anything is written, where a folder has a file's name or a file a folder's, and for a name
    that leads out of the folder: names may come from records that others wrote.
    """
    if strange := next((name for name in files if not _below(name)), ""):
        raise DataError(f"{folder}: no file there can be called {strange[:100]!a}; look where that name comes from")
    for name in () if is_remote(folder) else (LIST, *files):
        _refuse_unfit(folder, name)
    before = _listed(folder)
    now = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    # Listed first: a report that is killed leaves no file that the next one does not know.
    write_json(folder / LIST, before | now)
    for name, content in files.items():
        with atomic(folder / name) as file:
            file.write(content)
    for name in before.keys() - now.keys():
        path = folder / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == before[name]:
            path.unlink()
    write_json(folder / LIST, now)


def _listed(folder: Path) -> dict[str, str]:
    """What the last report wrote, with hashes; nothing where the list is not there, or is not one."""
    try:
        digests = read_json(folder / LIST)
    except (FileNotFoundError, DataError):
        return {}
    if not isinstance(digests, dict):
        return {}
    return {name: str(digest) for name, digest in digests.items() if _below(name)}


def _refuse_unfit(folder: Path, name: str) -> None:
    path = folder / name
    if path.is_dir():
        raise DataError(f"{path}: a folder is there, and a file is to be written; move it away")
    for above in list(path.parents)[: len(PurePosixPath(name).parts) - 1]:
        if above.exists() and not above.is_dir():
            raise DataError(f"{above}: a file is there, and a folder is to be made; move it away")


def _below(name: str) -> bool:
    path = PurePosixPath(name)
    return name.isprintable() and not path.is_absolute() and ".." not in path.parts
