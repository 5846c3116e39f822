"""Report tables: with all digits for CSV, formatted for people, and as Markdown and LaTeX.

A spreadsheet can read the CSV files but runs nothing in them. A new report removes the files of the previous one; every
other file in the folder is the user's and stays.
"""

from __future__ import annotations

import csv
import hashlib
import html
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pandas as pd

from plumbline.cli import columns
from plumbline.errors import DataError
from plumbline.reading import read_json
from plumbline.store import atomic, is_remote, write_json
from plumbline.words import printable_line, readable

Row = Mapping[Hashable, Any]
Cell = str | Callable[[Row], str]  # a column of the frame, or a function of a row
Form = Callable[[float], str]  # shows a number
UNDEFINED = "–"


def printed(frame: pd.DataFrame, columns: Mapping[str, Cell]) -> pd.DataFrame:
    """Return the printed form of a frame: a cell for each head and row."""
    rows = [
        [str(row[cell]) if isinstance(cell, str) else cell(row) for cell in columns.values()]
        for row in frame.to_dict(orient="records")
    ]
    return pd.DataFrame(rows, columns=list(columns))


def cell(name: str, form: Callable[[Any], str]) -> Cell:
    """Return a function that formats a column."""
    return lambda row: form(row[name])


def number(value: float, digits: int = 2, sign: str = "", times: float = 1, unit: str = "") -> str:
    """Return a number as every table shows it; `sign` is "+" to show a plus, `unit` follows it.

    An undefined number is a dash, and one that is rounded to zero has no sign.
    """
    if math.isnan(value):
        return UNDEFINED
    text = format(times * value, f"{sign}z,.{digits}f")
    return (text if text.strip("+0.") else text.lstrip("+")) + unit


def interval(value: float, low: float, high: float, form: Form = number) -> str:
    """Return a number with the ends of its interval in brackets, if it has one."""
    return form(value) if math.isnan(low) else f"{form(value)} [{form(low)}, {form(high)}]"


def numbers(name: str, digits: int = 2, sign: str = "", times: float = 1, unit: str = "") -> Cell:
    """Return a column of numbers."""
    return lambda row: number(row[name], digits, sign, times, unit)


def estimates(value: str, low: str = "low", high: str = "high", form: Form = number) -> Cell:
    """Return a column of numbers with their intervals, from three columns."""
    return lambda row: interval(row[value], row[low], row[high], form)


def word(value: object) -> str:
    """Return a word; an empty one is a dash."""
    return str(value or UNDEFINED)


def spaced(name: object) -> str:
    """Return a name with spaces; an empty one is a dash."""
    return word(name).replace("_", " ")


_MARKDOWN = re.compile(r"([\\`*_\[\]|~$#])")
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
        "<": r"\textless{}",  # LaTeX's own font (OT1) prints other signs for these three
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': "''",  # babel turns it into a command
        "[": "{[}",  # after the end of a row, and in a short caption, these would be options
        "]": "{]}",
        "*": "{*}",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "−": "$-$",
        "→": r"$\rightarrow$",
    }
)
#: What a note quotes as code.
CODE = re.compile(r"`([^`\n]+)`")
_MINUS = re.compile(r"(?<![\w.\-])-(?=\.?\d)")  # the sign of a number
_MINUS_ZERO = re.compile(r"(?<![\w.\-])-(?=0(?:\.0+)?(?![\d.]))")  # a number that is rounded to zero
# A cell with a number or two ends, and its uncertainty.
_NUMBERS = re.compile(r"[-+]?[\d.,]+%?( ± [\d.]+| (?:to|→) [-+]?[\d.,]+%?)?( ?[(\[][-+\d.,% ]+[)\]])*")
_DASHES = re.compile(r"-(?=-)")  # LaTeX would join them into one dash, as in `--study`
# Letters that pdfLaTeX prints without more packages; the dashes, quotes and dots are those of typed English.
_LATIN = re.compile("[^\u0000-\u017f‐-—‘’‚“”„†‡•…‰€™]")
_WIDE = 40  # a column with longer cells breaks its lines
_NOTE = 110  # letters on a line of notes
_MANY = 8  # a long table with more columns gets the smallest letters
_PAGE = 40  # lines that fit on one page
MOST_ROWS = 120  # rows shown on an HTML page; the file has all


