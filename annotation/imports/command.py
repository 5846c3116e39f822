"""`plumbline import FILE ... --out studies/mine.yaml`: ratings from anywhere as a study."""

from __future__ import annotations

import argparse
import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from annotation.imports.answers import ImportedQuestion, distinct, question_name, read_question
from annotation.imports.columns import Proposal, proposal_rows, propose, unused_lines
from annotation.imports.files import read_file
from annotation.imports.matching import Material, match, without_repeats
from annotation.imports.options import read_scale
from annotation.imports.tables import CellTable, UnplacedRow
from annotation.imports.writing import lay_out, refuse_sources, write_records, write_study_files
from annotation.names import named_pseudonym, pseudonym_key, worker_pseudonym
from annotation.options import home_of
from annotation.server import Home
from generation.flags import identify
from plumbline import cli
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.files import csv_bytes
from plumbline.languages import language_code, language_name
from plumbline.reading import read_yaml
from plumbline.store import atomic
from plumbline.study import Study, load_study
from plumbline.words import printable_line

COLUMNS = "columns.yaml"
LISTED = "not_imported.csv"
_READ = 200  # texts by which the language is told


def import_files(options: argparse.Namespace) -> int:
    """Read files, say what they hold, and write the study where nothing is doubtful."""
    out = Path(options.out)
    if out.suffix not in (".yaml", ".yml"):
        raise StudyError(f"--out {out}: a study is a YAML file, such as studies/mine.yaml")
    settings = _settings(options)
    if out.exists() and not options.replace and not options.dry_run:
        raise StudyError(f"{out} is there already; take another name, or write it anew with --replace")
    tables = list(itertools.chain.from_iterable(read_file(Path(name), options.sheet) for name in options.files))
    refuse_sources([table.path for table in tables])
    proposals = [propose(table, {c: r for c, r in settings["columns"].items() if c in table.cells}) for table in tables]
    _refuse_strange(settings["columns"], tables)
    rated = [proposal.has_answers for proposal in proposals]
    for table, proposal in zip(tables, proposals, strict=True):
        _show(table, proposal)
    _write_columns(out, settings, tables, proposals)
    doubts = [
        doubt
        for proposal, rates in zip(proposals, rated, strict=True)
        if rates or not any(rated)
        for doubt in proposal.doubts
    ]
    if doubts:
        hint = (
            f"or correct {out.with_suffix('') / COLUMNS} and run again with --columns {out.with_suffix('') / COLUMNS}"
        )
        raise StudyError(f"{'; '.join(dict.fromkeys(doubts))}; {hint}")
    material = match(tables, proposals, raters_per_file=options.raters_per_file)
    del tables, table  # a million rows are not held twice
    return _import(options, out, settings, material)


