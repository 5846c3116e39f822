"""Describe a bundle, an evaluation on it, and the differences of two bundles, for a terminal or as a page."""

from __future__ import annotations

import math
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from annotation.comparison import CampaignRatings, campaigns_text
from annotation.records import Summary, Verdict
from annotation.verdicts.rules import late_lines, unchecked
from annotation.verdicts.tables import display
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import judges_line
from evaluation.bundle.evaluate import BundleEvaluation
from evaluation.bundle.records import COPY, Fault
from evaluation.display import axis_notes, board_notes, board_rows, hundred, other_originals, points, total_notes
from evaluation.tables import axis_table, left_out, ranking_table, transformation_table
from plumbline.cli import columns
from plumbline.errors import StudyError
from plumbline.exhibits.page import Section, write_page
from plumbline.exhibits.table import Table, reasons
from plumbline.languages import language_name
from plumbline.records import text_id
from plumbline.transformations import Axes
from plumbline.words import printable_line

_BAR = "  | "  # before the bundle's own statements
_CELL = 60  # most letters of a cell, so that no row fills several lines

SIMULATED = "Its ratings are SIMULATED: no person accepted these texts, and scores on them measure nothing."
COMPUTED = "agreement, verdicts and pairs' means match the values computed again from the ratings"


def heading(bundle: Bundle) -> str:
    """Return the bundle's computed identity, and warnings."""
    return "\n".join([f"bundle {bundle.identity}", *map(printable_line, warnings(bundle))])


def claims(bundle: Bundle) -> list[str]:
    """Return the bundle's own statements that nobody can check, one per line."""
    manifest = bundle.manifest
    lines = [
        f"{manifest.study}, edition {manifest.edition}",
        manifest.description,
        f"generator: {manifest.generator_words}; rated from {manifest.rated[0]} to {manifest.rated[1]};"
        f" bundle made with Plumbline {manifest.made_with}",
        f"licence of outputs and ratings: {manifest.licence or 'none given'}; contact:"
        f" {manifest.contact or 'none given'}; raters' comments: {'included' if manifest.comments else 'left out'}",
    ]
    return [line for line in map(printable_line, lines) if line]


def set_apart(lines: Sequence[str]) -> str:
    """Return claims for a terminal, behind a bar that no text can leave on terminals of any width."""
    width = max(20, min(120, shutil.get_terminal_size().columns) - len(_BAR) - 1)
    folded = (f"{_BAR}{part}" for line in lines for part in _folded(line, width))
    return "\n".join(["Stated by the bundle (not checked):", *folded])


def _folded(line: str, width: int) -> list[str]:
    """Return a line in parts that fit; letters of wide scripts take two columns."""
    parts = [""]
    for word in re.findall(r"\S+\s?", line):
        for sign in [word] if _places(word) <= width else word:
            if _places(parts[-1] + sign.rstrip()) > width:
                parts.append("")
            parts[-1] += sign
    return [part.rstrip() for part in parts]


def _places(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(sign) in "FW") for sign in text)


def warnings(bundle: Bundle) -> list[str]:
    """Return the warnings about its verdicts: simulated ratings, and rules that were fixed late."""
    return [*([SIMULATED] if bundle.manifest.simulated else []), *late_lines(bundle.verdicts)]


