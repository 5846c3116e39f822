"""`plumbline ratings-report`: one HTML page for readers and reviewers, and its tables as CSV, in `report/`.

Raters are in it by pseudonym. Their comments are not: people write names into them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pandas as pd

from annotation.records import P_IS
from annotation.report import exhibits, raters
from annotation.report.charts import (
    mean_intervals,
    means_in_words,
    rating_shares,
    shares_in_words,
)
from annotation.report.exhibits import means_frame, shares_frame, stamp
from annotation.report.material import CampaignMaterial, read_material
from annotation.report.methods import INTERVALS, listed, methods
from annotation.status.status import read_status
from annotation.status.text import headline
from annotation.verdicts.doubts import looked_for
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import amendment_lines, amendments, fixed_text
from annotation.verdicts.rules import late_lines, unchecked
from annotation.verdicts.tables import (
    SIMULATED,
    agreement_exhibit,
    display,
    looks_exhibit,
    looks_frame,
    rule_chances,
    unbiased_exhibit,
)
from plumbline.exhibits.page import Figure, Section, write_page
from plumbline.exhibits.table import Exhibit, Table, csv_bytes, write_files
from plumbline.fields import fields_of
from plumbline.study import Study
from plumbline.words import count

EACH = 3  # pairs of each kind
_LONGEST = 300  # characters of a text on the page; the CSV file has all
_COLUMNS = ["why", "pair_id", "transformation", "language", "question", "mean", "sd", "n_ratings", "texts"]


def examples_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return the pairs with the highest and lowest means and with the largest differences, a row each.

    They are chosen by the first question with a scale, among pairs with at least `acceptance.min_raters` ratings; among
    equal pairs the first by id. A pair appears under one heading only.
    """
    caption = f"Examples: the best, the worst and the most disputed {material.study.called.item}s"
    frame = examples(material)
    printed = pd.DataFrame(
        {
            "": frame["why"],
            material.study.called.judged.capitalize(): [
                display(name, pooled=False) for name in frame["transformation"]
            ],
            "Mean": frame["mean"].map("{:.2f}".format),
            "SD": frame["sd"].map("{:.2f}".format),
            "Ratings": frame["n_ratings"].map(str),
            "Texts": [_cut(text) for text in frame["texts"]],
        }
    )
    return Exhibit("examples", caption, frame, printed)


def examples(material: CampaignMaterial) -> pd.DataFrame:
    """Return the examples with whole texts: why, pair_id, transformation, language, question, mean, sd, ...

    `sd` is the sample standard deviation of the pair's ratings; `texts` is what raters read, field by field.
    """
    if not material.questions:
        return pd.DataFrame(columns=_COLUMNS)
    question = material.questions[0]
    ratings = material.counting[(material.counting["question"] == question) & material.counting["value"].notna()]
    rated = ratings.groupby("pair_id", observed=True)["value"].agg(["mean", "std", "size"]).astype(float).reset_index()
    rated = rated[rated["size"] >= max(2, material.study.acceptance.min_raters)]
    rated.columns = pd.Index(["pair_id", "mean", "sd", "n_ratings"])
    kinds = (
        ("most disputed", ["sd", "pair_id"], [False, True]),
        ("best", ["mean", "pair_id"], [False, True]),
        ("worst", ["mean", "pair_id"], [True, True]),
    )
    parts = {}
    for why, by, ascending in kinds:
        some = rated[rated["sd"] > 0] if why == "most disputed" else rated
        parts[why] = some.sort_values(by, ascending=ascending).head(EACH).assign(why=why)
        rated = rated[~rated["pair_id"].isin(parts[why]["pair_id"])]
    chosen = pd.concat([parts["best"], parts["worst"], parts["most disputed"]])
    pairs = {pair.pair_id: pair for pair in material.pairs}
    shown = [pairs[pair_id] for pair_id in chosen["pair_id"]]
    return chosen.assign(
        question=question,
        n_ratings=chosen["n_ratings"].astype(int),
        transformation=[pair.transformation for pair in shown],
        language=[pair.language for pair in shown],
        texts=["\n".join(f"{field.name}: {field.text}" for field in fields_of(pair)) for pair in shown],
    )[_COLUMNS].reset_index(drop=True)


def _cut(text: str) -> str:
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in text.splitlines())


FOLDER = "report"
_P_BY = "P and the intervals come from one test over the means of pairs."
_EXAMPLES = (
    "Examples illustrate the means: they are pairs with enough raters, chosen by their ratings on the first"
    " question. SD is the standard deviation of the pair's own ratings. Long texts are cut; the CSV file has them in"
    " full."
)
_ANSWERS = (
    "Answers about candidates are combined, because a candidate's number is only its place in a random order; so are"
    " answers about groups, which each rater numbers anew. For items with candidates, a verdict's rule on"
    " cannot_tell is about the first candidate. Raters' agreement is in the report on people and models (plumbline"
    " human-report)."
)
SHARES, MEANS = "ratings_by_point", "means"  # files with the numbers of the figures


