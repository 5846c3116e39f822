"""`plumbline import FILE ... --out studies/mine.yaml`: ratings from anywhere as a study."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import yaml
from cyclopts import Parameter
from pydantic import BaseModel, ValidationError

from annotation.campaign.names import is_pseudonym, named_pseudonym, pseudonym_key, remember_names, worker_pseudonym
from annotation.campaign.records import NOT_IMPORTED, PAIRS
from annotation.imports.answers import AskedScale, ImportedQuestion, distinct, question_name, read_question, read_scale
from annotation.imports.columns import Proposal, proposal_rows, propose, unused_lines
from annotation.imports.files import read_file, read_frame
from annotation.imports.matching import Material, match, without_repeats
from annotation.imports.preferences import LABELS, as_preference, is_preference
from annotation.imports.tables import CellTable, UnplacedRow
from annotation.imports.word_scales import folded
from annotation.imports.writing import interpretation, lay_out, write_records, write_study_files
from annotation.options import HomeOptions
from annotation.ratings.answers import source_of_file
from annotation.server import Home
from generation.flags import language_of
from plumbline import cli
from plumbline.cli import Local, Named, StudyOptions
from plumbline.errors import DataError, LanguageError, StudyError, read_each
from plumbline.exhibits.table import csv_bytes
from plumbline.languages import language_code, language_name
from plumbline.reading import read_yaml
from plumbline.records import UNKNOWN
from plumbline.store import atomic
from plumbline.study import Study, load_study
from plumbline.study.base import complaints
from plumbline.words import count, printable_line

COLUMNS = "columns.yaml"
_TEXTS = ("output", "text", "original")  # an item's columns, in the order of use for recognising the language
_REASONS = 5  # reasons that are named where no row has an answer


@Parameter(name="*")
@dataclass(frozen=True)
class ImportTarget:
    """The study that an import writes.

    Args:
        out: The study file to write, such as studies/mine.yaml; its texts go into a folder beside it.
        exports: Where records are written: a folder or an address (default: exports/).
        dry_run: Show how the files are read, and write nothing.
        replace: Replace the study and its records.
    """

    out: Local
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None
    dry_run: bool = False
    replace: bool = False


@dataclass(frozen=True)
class ImportRequest:
    """How an import reads tables, and what it writes."""

    target: ImportTarget
    columns: Mapping[str, str]
    scales: Mapping[str, AskedScale]
    language: str
    raters_per_file: bool = False


@Parameter(name="*")
@dataclass(frozen=True)
class ReadingOptions:
    """How files are read, where they do not show it themselves.

    Args:
        column: The role of a column: original, output, text, beside, item, system, compared, rater, question, answer,
            by_rater, slot, by_item, time, started, seconds, status, submission, comment, truth, language, unused (may
            be repeated).
        columns: A file with the roles of columns, as an earlier import wrote it.
        scale: A question's points: 1..5, 5..1 if less is better, words as in bad<fair<good, or `labels`; answers
            outside the scale are listed (may be repeated).
        language: The language of the texts (default: recognised from them).
        sheet: The sheet of an Excel file, if several have rows.
        raters_per_file: Treat an id that occurs in two files as two people.
    """

    column: Annotated[tuple[str, ...], Parameter(metavar="ROLE=NAME")] = ()
    columns: Local | None = None
    scale: Annotated[tuple[str, ...], Parameter(metavar="QUESTION=1..5")] = ()
    language: Annotated[str, Parameter(metavar="CODE")] = ""
    sheet: Annotated[str, Parameter(metavar="NAME")] = ""
    raters_per_file: bool = False

    def request(self, target: ImportTarget) -> ImportRequest:
        """Return the user's columns, scales and language from a file and from options, which take precedence."""
        try:
            written = _Columns.model_validate(read_yaml(self.columns) if self.columns else {})
        except FileNotFoundError:
            raise StudyError(
                f"--columns: there is no file {self.columns}; name one that `plumbline import` wrote"
            ) from None
        except ValidationError as error:
            advice = "use the file that `plumbline import` writes"
            raise StudyError(*(f"{self.columns}: {fault}; {advice}" for fault in complaints(error))) from None
        columns, scales = dict(written.columns or {}), dict(written.scales or {})
        for word in self.column:
            role, _, column = word.partition("=")
            if not column:
                raise StudyError(f"--column: {word!r} is not of the form ROLE=NAME")
            columns[column] = role
        for word in self.scale:
            question, _, scale = word.rpartition("=")
            if not question:
                raise StudyError(f"--scale: {word!r} is not of the form QUESTION=1..5")
            scales[question] = scale
        language = self.language or written.language or ""
        return ImportRequest(
            target, columns, {question: read_scale(scale) for question, scale in scales.items()},
            language_code(language) if language else "", self.raters_per_file,
        )  # fmt: skip


