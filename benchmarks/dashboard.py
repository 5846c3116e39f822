"""How long the dashboard's pages take in a browser, of the sample study and of a large one."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from playwright.sync_api import Page

from annotation.campaign.records import CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import Conclusion
from annotation.verdicts.evidence import Evidence
from benchmarks.browser import EMPTY, appear, browser, dashboard, empty_app, read, settle
from benchmarks.memory import memory
from benchmarks.registry import Measurement, benchmark
from generation.production import generate
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import DriftRecord, Pair, Score
from plumbline.study import ROOT, Study, load_study
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import EIGHT

DEMO = ROOT / "studies" / "demo.yaml"
PAGES = ("drift", "verdicts", "campaign", "scores", "texts")
ROUNDS = 3
MODELS, DATASETS, SEEDS, PAIRS = 50, 32, (1337, 1338, 1339), 2000
LANGUAGES = ("am", "ar", "de", "en", "es", "fr", "ha", "hi", "ja", "sw")
_FIGURE = "[data-testid=stVegaLiteChart] svg"


@benchmark
def sample() -> Iterator[Measurement]:
    """The sample study: seconds from the server's start to the first page; the slowest change to a page after that."""
    with tempfile.TemporaryDirectory() as folder:
        study = sample_study(folder)
        with browser() as chromium:
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            with dashboard(study, Path(folder) / "log"):
                pass  # its modules are compiled by then, as an installation has them
            start = time.perf_counter()
            with dashboard(study, Path(folder) / "log") as (address, _):
                _open(page, address)
                yield Measurement("dashboard.page_seconds_sample", time.perf_counter() - start, "s")
                for name in PAGES:  # what a page needs is read when it is opened for the first time
                    _change(page, name)
                slowest = max(_change(page, name) for name in PAGES)
                yield Measurement("dashboard.page_change_seconds_sample", slowest, "s", at_most=0.5)


@benchmark
def large() -> Iterator[Measurement]:
    """100,000 points of drift, 50 models x 32 data sets x 24 variants: the slowest page's first opening; memory.

    The pages are opened one after the other, as soon as the one before is there.
    """
    with tempfile.TemporaryDirectory() as folder:
        study = large_study(Path(folder))
        with browser() as chromium, dashboard(study, Path(folder) / "log") as (address, server):
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            _open(page, address)
            slowest = max(_change(page, name) for name in PAGES)
            yield Measurement("dashboard.page_seconds_100k", slowest, "s", at_most=2.5)
            yield Measurement("dashboard.memory_gigabytes_100k", memory("VmHWM", server) * 2**20 / 1e9, "GB", at_most=1)


@benchmark
def beside_an_empty_app() -> Iterator[Measurement]:
    """Medians of three ratios to the first page of a Streamlit app that has a title alone, from its server's start.

    The same of the sample study; a change of a filter of 100,000 points; and the slowest page of these, opened first.
    """
    limits = {"first_page": 3.5, "filter_100k": 0.5, "page_100k": 3.0}
    ratios: dict[str, list[float]] = {name: [] for name in limits}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log, sample, many = Path(folder) / "log", sample_study(folder), large_study(Path(folder))
        chromium = stack.enter_context(browser())
        for study in (sample, many):
            with dashboard(study, log):
                pass  # its modules are compiled by then, as an installation has them
        for _ in range(ROUNDS):
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            with empty_app(log) as (address, _):
                page.goto(address)
                read(page, EMPTY)
                settle(page)
                empty = time.perf_counter() - start
            start = time.perf_counter()
            with dashboard(sample, log) as (address, _):
                _open(page, address)
                ratios["first_page"].append((time.perf_counter() - start) / empty)
            with dashboard(many, log) as (address, _):
                _open(page, address)
                ratios["page_100k"].append(max(_change(page, name) for name in PAGES) / empty)
                _change(page, "drift")
                _filter(page, "Language", 1)
                ratios["filter_100k"].append(_filter(page, "Language", 2) / empty)
            page.close()
    for name, values in ratios.items():
        yield Measurement(f"dashboard.{name}_over_empty_app", statistics.median(values), "times", at_most=limits[name])


def sample_study(folder: str) -> Study:
    """The sample study as a finished run leaves it; written to `folder`."""
    study = load_study(DEMO, folder)
    generate(study)
    _finish(study, draw_sample(study), [spec.name for spec in study.datasets], study.seeds)
    return study