def contents(bundle: Bundle) -> str:
    """Return tables of its data sets, verdicts and outputs."""
    rows = [
        [
            dataset.name,
            dataset.task,
            ", ".join(dataset.languages),
            str(dataset.n_texts),
            dataset.licence,
            _where(dataset.kind, dataset.texts),
        ]
        for dataset in bundle.manifest.datasets
    ]
    head = ["data set", "task", "languages", "texts", "licence", "location of texts"]
    cells = [[cell if len(cell) <= _CELL else f"{cell[:_CELL]} ..." for cell in row] for row in rows]
    parts = [columns(head, cells), verdict_table(bundle.verdicts), _outputs(bundle)]
    return "\n\n".join(parts)


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return a table of the verdicts with pairs, means and agreement."""
    questions = list(dict.fromkeys(summary.question for verdict in verdicts for summary in verdict.questions))
    rows, both = [], any(verdict.decision_people for verdict in verdicts)
    for verdict in verdicts:
        by_question = {summary.question: summary for summary in verdict.questions}
        where = language_name(verdict.language) + (f" ({verdict.task_type})" if verdict.task_type else "")
        cells = [cell for name in questions for cell in _two(by_question.get(name))]
        alone = [verdict.alone] if both else []
        rows.append([verdict.transformation, where, verdict.decision, *alone, str(verdict.n_pairs), *cells])
    head = [*(["people alone"] if both else []), "pairs", *(word for name in questions for word in (name, "AC2"))]
    table = columns(["transformation", "language", "decision", *head], rows, "no verdict was reached")
    return f"{table}\n{note}" if (note := unchecked(verdicts)) else table


def _two(summary: Summary | None) -> tuple[str, str]:
    """Return a question's mean and agreement."""
    return ("–", "–") if summary is None else (_plain(summary.mean), _plain(summary.ac2.value))


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def checks(bundle: Bundle, faults: Sequence[Fault], signed: str) -> str:
    """Return the checks and their results, one per line."""
    lines = [printable_line(f"wrong  {member} {what}") for member, what in faults]
    if not faults:
        lines = [
            f"ok     {len(bundle.manifest.members)} members match the hashes in the manifest",
            f"ok     {COMPUTED}",
            "ok     marks on ratings match the decisions on raters and pairs; rated pairs match the outputs and texts",
            *([f"ok     {printable_line(of_judges)}"] if (of_judges := judges_line(bundle)) else []),
        ]
    signature = printable_line(signed) or "signature: not checked; add --key to check it"
    return "\n".join(["Checked by this program:", *lines, f"{'ok' if signed else 'open':<5}  {signature}"])


def evaluation(bundle: Bundle, evaluated: BundleEvaluation) -> str:
    """Return the scores of an evaluation, with comparable ones of others."""
    scores = pd.concat([evaluated.scores, evaluated.beside], ignore_index=True)
    named = printable_line(f"{bundle.manifest.study}, edition {bundle.manifest.edition}")
    parts = [f"Scores times 100 on {named}, bundle {bundle.short}."]
    parts += map(printable_line, warnings(bundle))
    for included in [False, True] if (scores["status"] == "included_rejected").any() else [False]:
        if included:
            parts.append("INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS (--include-rejected):")
        parts.append(_axes(scores, bundle.verdicts, include_rejected=included))
        parts.append(_transformations(scores, include_rejected=included))
    parts.append(_ranks(scores, evaluated.study.sample.seed))
    parts += (
        ["\n".join(f"- {printable_line(note)}" for note in notes)]
        if (notes := [*gaps(evaluated), *evaluated.notes])
        else []
    )
    return "\n\n".join(parts)


def gaps(evaluated: BundleEvaluation) -> list[str]:
    """Return the units left out, dropped or included despite the verdict, with reasons."""
    rows = left_out(evaluated.scores).to_dict(orient="records")
    return [f"{row['transformation']}, {row['status'].replace('_', ' ')}: {row['reason']}" for row in rows]


def _axes(scores: pd.DataFrame, verdicts: Sequence[Verdict], *, include_rejected: bool) -> str:
    table = axis_table(scores, verdicts, include_rejected=include_rejected)
    axes, rows, shown = Axes.of_columns(table), table.to_dict(orient="records"), []
    notes = [*total_notes(axes), *axis_notes(rows, {name: name for name in axes.names})]
    for row in rows:
        mark = " [not accepted]" if row["included_rejected"] else ""
        moved = [f"{hundred(row[name])} ({points(row[f'{name}_difference'])})" for name in axes.names]
        shown.append([f"{row['model']}{mark}", hundred(row["original"]), *moved])
        notes += other_originals(row, axes.names)
    caption = "By axis (in brackets: points from the original score on the same data sets and items)"
    lines = [f"  {note}" for note in dict.fromkeys(notes)]
    return "\n".join([caption, columns(["model", "original", *axes.names], shown), *lines])