def write_report(study: Study, now: datetime | None = None) -> Path:
    """Write `report/index.html` and a CSV file for each of its tables and figures; returns the page.

    Raises DataError before there are verdicts, and for verdicts that no longer follow from what is on disk.
    """
    evidence = Evidence(study)
    material = read_material(evidence, now)
    tables, drawn = all_tables(material), figure_frames(material)
    folder = study.folder / FOLDER
    frames = {table.name: table.frame for table in tables.values()} | drawn
    write_files(folder, {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()})
    page = folder / "index.html"
    title = f"What people decided: study {study.name}"
    status = read_status(evidence, material.read_at, material.verdicts)
    short = Section("In short", [*headline(status, material.verdicts, reported=True)])
    warning = " ".join([*([SIMULATED] if material.simulated else []), *late_lines(material.verdicts)])
    write_page(page, title, warning, [short, *sections(material, tables, drawn)])
    return page


def all_tables(material: CampaignMaterial) -> dict[str, Exhibit]:
    """Return the tables by name, in the page's order; some may be empty."""
    verdicts, called = material.verdicts, material.study.called
    candidates = [
        exhibits.verdicts_exhibit(material),
        examples_exhibit(material),
        exhibits.table_two_exhibit(material),
        agreement_exhibit(material.groups, material.study.called),
        exhibits.labels_exhibit(material),
        looks_exhibit(looks_frame(verdicts), called),
        unbiased_exhibit(verdicts, called),
        raters.reliability_exhibit(material),
        raters.truth_exhibit(material),
        exhibits.raters_exhibit(material),
        exhibits.signs_exhibit(material),
        exhibits.decisions_exhibit(material),
        exhibits.exclusions_exhibit(material),
        exhibits.rules_exhibit(material),
        exhibits.wording_exhibit(material),
        exhibits.amendments_exhibit(material),
        *([exhibits.training_exhibit(material)] if material.trained else []),
        *([raters.campaigns_exhibit(material)] if material.crowd else []),
        *([raters.means_exhibit(material, material.judges)] if material.judges is not None else []),
    ]
    tables = {table.name: table for table in candidates}
    # Leave out tables of labels if all questions have scales, and tables of ratings if none has.
    some = ("looks_after_blocks", "unbiased_means", "labels", "examples", "reliability", "truth")
    out = {name for name in some if not len(tables[name].frame)}
    out |= set() if material.questions else {"table_2", "agreement"}
    return {name: table for name, table in tables.items() if name not in out}


def figure_frames(material: CampaignMaterial) -> dict[str, pd.DataFrame]:
    """Return the figures' frames by file; none without ratings on a scale."""
    if not material.questions:
        return {}
    return {SHARES: shares_frame(material), MEANS: means_frame(material.verdicts)}


def sections(
    material: CampaignMaterial, tables: Mapping[str, Exhibit], drawn: Mapping[str, pd.DataFrame]
) -> list[Section]:
    """Return the page's sections in order."""
    return [
        _about(material),
        _doubtful(material),
        _decided(material, tables, drawn),
        *raters.judges_section(material, tables),
        *([Section("Examples", [_EXAMPLES, tables["examples"].table()])] if "examples" in tables else []),
        Section("Methods", methods(material), folded=True),
        _table_two(material, tables, drawn),
        *_looks(material, tables),
        *raters.reliability_sections(material, tables),
        _raters(material, tables),
        _exclusions(material, tables),
        *([Section("Crowd work", [tables["crowd_campaigns"].table()])] if material.crowd else []),
        _rules(material, tables),
    ]


def _about(material: CampaignMaterial) -> Section:
    parts = [
        material.study.description,
        f"Plumbline wrote this report on {stamp(material.read_at)}. Each table is also a CSV file beside this page,"
        " with all digits.",
        "Raters appear under pseudonyms. Their comments are left out of this report, because they may contain names.",
    ]
    return Section("This report", [part for part in parts if part])


def _doubtful(material: CampaignMaterial) -> Section:
    """Return the section on doubts, which comes before the verdicts so that nobody reads these without it."""
    parts = (
        ["\n".join(f"– {line}." for line in material.doubts)]
        if material.doubts
        else [f"Nothing. {looked_for(material.study.judging)}"]
    )
    return Section("What is doubtful", parts)