def import_files(
    files: tuple[Local, ...],
    /,
    *,
    target: ImportTarget,
    reading: ReadingOptions = ReadingOptions(),
    home: HomeOptions = HomeOptions(),
) -> StudyOptions | None:
    """Make a study from ratings made in another tool.

    The command shows how it reads the files, and writes the study if nothing is doubtful.

    Example: plumbline import ratings.csv --out studies/mine.yaml

    Args:
        files: Exported files: ratings, and texts or right answers with the same ids.
        target: The study to write.
        reading: How the files are read.
        home: The local server.
    """
    request = reading.request(target)
    _refuse_out(target)
    for file in files:
        source_of_file(file)  # refuses names of a campaign's own ratings
    tables = itertools.chain.from_iterable(read_file(file, reading.sheet) for file in files)
    import_tables(tables, request, home.home, print)
    return None if target.dry_run else StudyOptions(str(target.out), target.exports)


def import_ratings(  # noqa: PLR0913 (the command's options)
    frames: pd.DataFrame | Mapping[str, pd.DataFrame],
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    scales: Mapping[str, str] | None = None,
    language: str = "",
    exports: str | None = None,
    home: str | Path | None = None,
    replace: bool = False,
) -> Study:  # fmt: skip
    """Write a study of ratings in frames, as `plumbline import` does of files.

    Args:
        frames: A frame with a row for each answer, and a column for each question or each rater. Or several by name, of
            which some describe items or right answers; they are joined by shared columns.
        out: The study's file, such as `studies/mine.yaml`.
        columns: The role of each column whose name does not show it: {column: role}, with the roles that
            `plumbline import --help` lists.
        scales: A question's points, as the option `--scale` takes them: {question: "1..5"}.
        language: The code of the texts' language; empty: recognised.
        exports: Where records are written: a folder or an address (default: `exports/`).
        home: The folder with the key of pseudonyms and the names behind them (default: `.argilla/`).
        replace: Write the study and its records anew.

    Returns:
        The study, whose `folder` has `ratings.parquet`, and `not_imported.csv` with the rows left out.

    Raises:
        StudyError: A column's role is doubtful, or a setting is wrong.
        DataError: The frames hold no ratings, or contradict one another.

    >>> import pandas as pd
    >>> from annotation import import_ratings
    >>> words = ["A cat sat there.", "It rained a lot.", "He went home early."]
    >>> frame = pd.DataFrame(
    ...     [[f"{text} So they say.", text, rater, 3 + (rater == "ann")] for text in words for rater in ("ann", "bob")],
    ...     columns=["original", "output", "rater", "meaning"],
    ... )
    >>> columns, scales = {"meaning": "answer"}, {"meaning": "1..5"}
    >>> study = import_ratings(frame, "studies/frame.yaml", columns=columns, scales=scales, language="en")
    >>> pd.read_parquet(study.folder / "ratings.parquet")["value"].mean()
    np.float64(3.5)
    """
    named = {"frame": frames} if isinstance(frames, pd.DataFrame) else frames
    target = ImportTarget(Path(out), exports, replace=replace)
    request = ImportRequest(
        target, dict(columns or {}), {name: read_scale(text) for name, text in (scales or {}).items()},
        language_code(language) if language else "",
    )  # fmt: skip
    _refuse_out(target)
    server_home = Home(Path(home)) if home else Home()
    import_tables([read_frame(name, frame) for name, frame in named.items()], request, server_home, lambda line: None)
    return load_study(target.out, exports)


def _refuse_out(target: ImportTarget) -> None:
    out = target.out
    if out.suffix not in (".yaml", ".yml"):
        raise StudyError(f"--out {out}: a study is a YAML file, such as studies/mine.yaml")
    is_new = target.replace or target.dry_run or not out.exists()
    if not is_new and (load_study(out, target.exports).folder / PAIRS.name).exists():
        raise StudyError(f"{out} has records already; choose another name, or replace them with --replace")