def _transformations(scores: pd.DataFrame, *, include_rejected: bool) -> str:
    table = transformation_table(scores, include_rejected=include_rejected)
    rows = [
        [
            row["model"],
            row["transformation"] + (" [not accepted]" if row["included_rejected"] else ""),
            str(row["n_datasets"]),
            hundred(row["original"]),
            hundred(row["score"]),
            points(row["difference"]),
        ]
        for row in table.to_dict(orient="records")
    ]
    head = ["model", "transformation", "data sets", "original", "score", "difference"]
    caption = "By transformation (original: score on the same data sets and items)\n"
    return caption + columns(head, rows, "no transformation was evaluated")


def _ranks(scores: pd.DataFrame, seed: int) -> str:
    """Return the models' ranks on the transformed data sets."""
    table = ranking_table(scores, transformed=True, seed=seed)
    kinds = [name for name in scores["task_type"].unique() if name in table.columns]
    rows = board_rows(table, kinds, str)
    head = list(rows[0]) if rows else ["Model"]
    says = board_notes(table, int(table["n_datasets"].max()) if len(table) else 0)
    lines = [f"  {note}" for note in (*says, *reasons(table["model"], table["reason"]))]
    shown = columns(head, [list(row.values()) for row in rows])
    return "\n".join(["Ranks on the accepted transformations (axis-balanced scores)", shown, *lines])


def _outputs(bundle: Bundle) -> str:
    """Return a table of each transformation's outputs, failures and error types."""
    study, rows = bundle.evidence.study, []
    for name in study.transformations:
        n, failed, flags = 0, 0, Counter[str]()
        for seed in study.seeds:
            table = bundle.outputs(name, seed, ("status", "flags"))
            n += table.num_rows
            failed += pc.sum(pc.equal(table["status"], "failed")).as_py() or 0
            counted = pc.value_counts(pc.list_flatten(table["flags"])).to_pylist()
            flags.update({entry["values"]: entry["counts"] for entry in counted})
        counts = ", ".join(f"{flag} {count}" for flag, count in flags.most_common())
        rows.append([name, str(n), str(failed), counts or "none"])
    return columns(["transformation", "outputs", "failed", "error types (on the last attempt)"], rows)


def _where(kind: str, texts: str) -> str:
    if kind == "mteb":
        return "on the hub" + (" only" if texts == "reference" else ", and in the bundle")
    return "in the bundle" if texts == "include" else "in your own copy (--data)"


FILE = "report.html"


def write_report(bundle: Bundle, evaluated: BundleEvaluation) -> Path:
    """Write the page of an evaluation and return its path. Raises ModuleNotFoundError without the drawing packages."""
    from evaluation.report import paper_tables  # noqa: PLC0415 (extra `report`)

    manifest, warned = bundle.manifest, warnings(bundle)
    scores = pd.concat([evaluated.scores, evaluated.beside], ignore_index=True)
    results = paper_tables.PaperResults(
        scores,
        bundle.verdicts,
        (*warned, *gaps(evaluated), *evaluated.notes),
        evaluated.study.sample.seed,
    )
    shown = [paper_tables.axes(results), paper_tables.transformations(results)]
    if (scores["status"] == "included_rejected").any():
        shown += [write(results, include_rejected=True) for write in (paper_tables.axes, paper_tables.transformations)]
    shown += [paper_tables.ranking(results, transformed=transformed) for transformed in (False, True)]
    noted = [paper_tables.with_notes(exhibit, results.notes) for exhibit in shown if len(exhibit.frame)]
    scored = [replace(exhibit.table(), caption=exhibit.caption) for exhibit in noted]
    computed = [f"Checked: {line}." for line in (COMPUTED, judges_line(bundle)) if line]
    sections = [
        Section("Checks", [f"Bundle {bundle.identity}.", *computed]),
        Section("Stated by the bundle (not checked)", [*map(_sentence, claims(bundle)), _sources(bundle)]),
        Section("Verdicts", [_verdict_rows(bundle)]),
        Section("Scores", scored),
    ]
    path = evaluated.study.folder / FILE
    write_page(path, f"Scores on {manifest.study}, bundle {bundle.short}", " ".join(warned), sections)
    return path


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:]