@dataclass(frozen=True)
class Table:
    """A printed frame: cells are words or whole numbers; `caption` says what it shows.

    `notes` say what its numbers lack, and why; a page prints each note once.
    """

    frame: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exhibit:
    """A table: `name` names its files, `frame` has all digits, `printed` (words) is for people.

    `notes` say what its numbers lack, and why. It is declared once, and shows itself on HTML pages, in a terminal and
    the dashboard, and as CSV, Markdown and LaTeX. `questions` are those of the column Question that have a LaTeX table
    of their own, with what its caption says of each.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    printed: pd.DataFrame
    notes: tuple[str, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        frame: pd.DataFrame,
        columns: Mapping[str, Cell] | pd.DataFrame,
        notes: Iterable[str] = (),
    ) -> Exhibit:
        """Return the table of a frame with these columns, by their heads, or as it is printed; empty notes go."""
        rows = columns if isinstance(columns, pd.DataFrame) else printed(frame, columns)
        return cls(name, caption, frame, rows, tuple(filter(None, notes)))

    @property
    def is_undefined(self) -> bool:
        """Whether it shows measures, none of which is known."""
        unknown = bool(self.frame.select_dtypes("float").isna().all(axis=None))
        return unknown and bool((self.printed == UNDEFINED).any(axis=None))

    def table(self, *, cut: bool = False) -> Table:
        """The table for an HTML page, with its file named; a long one is `cut` to `MOST_ROWS` rows and says so."""
        printed, caption = self.printed, self.caption
        if cut and len(printed) > MOST_ROWS:
            caption = f"{caption}; the first {MOST_ROWS} of {len(printed):,} rows (all are in the file)"
            printed = printed.head(MOST_ROWS)
        # Columns that say nothing are left out.
        filled = [column for column in printed.columns if printed.empty or {*printed[column]} - {"", UNDEFINED}]
        return Table(with_minus(printed[filled]), f"{caption} ({self.name}.csv)", self.notes)

    def text(self, empty: str = "nothing", most: int | None = None) -> str:
        """Return the table for a terminal: caption, columns and notes; `empty` in place of no rows.

        Only the first `most` rows are shown, with a line that names the file with all.
        """
        lines = columns(list(map(str, self.printed.columns)), self.printed[:most].to_numpy().tolist(), empty)
        if most is not None and len(self.printed) > most:
            lines += f"\n  the first {most} of {len(self.printed):,} rows; the report has all in {self.name}.csv"
        notes = (f"  {printable_line(note)}" for note in self.notes)
        return "\n".join([printable_line(self.caption), lines, *notes])

    def files(self, folder: str = "tables/") -> dict[str, bytes]:
        """Return the files in a folder by name: CSV with all digits, Markdown, LaTeX."""
        return {
            f"{folder}{self.name}.csv": csv_bytes(self.frame),
            f"{folder}{self.name}.md": self.markdown().encode(),
            f"{folder}{self.name}.tex": self.latex().encode(),
        }

    def markdown(self, *, captioned: bool = True) -> str:
        """Return the table as Markdown, with its notes as a list below. Text stays text."""
        heads = list(map(str, self.printed.columns))
        lines = [f"**{as_markdown(self.caption)}**", ""] if captioned else []
        lines.append(_line(map(as_markdown, heads)))
        lines.append(_line("---:" if numeric else "---" for numeric in self._numeric()))
        lines += [_line(map(as_markdown, row)) for row in self.printed.itertuples(index=False)]
        lines += ["", *(f"- {as_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX, one for each of its `questions`, with its notes below. Text stays text.

        A table that is too wide is scaled (graphicx); one that is too long breaks over pages (longtable). A comment at
        the top names the packages, and the letters that pdfLaTeX cannot print.
        """
        parts = [self._of_question(number, *facts) for number, facts in enumerate(self.questions.items(), 1)] or [self]
        table = "\n\n".join("\n".join(part._pages() if part._is_long() else part._float()) for part in parts)
        fitting = {"longtable" if part._is_long() else "graphicx" for part in parts}
        packages = ["array", "booktabs", *sorted(fitting)]
        letters = sorted(set(_LATIN.findall(table)))
        engines = f"% and XeLaTeX or LuaLaTeX with a font for these letters: {''.join(letters)}\n" if letters else ""
        return f"% needs \\usepackage{{{','.join(packages)}}}\n{engines}{table}\n"

    def _of_question(self, number: int, question: str, facts: str) -> Exhibit:
        """Return the part of the table on one question, with its facts in the caption."""
        rows = self.printed[self.printed["Question"] == question].drop(columns="Question")
        caption = f"{self.caption}: {question} ({facts})"
        return Exhibit(f"{self.name}_{number}", caption, self.frame, rows, self.notes)

    def _float(self) -> list[str]:
        """Return lines of LaTeX: a table on one page."""
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
        """Return lines of LaTeX: a table over several pages, with its head on each."""
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
        """Return the notes. In the caption they would be too long: LaTeX sets a caption on one line first."""
        text = " ".join(as_latex(note if note.endswith((".", "!", "?")) else f"{note}.") for note in self.notes)
        return [rf"\par\smallskip{{\footnotesize\raggedright {text}\par}}"] if text else []

    def _form(self) -> str:
        """Return the columns' types; a column with a cell too long for one line breaks its lines."""
        wide = [max(map(len, cells), default=0) > _WIDE for _, cells in self.printed.items()]
        return "".join(
            r">{\raggedright\arraybackslash}p{0.28\linewidth}" if breaks else "r" if numeric else "l"
            for numeric, breaks in zip(self._numeric(), wide, strict=True)
        )

    def _is_long(self) -> bool:
        """Return whether the table, with its notes, takes roughly more lines than a page has."""
        rows = sum(
            max((1 + len(cell) // _WIDE for cell in row), default=1) for row in self.printed.itertuples(index=False)
        )
        return rows + len(" ".join(self.notes)) // _NOTE > _PAGE

    def _numeric(self) -> list[bool]:
        return [is_numeric(cells) for _, cells in self.printed.items()]


def reasons(labels: Iterable[str], whys: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each reason with the names it applies to; "all" where it applies to every name."""
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


def is_numeric(cells: Iterable[str]) -> bool:
    """Return whether a column holds numbers, which stand at its right: no cell has a letter but the word "to"."""
    return not any(map(str.isalpha, "".join(cells).replace(" to ", "")))


def with_minus(printed: pd.DataFrame) -> pd.DataFrame:
    """Return the table with minus signs instead of hyphens before numbers; words stay unchanged.

    A number that is rounded to zero has no sign.
    """
    return printed.map(
        lambda cell: in_prose(_MINUS_ZERO.sub("", cell)) if isinstance(cell, str) and _NUMBERS.fullmatch(cell) else cell
    )


def in_prose(text: str) -> str:
    """Return a text of ours with minus signs instead of hyphens before its numbers."""
    return _MINUS.sub("−", text)


def as_markdown(text: str) -> str:
    """Return a line of text that Markdown shows unchanged, and that holds no HTML even for a reader of HTML alone."""
    return _MARKDOWN.sub(r"\\\1", html.escape(printable_line(text), quote=False))


def as_latex(text: str) -> str:
    """A line of text that stays text in LaTeX."""
    plain = printable_line(text).translate(_LATEX)
    return _DASHES.sub("-{}", _MINUS.sub("$-$", plain))


def _row(cells: Iterable[object]) -> str:
    return f"{' & '.join(as_latex(str(cell)) for cell in cells)} \\\\"


LIST = "files.json"

# A spreadsheet reads a cell that starts with one of these (or its full-width form) as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return the frame as CSV (UTF-8 with a byte order mark, for spreadsheets); formulas get a leading apostrophe.

    Characters that break readers of CSV (such as a null) become U+FFFD.
    """
    safe, returns = frame.copy(), False
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_inert)
            returns |= any("\r" in cell for cell in safe[column] if isinstance(cell, str))
    # A carriage return ends a row, but Python's writer does not quote it.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    text: str = safe.rename(columns=_inert).to_csv(index=False, quoting=quoting)
    return text.encode("utf-8-sig")


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: undefined numbers become null."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_file(value: Any) -> bytes:
    """Return a value as a JSON file (UTF-8): undefined numbers are null, other types are their text."""
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
    """Write a report's files atomically (names below the folder, with `/`); remove those of the previous report.

    A list in the folder holds their names and hashes: a file that is not in it, or has changed since, stays. Raises
    DataError before anything is written if a folder has a file's name or a file a folder's, or if a name leads out of
    the folder: names may come from records that others wrote.
    """
    if invalid := next((name for name in files if not _below(name)), ""):
        raise DataError(f"{folder}: {invalid[:100]!a} is not a valid name for a report's file; correct that name")
    for path in () if is_remote(folder) else [folder / name for name in (LIST, *files)]:
        if path.is_dir():
            raise DataError(f"{path}: a folder has the name of a file to write; move the folder away")
        for above in path.parents[: len(path.relative_to(folder).parts) - 1]:
            if above.exists() and not above.is_dir():
                raise DataError(f"{above}: a file has the name of a folder to make; move the file away")
    previous = _listed(folder)
    current = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    # Listed first: a report that is killed leaves no file that the next one does not know.
    write_json(folder / LIST, previous | current)
    for name, content in files.items():
        with atomic(folder / name) as file:
            file.write(content)
    for name in previous.keys() - current.keys():
        path = folder / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == previous[name]:
            path.unlink()
    write_json(folder / LIST, current)


def remove_files(folder: Path) -> None:
    """Remove the files that the last report in a folder wrote, and its list; a file that has changed since stays."""
    if (folder / LIST).exists():
        write_files(folder, {})
        (folder / LIST).unlink()


def _listed(folder: Path) -> dict[str, str]:
    """Return what the last report wrote, with hashes; nothing if the list is missing or damaged."""
    try:
        digests = read_json(folder / LIST)
    except (FileNotFoundError, DataError):
        return {}
    if not isinstance(digests, dict):
        return {}
    return {name: str(digest) for name, digest in digests.items() if _below(name)}


def _below(name: str) -> bool:
    path = PurePosixPath(name)
    return name.isprintable() and not path.is_absolute() and ".." not in path.parts