def import_tables(read: Iterable[CellTable], request: ImportRequest, home: Home, say: Callable[[str], None]) -> None:
    """Print the tables' interpretation, and write the study if nothing is doubtful."""
    tables = list(read)
    for column, role in request.columns.items():
        if not any(_of_table({column: role}, table) for table in tables):
            propose(tables[0], {column: role})  # raises with the nearest
    proposals = [propose(table, _of_table(request.columns, table)) for table in tables]
    for table, proposal in zip(tables, proposals, strict=True):
        say(f"{table.path}: {table.form}, {count(len(table.cells), 'row')}")
        for line in table.notes:
            say(f"  {line}")
        say(cli.columns(*proposal_rows(table, proposal)))
        for line in unused_lines(proposal):
            say(f"  {line}")
    _refuse_doubts(tables, proposals)
    with _restored_on_error(*([] if request.target.dry_run else [request.target.out.with_suffix("")])):
        if not request.target.dry_run:
            _write_columns(request, tables, proposals)
        scales = {name: read_scale(text) for table in tables for name, text in table.scales.items()}
        material = match(tables, proposals, raters_per_file=request.raters_per_file, wanted=request.scales)
        del tables, table  # do not keep a million rows twice
        _import(replace(request, scales={**scales, **request.scales}), home, material, say)


def _refuse_doubts(tables: Sequence[CellTable], proposals: Sequence[Proposal]) -> None:
    """Raise StudyError for columns in doubt."""
    rated = [proposal.has_answers for proposal in proposals]
    doubts = [doubt for proposal, rates in zip(proposals, rated, strict=True) if rates or not any(rated)
              for doubt in proposal.doubts]  # fmt: skip
    doubts += _doubt_of_raters(tables, proposals)
    if doubts:
        raise StudyError("; ".join(dict.fromkeys(doubts)))


def _import(request: ImportRequest, home: Home, material: Material, say: Callable[[str], None]) -> None:
    target, listed = request.target, list(material.listed)
    material, questions = read_questions(material, request.scales, listed)
    material, language, languages = _with_languages(material, request.language)
    layout = lay_out(target.out, material)
    for line in interpretation(layout, material, questions):
        say(f"  {line}")
    if target.dry_run:
        say("nothing is written (--dry-run)")
        return
    replaced = [load_study(target.out, target.exports).folder] if target.replace and target.out.exists() else []
    with _restored_on_error(target.out, layout.folder, *replaced):
        for folder in replaced:
            shutil.rmtree(folder, ignore_errors=True)
        study = write_study_files(layout, material, questions, language, target.exports, anew=target.replace)
        with _restored_on_error(study.folder):
            pseudonyms = pseudonyms_of(home, study, material)
            number = write_records(study, layout, material, questions, pseudonyms)
            raters = {pseudonyms[name]: name for name in map(str, material.answers["rater"].unique())}  # who answered
            raters = raters if material.has_raters else {}
            remember_names(home, study.name, {key: name for key, name in raters.items() if not is_pseudonym(name)})
    who = f" by {count(len(raters), 'rater')}" if raters else ""
    ratings = f"{count(number, 'rating')} of {count(len(material.items), study.called.item)}{who}"
    say(f"{study.name}: {ratings} -> {study.file}, {study.folder}")
    _list(study, listed, material.without_role, say)
    ruled = {rule.question for rule in study.acceptance.rules}
    if unruled := [question.name for question in questions if question.labels and question.name not in ruled]:
        say(f"  no rule decides by {', '.join(unruled)}; to change that, add one to acceptance.rules in {study.file}")
    say(f"  texts: {languages}")


@contextlib.contextmanager
def _restored_on_error(*paths: Path) -> Iterator[None]:
    """Give local files and folders what they held before if a block fails: a refused import leaves nothing behind."""
    paths = tuple(path for path in paths if isinstance(path, Path))
    new_folders = [folder for path in paths for folder in path.parents if not folder.exists()]
    with tempfile.TemporaryDirectory() as copies:
        before = {path: Path(copies) / str(number) for number, path in enumerate(paths) if path.exists()}
        for path, copy in before.items():
            _copy(path, copy)
        try:
            yield
        except BaseException:
            for path in paths:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                if path in before:
                    _copy(before[path], path)
            for folder in new_folders:
                with contextlib.suppress(OSError):  # others may have put something there
                    folder.rmdir()
            raise


def _copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy2(path, target)