def _short(revision: str) -> str:
    """Return the beginning of a hash, with its repository."""
    repository, at, digest = revision.rpartition("@")
    return f"{repository}{at}{digest[:12]}"


def _sources(bundle: Bundle) -> Table:
    rows = [
        {
            "Data set": dataset.name,
            "Task": dataset.task,
            "Languages": ", ".join(dataset.languages),
            "Texts": str(dataset.n_texts),
        }
        | {"Licence": dataset.licence, "Revision": _short(dataset.revision)}
        for dataset in bundle.manifest.datasets
    ]
    return Table(pd.DataFrame(rows), "Data sets of the bundle")


def _verdict_rows(bundle: Bundle) -> Table:
    rows = [
        {"Transformation": display(verdict.transformation, pooled=False), "Language": language_name(verdict.language)}
        | {"Decision": verdict.decision}
        | {"Pairs": str(verdict.n_pairs), "Reasons": "; ".join(verdict.reasons)}
        for verdict in bundle.verdicts
    ]
    return Table(pd.DataFrame(rows), "Verdicts, computed again from the ratings in the bundle")


_FACTS = ("study", "edition", "licence", "contact", "simulated", "comments", "rated", "made_with")


def difference(first: Bundle, second: Bundle) -> str:
    """Return all differences of two bundles, for a terminal."""
    if first.identity == second.identity:
        return f"The same bundle, {first.identity}."
    parts = [_facts(first, second), _verdicts(first, second), _other_outputs(first, second)]
    try:
        both = [
            CampaignRatings.of(bundle.evidence.study, bundle.evidence.collected, bundle.rubric)
            for bundle in (first, second)
        ]
        parts.append(f"Ratings of the pairs in both bundles\n{campaigns_text(*both)}")
    except StudyError as error:
        parts.append(f"Ratings are not compared: {error}")
    if first.manifest.simulated or second.manifest.simulated:
        parts.append(SIMULATED.replace("Its ratings", "Ratings"))
    parts += late_lines([*first.verdicts, *second.verdicts])
    return "\n\n".join(parts)


def compared(bundle: Bundle, second: CampaignRatings) -> str:
    """Compare a bundle's ratings with another campaign's on the pairs in both. Raises as `campaigns_text`."""
    first = CampaignRatings.of(bundle.evidence.study, bundle.evidence.collected, bundle.rubric)
    return f"Ratings of the pairs in both the bundle and the study\n{campaigns_text(first, second)}"


def _facts(first: Bundle, second: Bundle) -> str:
    """Return a table of the facts in which the manifests differ."""
    here, there_ = first.manifest, second.manifest
    rows = [["bundle", first.short, second.short]]
    rows += [
        [name, _cell(a), _cell(b)] for name in _FACTS if (a := getattr(here, name)) != (b := getattr(there_, name))
    ]
    both = (
        (name, here.generator.get(name), there_.generator.get(name)) for name in {**here.generator, **there_.generator}
    )
    rows += [[f"generator's {name}", _cell(a), _cell(b)] for name, a, b in both if a != b]
    rules = [bundle.settings.get("acceptance", {}) for bundle in (first, second)]
    named = dict.fromkeys([*rules[0], *rules[1]])
    both = ((name, rules[0].get(name), rules[1].get(name)) for name in named)
    rows += [[f"acceptance.{name}", _cell(a), _cell(b)] for name, a, b in both if a != b]
    if first.rubric.identity() != second.rubric.identity():
        rows.append(["rubric", *(f"{two.rubric.name} ({two.rubric.identity()[:8]})" for two in (first, second))])
    for name in [name for name in first.transformations if name in second.transformations]:
        prompts = [two.transformations[name].prompt_hash[:8] for two in (first, second)]
        rows += [[f"{name}: prompts", *map(_cell, prompts)]] if prompts[0] != prompts[1] else []
    theirs, ours = {two.name: two for two in there_.datasets}, {two.name: two for two in here.datasets}
    for name in {**ours, **theirs}:
        a, b = ours.get(name), theirs.get(name)
        if a is None or b is None:
            rows.append([name, "present" if a else "–", "present" if b else "–"])
        elif a.revision != b.revision:
            rows.append([f"{name}: revision", a.revision[-16:], b.revision[-16:]])
    return columns(["difference", "first", "second"], rows)


