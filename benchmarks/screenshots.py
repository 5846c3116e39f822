"""`python -m benchmarks.screenshots --study studies/demo.yaml`: pictures of pages, reports and ratings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import altair as alt
import cyclopts
import pandas as pd
from playwright.sync_api import Browser, Page

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators
from annotation.argilla.client import attach, reach
from annotation.campaign.records import CampaignRecords
from annotation.options import CampaignOptions
from benchmarks.browser import browser, dashboard, settle
from evaluation.records import EvaluationRecords
from evaluation.report.charts import DriftScales, caption, drift_overview
from evaluation.tables.datasets import drift_by_quality, drift_correlations
from plumbline import cli
from plumbline.exhibits.page import Figure
from plumbline.study import ROOT, Study

FOLDER = ROOT / "docs" / "images"
SIZE = (1280, 860)
#: Picture -> address, and the words that it begins with at its top.
PICTURES = {
    "answer": ("", "The answer"),
    "drift": ("drift", "Drift and ratings"),
    "verdicts": ("verdicts", "Means against the threshold"),
    "scores": ("scores", "By axis (HTEB, Tables 14 and 15)"),
}
#: Commands as a reader's terminal in the checkout has them, without this machine's folders.
AS_FROM_HERE = """root => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data =
        texts.currentNode.data.replaceAll(` --exports ${root}/exports`, "").replaceAll(`${root}/`, "");
}"""
#: What is judged -> picture -> report in the study's folder, which is pictured from its top.
REPORTS = {
    "pairs": {"campaign_report": "report/index.html", "evaluation_report": "report_evaluation/index.html"},
    "instructions": {"wordings_report": "report_instructions/index.html"},
    "human": {"human_report": "report_human/index.html"},
}
#: Systems of Sulem et al. (2018) that are pictured together, as `studies/real/sulem.yaml` calls them.
SYSTEMS = {
    "dss", "dssm", "hybrid", "sents-h4-with-the-default-model-instead-of-w2v",
    "sentsm-h4-with-the-default-model-instead-of-w2v", "sents-h4",
}  # fmt: skip

#: Originals (Wikipedia) of two outputs of SENTS-h4 that are written out, with the output, where the words begin, and
#: where their line ends. The outputs are in eliorsulem/simplification-acl2018, CC BY-SA 3.0; capitals are ours.
EXAMPLES = {
    "In its pure form, dextromethorphan occurs as a white powder.": (
        "A white powder is a white powder.", 1.75, 0.7, 1.8),
    "In 1987 Wexler was inducted into the Rock and Roll Hall of Fame.": (
        "In 1987 Wexler was added to the Rock and Roll Hall of Fame.", 2.62, 0.54, 4.9),
}  # fmt: skip


def main(*, options: CampaignOptions) -> int:
    """Take screenshots of a study's dashboard, reports and rating page: those that such a study has."""
    study = options.load()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if study.name == "sulem":
        (FOLDER / "drift_people.png").write_bytes(drift_of_people(study).png(2))
        return 0
    with browser() as chromium:
        for name, file in REPORTS[study.subject.kind if study.subject else "pairs"].items():
            if (study.folder / file).is_file():
                page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                page.goto((study.folder / file).absolute().as_uri())
                taken(page, name)
        if not study.subject:
            dashboard_pages(study, chromium)
            rating_page(study, options.home, chromium)
    return 0


def drift_of_people(study: Study) -> Figure:
    """Drift of six systems' outputs against real people's mean ratings of meaning, with two of them written out."""
    campaign, evaluation = CampaignRecords(study), EvaluationRecords(study)
    pairs = pd.DataFrame([pair.model_dump() for pair in campaign.pairs if pair.transformation in SYSTEMS])
    rated = drift_by_quality(
        pairs, campaign.ratings, evaluation.drift, per_pair=study.raters.per_pair, question="meaning"
    )
    (row,) = drift_correlations(rated.assign(transformation="six systems"), study.sample.seed).to_dict("records")
    chart = drift_overview(rated, row, DriftScales("meaning, by three people", (1, 5), float(rated["drift"].max())))
    short = "replace(datum.label, ' (with the default model instead of w2v)', ', default model')"
    for channel in (chart.layer[1].encoding.color, chart.layer[1].encoding.shape):
        channel["legend"]["labelExpr"], channel["legend"]["columns"] = short, 3
    drawn: Any = chart.layer[1].data
    spots = drawn[(drawn["transformation"] == "sents-h4") & drawn["original"].isin(EXAMPLES)]
    written = pd.DataFrame(
        [EXAMPLES[original] for original in spots["original"]], columns=["output", "at", "up", "foot"]
    )
    base = alt.Chart(written.assign(**{name: spots[name].to_numpy() for name in ("original", "mean_quality", "drift")}))
    words = base.transform_calculate(words="datum.original + '\\n→ ' + datum.output").mark_text(
        align="left", baseline="bottom", lineBreak="\n", fontSize=12, lineHeight=16, dy=-20
    )
    there = {"x": alt.X("mean_quality:Q"), "y": alt.Y("drift:Q")}
    marked = [
        base.mark_rule(color="#1f2430").encode(**there, x2="foot:Q", y2="up:Q"),
        base.mark_point(size=150, color="#1f2430", strokeWidth=2, opacity=1).encode(**there),
        words.encode(x=alt.X("at:Q"), y=alt.Y("up:Q"), text="words:N"),
    ]
    chart = alt.LayerChart(layer=[*chart.layer, *marked], width=chart.width, height=chart.height)
    title = {"text": "The worse people rate a sentence, the farther MiniLM moves it", "subtitle": caption(row)}
    return Figure(chart.properties(title=title | {"anchor": "start", "offset": 8}), "", "")


def taken(page: Page, name: str) -> None:
    """Keep what a page shows, and close it."""
    page.screenshot(path=FOLDER / f"{name}.png")
    print(f"-> {(FOLDER / f'{name}.png').relative_to(ROOT)}")
    page.close()


def dashboard_pages(study: Study, chromium: Browser) -> None:
    """Picture pages of the dashboard."""
    with tempfile.TemporaryDirectory() as folder, dashboard(study, Path(folder) / "log") as (address, _):
        for name, (path, heading) in PICTURES.items():
            page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            page.goto(f"{address}/{path}")
            page.get_by_role("heading", name=heading).wait_for(timeout=60_000)
            settle(page)
            page.locator("[data-testid=stVegaLiteChart] svg, .card").first.wait_for(timeout=60_000)
            page.evaluate(AS_FROM_HERE, str(ROOT))
            page.get_by_role("heading", name=heading).evaluate("node => node.scrollIntoView({block: 'start'})")
            page.wait_for_timeout(1000)  # charts take their width after they are drawn
            taken(page, name)


def rating_page(study: Study, home: server.Home, chromium: Browser) -> None:
    """Picture the first pair of the local Argilla's paraphrases, before somebody who has answered nothing."""
    name = "picture"
    with reach(home, existing=True) as connection:
        accounts.add(connection, home, [name], ["en"])
        with attach(connection) as argilla:
            admit_annotators(study, argilla, accounts.languages(connection, home))
        account = server.credentials(home).find(name)
        assert account is not None
        page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.goto(f"{connection.url}/work")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(account.password)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Paraphrasing, English").click()
        page.get_by_role("button", name="Begin").click()
        page.locator("#next").wait_for(timeout=60_000)
        taken(page, "rating")
        accounts.remove(connection, home, name)


if __name__ == "__main__":
    cli.run(lambda: cyclopts.run(main, result_action="return_value"))