def _of_table(columns: Mapping[str, str], table: CellTable) -> dict[str, str]:
    """Return the user's roles of a table's columns: by name or as `column 3`, with FILE: before it or not."""
    names = list(map(str, table.cells.columns))
    titles = {f"column {number}": name for number, name in enumerate(names, 1) if f"column {number}" not in names}
    titles |= {name: name for name in names}
    titles |= {f"{table.path.name}:{title}": name for title, name in titles.items()}
    roles = {titles[column]: role for column, role in columns.items() if column in titles}
    roles |= {titles[c]: role for c, role in columns.items() if c in titles and c.startswith(f"{table.path.name}:")}
    return roles


def _doubt_of_raters(tables: Sequence[CellTable], proposals: Sequence[Proposal]) -> list[str]:
    """Return a doubt if one of several files names no raters and others do."""
    rated = [(t, p) for t, p in zip(tables, proposals, strict=True) if p.has_answers]
    without_raters = [(t, p) for t, p in rated if not p.rates]
    if not without_raters or len(without_raters) == len(rated):
        return []
    table, proposal = without_raters[0]
    name = next(name for name, role in proposal.roles.items() if role in ("answer", "by_item"))
    return [f"{table.path.name} does not name raters, but other files do; name its column of raters, or mark its"
            f" answers as the right ones with --column 'truth={table.path.name}:{name}'"]  # fmt: skip


class _Columns(BaseModel, extra="forbid"):
    """What `--columns` names: the file that an import writes and users correct."""

    columns: dict[str, str] | None = None
    scales: dict[str, str] | None = None
    language: str | None = None


def _write_columns(request: ImportRequest, tables: Sequence[CellTable], proposals: Sequence[Proposal]) -> None:
    """Write each column's role to a file that users correct and pass back; columns of raters go by number."""
    columns = dict[str, str]()
    for table, proposal in zip(tables, proposals, strict=True):
        for number, (column, role) in enumerate(proposal.roles.items(), 1):
            name = f"column {number}" if role == "by_rater" else column
            of_file = columns.get(name, role) != role or (role == "by_rater" and len(tables) > 1)
            columns[f"{table.path.name}:{name}" if of_file else name] = role
    content = {"columns": columns, "scales": {name: scale.text for name, scale in request.scales.items()}}
    text = yaml.safe_dump({**content, "language": request.language}, sort_keys=False, allow_unicode=True, width=118)
    names = ", ".join(table.path.name for table in tables)
    head = f"# The roles of the columns of {printable_line(names)}, as `plumbline import` reads them."
    file_name = request.target.out.with_suffix("") / COLUMNS
    with atomic(file_name, public=True) as file:
        file.write(f"{head}\n# Correct them here, and run again with --columns {file_name}\n{text}".encode())


def read_questions(
    material: Material, scales: Mapping[str, AskedScale], listed: list[UnplacedRow]
) -> tuple[Material, list[ImportedQuestion]]:
    """Return the questions, and the material without cells that are not answers, which are listed."""
    answers = without_repeats(material.answers, listed)
    cells_by_title = {title: answers.loc[answers["question"] == title, "cell"].cat.remove_unused_categories()
                      for title in answers["question"].cat.remove_unused_categories().cat.categories}  # fmt: skip
    questions, wrong = _questions(cells_by_title, scales, material), pd.Series(False, answers.index)
    for question in questions:
        off = cells_by_title[question.title].isin(list(question.faults))
        cells = answers.loc[off.index[off], ["file", "line", "cell"]].itertuples(index=False, name=None)
        listed += [
            UnplacedRow(str(file), int(line), question.faults[str(cell)], question.title) for file, line, cell in cells
        ]
        wrong[off.index[off]] = True
    remaining = answers[~wrong].reset_index(drop=True)
    if remaining.empty:
        raise _no_answers(listed)
    rated, numbers = remaining["item"].unique(), remaining["item"].to_numpy()
    places = pd.Series(range(len(rated)), index=rated)
    items = material.items.iloc[rated].reset_index(drop=True)
    remaining = remaining.assign(item=places.reindex(numbers).to_numpy())
    falls = {name for name, scale in scales.items() if scale.falls}
    lower = material.lower | {question.title for question in questions if {question.title, question.name} & falls}
    return replace(material, items=items, answers=remaining, listed=tuple(listed), lower=lower), questions