def _import(options: argparse.Namespace, out: Path, settings: Mapping[str, Any], material: Material) -> int:
    listed = list(material.listed)
    material, questions = read_questions(material, settings["scales"], listed)
    language = settings["language"] or _language(material)
    home = home_of(options)
    for question in questions:
        print(f"  question {question.name}: {question.kind.replace('_', ' ')}, {question.scale}")
    for line in material.notes:
        print(f"  {line}")
    if options.dry_run:
        print("nothing is written (--dry-run)")
        return 0
    if options.replace and out.exists():
        shutil.rmtree(load_study(out, options.exports).folder, ignore_errors=True)
    layout = lay_out(out, material)
    study = write_study_files(layout, material, questions, language, options.exports)
    pseudonyms = pseudonyms_of(home, study, material)
    number = write_records(study, layout, material, questions, pseudonyms)
    _write_listed(study, listed)
    raters = len(set(pseudonyms.values())) if material.has_raters else 0
    item = study.called.item
    who = f" by {raters} raters" if raters else ""
    print(f"{study.name}: {number} ratings of {len(material.items)} {item}s{who} -> {study.file}, {study.folder}")
    _say_listed(study, listed)
    print(f"  texts: {language_name(language)} (--language CODE if they are not)")
    print(f"  next: {study.command('annotation accept')}; then {study.command('annotation report')}")
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the user says of columns, scales and language: in a file, and in options, which go first."""
    content = read_yaml(Path(options.columns)) if options.columns else {}
    if not isinstance(content, dict):
        raise StudyError(f"{options.columns}: is no mapping; `plumbline import` writes such a file")
    columns = dict(content.get("columns") or {}) | dict(options.column)
    scales = {name: read_scale(str(value)) for name, value in (content.get("scales") or {}).items()} | dict(
        options.scale
    )
    language = options.language or str(content.get("language") or "")
    return {"columns": columns, "scales": scales, "language": language_code(language) if language else ""}


def _refuse_strange(columns: Mapping[str, str], tables: Sequence[CellTable]) -> None:
    for column in columns:
        if not any(column in table.cells for table in tables):
            propose(tables[0], {column: columns[column]})  # raises with the nearest


def _show(table: CellTable, proposal: Proposal) -> None:
    print(f"{table.path}: {table.form}, {len(table.cells)} rows")
    for line in table.notes:
        print(f"  {line}")
    header, rows = proposal_rows(table, proposal)
    print(cli.columns(header, rows))
    for line in unused_lines(proposal):
        print(f"  {line}")


def _write_columns(
    out: Path, settings: Mapping[str, Any], tables: Sequence[CellTable], proposals: Sequence[Proposal]
) -> None:
    """Write what each column is taken for, to be corrected and given back."""
    columns = {column: role for proposal in proposals for column, role in proposal.roles.items()}
    content = {
        "columns": columns,
        "scales": {name: f"{low:g}..{high:g}" for name, (low, high) in settings["scales"].items()},
    }
    content |= {"language": settings["language"]}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=118)
    head = (
        f"# What the columns of {', '.join(table.path.name for table in tables)} are taken for by `plumbline import`."
    )
    with atomic(out.with_suffix("") / COLUMNS, public=True) as file:
        file.write(f"{head}\n# Correct it and give it back: --columns {out.with_suffix('') / COLUMNS}\n{text}".encode())


def read_questions(
    material: Material, scales: Mapping[str, tuple[float, float]], listed: list[UnplacedRow]
) -> tuple[Material, list[ImportedQuestion]]:
    """The questions, and the material without what is no answer to them, which is listed."""
    answers = without_repeats(material.answers, listed)
    titles = [str(title) for title in answers["question"].array.categories]
    titles = [
        title
        for title, number in zip(titles, answers["question"].value_counts().reindex(titles), strict=True)
        if number
    ]
    names = distinct([question_name(title) for title in titles])
    if strange := [name for name in scales if name not in titles and name not in names]:
        raise StudyError(f"--scale: no question {strange[0]!r}; there are {', '.join(titles)}")
    questions, wrong = [], pd.Series(False, answers.index)
    for title, name in zip(titles, names, strict=True):
        mask = answers["question"] == title
        cells = answers.loc[mask, "cell"].cat.remove_unused_categories()
        question = read_question(title, name, cells, scales.get(title) or scales.get(name))
        off = cells.isin(list(question.wrong))
        for file, line, cell in answers.loc[off.index[off], ["file", "line", "cell"]].itertuples(
            index=False, name=None
        ):
            listed.append(UnplacedRow(str(file), int(line), question.wrong[str(cell)], title))
        wrong[off.index[off]] = True
        questions.append(question)
    remaining = answers[~wrong].reset_index(drop=True)
    if remaining.empty:
        raise DataError("no answer in the files can be read; name the columns with --column answer=NAME")
    rated, numbers = remaining["item"].unique(), remaining["item"].to_numpy()
    places = pd.Series(range(len(rated)), index=rated)
    items = material.items.iloc[rated].reset_index(drop=True)
    remaining = remaining.assign(item=places.reindex(numbers).to_numpy())
    return replace(material, items=items, answers=remaining, listed=tuple(listed)), questions


def pseudonyms_of(home: Home, study: Study, material: Material) -> dict[str, str]:
    """Pseudonyms by the raters' ids in the files; ids that differ in capitals alone are one person's."""
    key = pseudonym_key(home)
    names = [str(name) for name in material.answers["rater"].array.categories]
    people = len({name.casefold() for name in names})
    if material.has_raters:
        pseudonyms = {name: named_pseudonym(key, study.name, name) for name in names}
        if len(set(pseudonyms.values())) == people:
            return pseudonyms
    return {name: worker_pseudonym(key, study.name, "import", name.casefold()) for name in names}


def _language(material: Material) -> str:
    """The language that most texts seem to be in. Raises DataError where there is no telling."""
    texts = [name for name in ("output", "text", "original") if material.items[name].notna().any()]
    if not texts:
        return "en"
    some = material.items[texts[0]].dropna().astype(str).head(_READ)
    codes = pd.Series([code for text in some if (code := identify(text))])
    counts = codes.value_counts()
    if counts.empty or counts.iloc[0] < 0.8 * len(codes):
        likely = f" (perhaps {counts.index[0]})" if len(counts) else ""
        raise StudyError(f"the texts do not tell for certain which language they are in{likely}; add --language CODE")
    return str(counts.index[0])


def _write_listed(study: Study, listed: Sequence[UnplacedRow]) -> None:
    frame = pd.DataFrame(
        [(entry.file, entry.line, entry.column, entry.reason) for entry in listed],
        columns=["file", "line", "column", "reason"],
    )
    with atomic(study.folder / LISTED) as file:
        file.write(csv_bytes(frame))


def _say_listed(study: Study, listed: Sequence[UnplacedRow]) -> None:
    if not listed:
        print("  every row is in the study")
        return
    print(f"  {len(listed)} answers are not in it, each with its reason -> {study.folder / LISTED}")
    counts = pd.Series([entry.reason.partition(" is in line")[0] for entry in listed]).value_counts()
    for reason, number in counts.head(5).items():
        print(f"    {number}: {printable_line(str(reason))[:100]}")