def _verdicts(first: Bundle, second: Bundle) -> str:
    """Return decisions and means of both, one row per transformation and language."""
    ours, theirs = ({_place(verdict): verdict for verdict in bundle.verdicts} for bundle in (first, second))
    questions = list(dict.fromkeys(summary.question for verdict in first.verdicts for summary in verdict.questions))
    rows = []
    for key in {**ours, **theirs}:
        a, b = ours.get(key), theirs.get(key)
        means = [f"{_mean(a, name)} and {_mean(b, name)}" for name in questions]
        changed = "" if a is not None and b is not None and a.decision == b.decision else "differs"
        decisions = [verdict.decision if verdict else "–" for verdict in (a, b)]
        rows.append([key[0], language_name(key[1]) + (f" ({key[2]})" if key[2] else ""), *decisions, changed, *means])
    return columns(
        ["transformation", "language", "first", "second", "", *questions], rows, "neither bundle has verdicts"
    )


def _other_outputs(first: Bundle, second: Bundle) -> str:
    """Return a table of equal and different outputs by transformation, over the texts and seeds of both."""
    ours, theirs = first.evidence.study, second.evidence.study
    rows = []
    for name in [name for name in ours.transformations if name in theirs.transformations]:
        n = same = lost = 0
        for seed in [seed for seed in ours.seeds if seed in theirs.seeds]:
            both = _made(first, name, seed).merge(_made(second, name, seed), on=["text_id", "dataset"])
            n += len(both)
            same += int((_same(both) & (both["status_x"] == both["status_y"])).sum())
            lost += int((both["status_x"] != both["status_y"]).sum())
        rows.append([name, str(n), str(same), str(n - same - lost), str(lost)])
    head = ["transformation", "texts in both", "same output", "other output", "failed in one"]
    return columns(head, rows, "the bundles share no transformation")


def _made(bundle: Bundle, name: str, seed: int) -> pd.DataFrame:
    columns = ("text_id", "datasets", "source_language", "output", "status", COPY)
    frame: pd.DataFrame = bundle.outputs(name, seed, columns).to_pandas()
    return frame.explode("datasets").rename(columns={"datasets": "dataset"})


def _same(both: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows have equal outputs, where one may be only the hash of a text that may not be shared."""
    for here, beside in (("x", "y"), ("y", "x")):
        hashed = both[(both[f"{COPY}_{here}"] == "") & (both[f"{COPY}_{beside}"] != "")]
        codes = zip(hashed[f"output_{here}"], hashed[f"source_language_{here}"], strict=True)
        both.loc[hashed.index, f"{COPY}_{here}"] = [text_id(words, code) for words, code in codes]
    outputs = both["output_x"].where(both[f"{COPY}_x"] == "", both[f"{COPY}_x"])
    return outputs == both["output_y"].where(both[f"{COPY}_y"] == "", both[f"{COPY}_y"])


def _place(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.transformation, verdict.language, verdict.task_type


def _mean(verdict: Verdict | None, question: str) -> str:
    means = [summary.mean for summary in verdict.questions if summary.question == question] if verdict else []
    return "–" if not means or math.isnan(means[0]) else f"{means[0]:.2f}"


def _cell(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " to ".join(map(str, value))
    return "–" if value in (None, "") else str(value)
