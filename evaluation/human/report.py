"""The report on people and models: one page that opens with the answer, with tables and charts as files."""

from __future__ import annotations

from pathlib import Path

import altair as alt

from annotation.human.records import ITEMS
from annotation.verdicts.tables import SIMULATED
from evaluation.human.agreement import PEOPLE
from evaluation.human.exhibits import all_exhibits
from evaluation.human.material import EMBEDS, HumanMaterial, doubts, headline, read_material
from evaluation.human.records import FILES, HumanRecords
from plumbline.cli import StudyOptions
from plumbline.exhibits.charts import COLOURS, NEUTRAL, Kinds, across_of, dots, figure, layered, rows, tips, upright
from plumbline.exhibits.page import Figure, PageWords, write_outlined
from plumbline.manifest import stage
from plumbline.study import Study

_BLUE, _ORANGE, _GREEN = COLOURS.values()
_EMBEDDING = "A model"
#: The name of each kind of scorer with its shape and colour.
_KINDS = {
    "rater": ("A rater", "circle", _ORANGE),
    PEOPLE: ("Raters' mean", "diamond", _ORANGE),
    "aggregate": ("Raters together", "triangle-up", _ORANGE),
    EMBEDS: (_EMBEDDING, "circle", _BLUE),
    "llm": ("A language model", "square", _GREEN),
    "trivial": ("Without reading", "cross", NEUTRAL),
}
_TIMES_100 = "Score times 100"
_AGAINST = {"over_best": "Best model", "over_median": "Median model"}


def all_figures(material: HumanMaterial) -> dict[str, Figure]:
    """Return the figures by name, in the page's order, without empty ones."""
    figures = {}
    if material.main["score"].notna().any():
        caption = (
            "Scores times 100 of people, models and answers without reading; bar: the range of the embedding models"
        )
        figures["ranges"] = figure(ranges(material), caption)
    if not material.gaps.empty:
        caption = (
            "Points by which the raters' mean is above (right) or below (left) the best model and the median model"
        )
        figures["gaps"] = figure(gap_bars(material), caption)
    return figures


def ranges(material: HumanMaterial) -> alt.LayerChart:
    """Return a chart with one row per task: the models' range as a bar, and each scorer's score (HUME, Figure 2)."""
    scores = material.main[material.main["scorer_kind"].isin(_KINDS) & material.main["score"].notna()]
    scores = scores[scores.index.isin(material.compared.index) | (scores["scorer_kind"] == "rater")]
    frame = scores[["where", "scorer", "score"]].assign(
        kind=[_KINDS[kind][0] for kind in scores["scorer_kind"]], score=100 * scores["score"]
    )
    row = rows("where", frame["where"].unique())
    colours = {name: colour for name, _, colour in _KINDS.values()}
    kinds = Kinds("kind", colours, {name: shape for name, shape, _ in _KINDS.values()}, {"symbolOpacity": 1})
    kinds = kinds.of(frame["kind"])
    embedded = alt.Chart(frame[frame["kind"] == _EMBEDDING]).mark_bar(height=10, opacity=0.25, color=_BLUE)
    reach = embedded.encode(y=row, x=alt.X("min(score):Q", title=_TIMES_100).scale(zero=False), x2="max(score):Q")
    hover = tips("where:N", "kind:N", "scorer:N", "score:Q:.2f")
    points = dots(frame, across_of("score", _TIMES_100, zero=False), row, kinds, tooltip=hover)
    return layered([reach, *points], frame["where"].nunique())


def gap_bars(material: HumanMaterial) -> alt.LayerChart:
    """Return a chart with one row per task: people minus the best and the median model (HUME, Figures 13 and 14)."""
    columns = ["task", *_AGAINST]
    long = material.gaps[columns].melt(id_vars="task", var_name="over", value_name="points")
    frame = long.assign(points=100 * long["points"], against=long["over"].map(_AGAINST))
    order = list(material.gaps.sort_values("over_best", ascending=False, kind="stable")["task"])
    kinds = Kinds("against", dict(zip(_AGAINST.values(), (_ORANGE, _BLUE), strict=True)), {})
    across = across_of("points", "Raters' mean minus model, points")
    offset, hover = alt.YOffset("against:N", sort=[*kinds.colours]), tips("task:N", "against:N", "points:Q:+.2f")
    drawn = alt.Chart(frame).mark_bar().encode(y=rows("task", order), yOffset=offset, x=across)
    bars = drawn.encode(color=kinds.colour, tooltip=hover)
    return layered([bars, upright(0.0, across)], len(order))


FOLDER = "report_human"
#: Headings with the names of their figures and tables.
OUTLINE = {
    "People and models": ("ranges", "ceiling"),
    "Differences": ("gaps", "models"),
    "Position of people among models": ("groups", "standing"),
    "Agreement": ("agreement",),
    "Language models as annotators": ("annotators_by_type", "difficulty"),
    "Items answered differently": ("items",),
    "Other metrics": ("other_metrics",),
    "As in HUME": ("as_hume",),
    "Tasks": ("tasks",),
}
_ABOUT = (
    "As in HUME, people did the tasks on which embedding models are scored, with the same items and candidates;"
    " docs/method/human_ceiling.md lists the differences from HUME."
)


def report_study(*, options: StudyOptions) -> StudyOptions:
    """Write the report on people and models on the same items.

    The report has tables (CSV, Markdown, LaTeX), figures (SVG, PNG) and one HTML page.

    Example: plumbline human-report --study studies/human.yaml

    Args:
        options: The study.
    """
    study = options.load()
    study.refuse_unfit("human-report")
    inputs = [study.folder / name for name in (*FILES, ITEMS)]
    with stage(study, "evaluation human report", inputs, [study.folder / FOLDER]):
        page, material = write_report(study)
    print("\n".join(headline(material)))
    print(f"-> {page}")
    return options


def write_report(study: Study) -> tuple[Path, HumanMaterial]:
    """Write the report of an evaluated human study; return (its page, its material). Deletes an earlier report.

    Raises DataError before the study is evaluated, for edited tables, and if a data set's file was changed.
    """
    records = HumanRecords(study)
    records.refuse_changed_files()
    material = read_material(records)
    title = f"People and models on the same items: study {study.name}"
    words = PageWords(title, SIMULATED if material.simulated else "", headline(material), doubts(material), _ABOUT)
    page = write_outlined(study.folder / FOLDER, words, OUTLINE, all_exhibits(material), all_figures(material))
    return page, material