def _decided(material: CampaignMaterial, tables: Mapping[str, Exhibit], drawn: Mapping[str, pd.DataFrame]) -> Section:
    counts = Counter(verdict.decision for verdict in material.verdicts)
    parts_of_counts = [f"{counts[name]} {name}" for name in ("accepted", "rejected", "undecided") if counts[name]]
    parts: list[str] = (
        [
            f"{count(len(material.verdicts), 'verdict')}, for {material.study.acceptance.speaks_for}:"
            f" {listed(parts_of_counts)}."
        ]
        if parts_of_counts
        else []
    )
    parts += [note] if (note := unchecked(material.verdicts)) else []
    parts += amendment_lines(material.rules, material.first)
    parts += dict.fromkeys(
        f"No P of {rule}: {chance.reason}."
        for verdict in material.verdicts
        for rule, chance in rule_chances(verdict)
        if chance.reason
    )
    parts.append(
        f"{P_IS} {_P_BY} Failed is the share of {material.study.judging.failed} and were not rated."
        f" {material.study.called.item.capitalize()}s are those with enough raters. All intervals are 95% intervals."
    )
    figures = _mean_figures(material, drawn[MEANS]) if MEANS in drawn else []
    return Section("What was decided", [*parts, *figures, tables["verdicts"].table()])


def _table_two(material: CampaignMaterial, tables: Mapping[str, Exhibit], drawn: Mapping[str, pd.DataFrame]) -> Section:
    if not material.groups:
        return Section("Ratings and agreement", ["There are no ratings that count."])
    labels = [tables["labels"].table()] if "labels" in tables else []
    rated = [tables[name].table() for name in ("table_2", "agreement") if name in tables]
    if material.study.judging.does_tasks:
        return Section("What people answered", [_ANSWERS, *labels])
    figures = _share_figures(material, drawn[SHARES]) if SHARES in drawn else []
    return Section("Ratings and agreement", [*figures, *rated, *labels])


def _looks(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> list[Section]:
    """Return the section on looks after blocks; none without looks."""
    if "looks_after_blocks" not in tables:
        return []
    parts: list[str | Table] = [tables["looks_after_blocks"].table()]
    if "unbiased_means" in tables:
        parts.append(tables["unbiased_means"].table())
    return [Section("Looks after blocks", parts)]


def _share_figures(material: CampaignMaterial, shares: pd.DataFrame) -> list[Figure]:
    """Return a figure for each question: the share of each point."""
    scales = {question: material.rubric.scale_of(question) for question in material.questions}
    return [
        Figure(
            rating_shares(group, scales[question]),
            f"{question.capitalize()}: shares of the points {scales[question][0]} to {scales[question][-1]} by"
            f" {material.study.called.judged}; n counts"
            f" single ratings ({SHARES}.csv).",
            f"{question.capitalize()}. {shares_in_words(group)}",
        )
        for question in material.questions
        if len(group := shares[shares["question"] == question])
    ]


def _mean_figures(material: CampaignMaterial, means: pd.DataFrame) -> list[Figure]:
    """Return a figure for each question: means against the threshold."""
    return [
        Figure(
            mean_intervals(group, material.rubric.scale_of(question)),
            f"{question.capitalize()}: mean of the ratings that each verdict rests on, with its 95% interval; the"
            f" dashed line is the threshold. Intervals are {INTERVALS[group['interval'].iloc[0]]} ({MEANS}.csv).",
            f"{question.capitalize()}. {means_in_words(group)}",
        )
        for question in material.questions
        if len(group := means[means["question"] == question])
    ]


def _raters(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> Section:
    signs = [tables["signs"].table() if material.signs else "No rater's answers show a sign of carelessness."]
    over = f"{material.study.called.item}s"
    about = f"Seconds are the time since the rater's previous answer, where known; the median is over {over}."
    training = [tables["training"].table()] if material.trained else []
    if material.unlooked:
        signs.append(f"Signs that could not be checked: {'; '.join(material.unlooked)}.")
    return Section("Raters", [about, tables["raters"].table(), *training, *signs])


def _exclusions(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> Section:
    about = "“Results seen” says whether verdicts had been reached before a decision was made."
    some = material.decisions or material.withdrawals
    decided = [about, tables["decisions"].table()] if some else ["No decision about a rater or a pair is on record."]
    return Section("Decisions and exclusions", [*decided, tables["exclusions"].table()])


def _rules(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> Section:
    if material.holds is None:
        return Section("Rules", ["The study fixed no rules before these verdicts."])
    parts = [fixed_text(material.rules, material.every)]
    if material.holds.reason:
        parts.append(f"The rules now in force were fixed on {stamp(material.holds.fixed_at)}.")
    changed = amendments(material.rules, material.first)
    changes = [tables["amendments"].table()] if changed else ["The rules were not changed after the first rating."]
    return Section("Rules", [*parts, *changes, tables["rules"].table(), tables["wording"].table()], folded=True)