def large_study(folder: Path, *, pairs: int = PAIRS, models: int = MODELS) -> Study:
    """A study of that size as a finished run leaves it, but for its texts; written to `folder`."""
    content = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    names = [f"set-{number:02}" for number in range(DATASETS)]
    path = str(DEMO.parent / "demo" / "pairs.csv")
    content["datasets"] = [
        {"name": name, "task": "sts", "path": path, "language": LANGUAGES[place % 10]}
        for place, name in enumerate(names)
    ]
    content["seeds"] = list(SEEDS)
    content["sample"]["pairs"] = pairs // len(EIGHT) // len(LANGUAGES)
    content["acceptance"] = {**content.get("acceptance", {}), "scope": "transformation"}
    content["raters"] = {"per_pair": 3}
    content["evaluation"]["models"] = [{"name": f"maker/model-{number:02}"} for number in range(models)]
    file = folder / "large.yaml"
    file.write_text(yaml.safe_dump(content | {"name": "large"}), encoding="utf-8")
    study = load_study(file, folder / "exports")
    kinds = list(EIGHT)
    drawn = [_pair(i, kinds[i % 8], LANGUAGES[i // 8 % 10], names[i % DATASETS]) for i in range(pairs)]
    Manifest.of(study).write_table("pairs.parquet", drawn, Pair)
    Manifest.of(study).write_table("controls.parquet", list[Pair](), Pair)
    Manifest.of(study).write_models("sample.json", [])
    _finish(study, drawn, names, SEEDS)
    return study


def _finish(study: Study, pairs: list[Pair], datasets: list[str], seeds: tuple[int, ...]) -> None:
    """Ratings, verdicts, drift and scores, made up."""
    rng = np.random.default_rng(1337)
    felt = np.repeat(rng.normal(3.9, 0.7, len(pairs)), 6) + rng.normal(0, 0.7, 6 * len(pairs))
    each = pd.DataFrame(
        [(pair.pair_id, pair.transformation, pair.language) for pair in pairs],
        columns=["pair_id", "transformation", "language"],
    )
    ratings = each.loc[each.index.repeat(6)].reset_index(drop=True)
    ratings = ratings.assign(
        rater_id="simulated-" + ratings["language"] + "-" + (ratings.index // 2 % 3).astype(str),
        question=["quality", "fluency"] * (len(ratings) // 2),
        value=np.clip(np.round(felt), 1, 5).astype(int),
        status="submitted",
        submitted_at=pd.Timestamp("2026-01-01", tz="UTC"),
        source="argilla",
        batch="",
        seconds=rng.uniform(5, 60, len(ratings)),
        answer="",
        order="",
        turn=0,
        comment="",
        simulated=True,
    )
    write_ratings(CampaignRecords(study), ratings)
    accept(study)
    models = [spec.name for spec in study.evaluation.models]
    drift = pd.concat([each.drop(columns="language")] * len(models)).assign(
        model=np.repeat(models, len(pairs)), drift=rng.beta(2, 9, len(models) * len(pairs)), unit_id=""
    )
    Manifest.of(study).write_table("drift.parquet", drift, DriftRecord)
    accepted = {
        verdict.transformation for verdict in Conclusion(Evidence(study)).verdicts if verdict.decision == "accepted"
    }
    variants = [(ORIGINAL, ORIGINAL, 0), *((name, kind.axis, s) for name, kind in EIGHT.items() for s in seeds)]
    scores = [
        Score(
            model=model, dataset=dataset, task_type=spec.task, language=str(getattr(spec, "language", "en")),
            transformation=name, axis=axis, seed=seed, metric="main", score=float(rng.uniform(0.5, 0.9)), n=100,
            status="evaluated" if name == ORIGINAL or name in accepted else "included_rejected",
            reason="" if name == ORIGINAL or name in accepted else "rejected: made up",
        )
        for model in models
        for dataset, spec in zip(datasets, study.datasets, strict=True)
        for name, axis, seed in variants
    ]  # fmt: skip
    Manifest.of(study).write_table("scores.parquet", scores, Score)


def _pair(number: int, transformation: str, language: str, dataset: str) -> Pair:
    kind = EIGHT[transformation]
    return Pair(
        pair_id=identity("pair", number), key=str(number), transformation=transformation,
        axis=kind.axis, pool=kind.pool, dataset=dataset, task_type="sts",
        language=language, output_language=language, seed=SEEDS[0], original=f"An original text {number}. " * 8,
        transformed=f"What became of text {number}. " * 8, model="made up", generator_hash="g", prompt_hash="p",
    )  # fmt: skip


def _open(page: Page, address: str) -> None:
    """Open the first page, and wait until its last part is there."""
    page.goto(address)
    read(page, "Rules and looks at results")
    settle(page)


def _change(page: Page, name: str) -> float:
    """Seconds from a click on a page's name until its run has ended, and its first figure is drawn if it has any."""
    start = time.perf_counter()
    page.locator(f"[data-testid=stSidebarNav] a[href$='/{name}']").click()
    page.wait_for_url(f"**/{name}*")
    settle(page)
    if name != "texts":
        appear(page, _FIGURE)
    return time.perf_counter() - start


def _filter(page: Page, label: str, option: int) -> float:
    """Seconds from the choice of an option by its number until the page's first figure shows other things."""
    page.get_by_role("combobox", name=label).click()
    chosen = page.get_by_role("option").nth(option)
    chosen.wait_for()
    page.evaluate("selector => { window.shown = document.querySelector(selector).outerHTML; }", _FIGURE)
    start = time.perf_counter()
    chosen.click()
    page.wait_for_function("selector => document.querySelector(selector)?.outerHTML !== window.shown", arg=_FIGURE)
    settle(page)
    appear(page, _FIGURE)
    return time.perf_counter() - start