def _questions(
    cells_by_title: Mapping[str, pd.Series], scales: Mapping[str, AskedScale], material: Material
) -> list[ImportedQuestion]:
    """Return the questions, whose scales the user or their answers name. Raises with the faults of all of them."""
    names = dict(zip(cells_by_title, distinct(list(map(question_name, cells_by_title))), strict=True))
    if unknown := [name for name in scales if name not in names and name not in names.values()]:
        raise StudyError(f"--scale: no question {unknown[0]!r}; the questions are {', '.join(names)}")
    sets = {title: {folded(str(text)): str(text) for text in cells.cat.categories}
            for title, cells in cells_by_title.items()}  # fmt: skip

    def read(title: str) -> ImportedQuestion:
        larger = [others for others in sets.values() if sets[title].keys() < others.keys()]
        others = max(larger, key=len, default={})
        scale = scales.get(title) or scales.get(names[title])
        prefers = scale is None and is_preference(title, list(sets[title].values()), two=material.shows_two)
        kind = LABELS if prefers else scale
        falls = title in material.lower
        question = read_question(title, names[title], cells_by_title[title], kind, list(others.values()), falls=falls)
        return as_preference(question) if prefers else question

    return read_each(names, read)


def _no_answers(listed: Sequence[UnplacedRow]) -> DataError:
    """Return the error that no row has an answer, with the commonest reasons and the first row of each."""
    counts = Counter(row.reason for row in listed).most_common(_REASONS)
    first = {row.reason: f"{row.file}, line {row.line}" for row in reversed(listed)}
    return DataError(
        "no answers can be read from the files; name their columns with --column answer=NAME",
        *(f"{first[reason]}: {reason} ({count(number, 'row')})" for reason, number in counts),
    )


def pseudonyms_of(home: Home, study: Study, material: Material) -> dict[str, str]:
    """Return pseudonyms by the raters' ids in the files; ids that differ only in capitals are one person's."""
    names = [str(name) for name in material.answers["rater"].array.categories]
    if not material.has_raters:
        return {name: f"{UNKNOWN}{number}" for number, name in enumerate(names, 1)}
    key, people = pseudonym_key(home), len({name.casefold() for name in names})
    pseudonyms = {name: named_pseudonym(key, study.name, name) for name in names}
    if len(set(pseudonyms.values())) == people:
        return pseudonyms
    return {name: worker_pseudonym(key, study.name, "import", name.casefold()) for name in names}


def _with_languages(material: Material, usual: str) -> tuple[Material, str, str]:
    """Return items with language codes, the usual one, and all in words. Raises DataError for unknown, unsure ones."""
    items = material.items
    names = items["language"].astype(object)
    names = names.where(names.notna(), "").astype(str).str.strip()
    rows = items.assign(name=names)[names != ""].drop_duplicates("name")

    def read(row: tuple[str, str, int]) -> tuple[str, str]:
        name, file, line = row
        try:
            return name, language_code(name)
        except LanguageError as error:
            raise DataError(f"{file}, line {line}: {error}") from None

    codes = names.map(dict(read_each(rows[["name", "file", "line"]].itertuples(index=False, name=None), read)))
    texts = next((items[name].dropna() for name in _TEXTS if items[name].notna().any()), None)
    usual = usual or str(codes.mode().get(0, "")) or ("en" if texts is None else language_of(texts, least=1, share=0.8))
    in_words = ", ".join(map(language_name, dict.fromkeys([*codes.dropna(), *([usual] if codes.isna().any() else [])])))
    in_words += " (if this is wrong, add --language CODE)" if codes.isna().any() else ""
    in_words = "none in the files, so ids replace them" if texts is None else in_words
    return replace(material, items=items.assign(language=codes)), usual, in_words


def _list(study: Study, listed: Sequence[UnplacedRow], without_role: Sequence[str], say: Callable[[str], None]) -> None:
    """Write the rows that were not imported to a file, and say how many there are and why."""
    rows = [(entry.file, entry.line, entry.column, entry.reason) for entry in listed]
    with atomic(study.folder / NOT_IMPORTED) as file:
        file.write(csv_bytes(pd.DataFrame(rows, columns=["file", "line", "column", "reason"])))
    if not listed:
        but = f", without the columns of no role: {', '.join(without_role)}" if without_role else ""
        say(f"  every row was imported{but}")
        return
    say(f"  answers not imported: {len(listed)}, with reasons -> {study.folder / NOT_IMPORTED}")
    counts = pd.Series([entry.reason.partition(" is in line")[0] for entry in listed]).value_counts()
    for reason, number in counts.head(5).items():
        say(f"    {number}: {printable_line(str(reason))[:100]}")
