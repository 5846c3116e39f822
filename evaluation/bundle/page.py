"""The report of an evaluation on a bundle: what it rests on, and the scores, as one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from annotation.verdicts.tables import display
from evaluation.bundle import judged, words
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.evaluate import BundleEvaluation
from evaluation.report import paper_tables
from evaluation.report.paper_tables import PaperResults
from plumbline.exhibits.page import Figure, Section, write_page
from plumbline.exhibits.table import Table
from plumbline.languages import language_name

FILE = "report.html"


def write(bundle: Bundle, made: BundleEvaluation) -> Path:
    """Write the page; where it is."""
    said, warnings = bundle.manifest, words.warnings(bundle)
    scores = pd.concat([made.scores, made.beside], ignore_index=True)
    results = PaperResults(
        scores,
        bundle.verdicts,
        (*warnings, *words.gaps(made), *made.notes),
        made.study.sample.seed,
    )
    shown = [paper_tables.axes(results), paper_tables.transformations(results)]
    if (scores["status"] == "included_rejected").any():
        shown += [
            paper_tables.axes(results, include_rejected=True),
            paper_tables.transformations(results, include_rejected=True),
        ]
    shown += [paper_tables.ranking(results, transformed=False), paper_tables.ranking(results, transformed=True)]
    scored: list[str | Table | Figure] = []
    for one in shown:
        scored += [replace(one.table(), caption=one.caption)] if len(one.frame) else []
    computed = [f"Checked: {line}." for line in (words.COMPUTED, judged.in_words(bundle)) if line]
    sections = [
        Section("What this rests on", [f"Bundle {bundle.identity}.", *computed]),
        Section("What the bundle says of itself", [*map(_sentence, words.claims(bundle)), _sources(bundle)]),
        Section("What people decided", [_verdicts(bundle)]),
        Section("Scores", scored),
    ]
    path = made.study.folder / FILE
    write_page(path, f"Scores on {said.study}, bundle {bundle.short}", " ".join(warnings), sections)
    return path


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:]


def _short(revision: str) -> str:
    """The beginning of a hash, after the repository that it is of."""
    repository, at, digest = revision.rpartition("@")
    return f"{repository}{at}{digest[:12]}"


def _sources(bundle: Bundle) -> Table:
    rows = [
        {"Data set": one.name, "Task": one.task, "Languages": ", ".join(one.languages), "Texts": str(one.n_texts)}
        | {"Licence": one.licence, "Revision": _short(one.revision)}
        for one in bundle.manifest.datasets
    ]
    return Table(pd.DataFrame(rows), "Data sets of the bundle")


def _verdicts(bundle: Bundle) -> Table:
    rows = [
        {"Transformation": display(one.transformation, pooled=False), "Language": language_name(one.language)}
        | {"Decision": one.decision}
        | {"Pairs": str(one.n_pairs), "Why": "; ".join(one.reasons)}
        for one in bundle.verdicts
    ]
    return Table(pd.DataFrame(rows), "Verdicts, computed again from the ratings in the bundle")
