"""A campaign of 100,000 pairs and 600,000 ratings on disk: what looking at it costs.

How much of that grows with the raters is what a crowd of a thousand shows: each has a few hundred answers.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import yaml
from playwright.sync_api import Page

from annotation.campaign.records import CampaignData, CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.records import Member
from annotation.verdicts.evidence import Evidence
from benchmarks.browser import browser, dashboard, read, settle
from benchmarks.memory import command, memory, process
from benchmarks.registry import Measurement, benchmark
from generation.jobs import Plan
from plumbline.identity import identity
from plumbline.manifest import Manifest, stage
from plumbline.records import Pair
from plumbline.store import write_json
from plumbline.study import Study, load_study
from plumbline.study.transformations import EIGHT

PAIRS, RATERS, PER_PAIR = 100_000, 1_000, 3
POOLS = ("paraphrasing", "backtranslation", "style_change", "expansion")
WORDS = 25  #: of a text
CONTROLS = 50  #: pairs with one control of each kind
ACCEPT = (11, 0.83, 8.9)  #: most seconds and gigabytes of `accept`, and seconds of `status`, for a million ratings
IMPORT = (22, 1.03)  #: most seconds and gigabytes of `import` for a million rows
PAGE = (11.2, 0.9)  #: most processor seconds and gigabytes of the dashboard until its first page of a million ratings


@benchmark
def looked_at() -> Iterator[Measurement]:
    """The signs in 600,000 ratings of 1,000 raters, and all of `status`, from the process's start."""
    with tempfile.TemporaryDirectory() as folder:
        study = made_up(Path(folder), raters=RATERS)
        found = CampaignData.read(study)
        start = time.perf_counter()
        assert Evidence(study).changed(collected=found).signs is not None
        yield Measurement("annotation.signs_seconds", time.perf_counter() - start, "s", at_most=5)
        start = time.perf_counter()
        command = [sys.executable, "-m", "plumbline", "status", "--study", str(study.file)]
        done = subprocess.run(
            [*command, "--exports", str(study.folder.parent)], check=True, capture_output=True, text=True
        )
        yield Measurement("annotation.status_seconds_100k", time.perf_counter() - start, "s", at_most=8)
        if "Next: plumbline " not in done.stdout:
            raise RuntimeError(f"nothing was measured: {done.stdout[-500:]}")


@benchmark
def commands() -> Iterator[Measurement]:
    """`accept`, `status` and the dashboard's first page of 1,000,000 ratings of 1,000 raters, and `accept`'s growth."""
    seconds = dict[int, float]()
    for ratings in (100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            study = made_up(Path(folder), raters=RATERS, pairs=-(-ratings // (2 * PER_PAIR * len(POOLS))) * len(POOLS))
            seconds[ratings], gigabytes = command(study, "accept")
            status_seconds, _ = command(study, "status")
            with browser() as chromium, dashboard(study, Path(folder) / "log") as (address, server):
                _first_page(chromium.new_page(viewport={"width": 1280, "height": 900}), address)
                used, peak = psutil.Process(server).cpu_times(), memory("VmHWM", server) * 2**20 / 1e9
    yield Measurement("annotation.accept_seconds_1m", seconds[1_000_000], "s", at_most=ACCEPT[0])
    yield Measurement("annotation.accept_gigabytes_1m", gigabytes, "GB", at_most=ACCEPT[1])
    yield Measurement(
        "annotation.accept_exponent_1m", math.log10(seconds[1_000_000] / seconds[100_000]), "exponent", at_most=1
    )
    yield Measurement("annotation.status_seconds_1m", status_seconds, "s", at_most=ACCEPT[2])
    yield Measurement("dashboard.page_processor_seconds_1m", used.user + used.system, "s", at_most=PAGE[0])
    yield Measurement("dashboard.page_gigabytes_1m", peak, "GB", at_most=PAGE[1])


@benchmark
def imports() -> Iterator[Measurement]:
    """`import` of a CSV of 1,000,000 rows, an answer each to one of 200,000 pairs of texts, as a process."""
    draw, items, each = np.random.default_rng(1), 200_000, 5
    words = np.array(["".join(draw.choice(list("abdefgiklmnoprstu"), 6)) for _ in range(5000)], object)
    text = pd.Series(map(" ".join, words[draw.integers(0, len(words), (items, 12))]))
    place = np.repeat(np.arange(items), each)
    columns = {"item": place, "original": text[place].array, "output": (text + " indeed")[place].array}
    answers = {"rater": np.arange(items * each) % RATERS, "meaning": draw.integers(1, 6, items * each)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratings.csv"
        pd.DataFrame(columns | answers).to_csv(file, index=False)
        out = ["--language", "en", "--out", f"{folder}/study.yaml", "--exports", f"{folder}/exports"]
        seconds, gigabytes = process("import", str(file), *out)
    yield Measurement("annotation.import_seconds_1m", seconds, "s", at_most=IMPORT[0])
    yield Measurement("annotation.import_gigabytes_1m", gigabytes, "GB", at_most=IMPORT[1])


@benchmark
def first_page() -> Iterator[Measurement]:
    """The dashboard's first page on that campaign, from the address to its last part, the server running."""
    with tempfile.TemporaryDirectory() as folder:
        study = made_up(Path(folder), raters=RATERS)
        with browser() as chromium, dashboard(study, Path(folder) / "log") as (address, _):
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            _first_page(page, address)
            yield Measurement("dashboard.page_seconds_campaign_100k", time.perf_counter() - start, "s", at_most=3)


def _first_page(page: Page, address: str) -> None:
    page.goto(address)
    read(page, "Rules and looks at results")
    settle(page)


def made_up(folder: Path, *, raters: int, pairs: int = PAIRS) -> Study:
    """A campaign that was collected and not judged yet, written to `folder`: each pair has three of the raters."""
    content = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": list(POOLS),
        "seeds": [1],
        "generator": {"kind": "openai", "model": "stub", "base_url": "http://127.0.0.1:9/v1"},
        "sample": {"pairs": pairs // len(POOLS)},
        "raters": {"per_pair": PER_PAIR + 1},  # each pair still wants an answer
        "evaluation": {"models": [{"name": "none"}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    study = load_study(folder / "study.yaml", folder / "exports")
    sample = _sample(study, pairs)
    controls = [_control(pair, kind) for kind in ("positive", "negative", "repeat") for pair in sample[::CONTROLS]]
    files = [study.folder / name for name in ("pairs.parquet", "controls.parquet")]
    with stage(study, "sample", [], files):
        for file, rows in zip(files, (sample, controls), strict=True):
            Manifest.of(study).write_table(file.name, rows, Pair)
        Manifest.of(study).write_models("sample.json", [])
    with stage(study, "publish", files):
        pass
    outputs = [study.folder / name for name in ("ratings.parquet", "control_ratings.parquet", "members.json")]
    with stage(study, "collect", files, outputs):
        write_ratings(CampaignRecords(study), _ratings([*sample, *controls], raters))
        write_json(study.folder / "members.json", _members(study, raters))
    return study


def _sample(study: Study, number: int) -> list[Pair]:
    plan, draw = Plan(study), random.Random(1)  # noqa: S311 (texts, no secret)
    words = ["".join(draw.choices("abdefgiklmnoprstu", k=draw.randint(2, 9))) for _ in range(5000)]
    found = []
    for place in range(number):
        name, key, text = (
            POOLS[place % len(POOLS)],
            identity("benchmark-v1", place),
            " ".join(draw.choices(words, k=WORDS)),
        )
        found.append(
            Pair(
                pair_id=key, key=key, transformation=name, axis=EIGHT[name].axis, pool=name, dataset="texts",
                task_type="clustering", language="en", output_language="en", seed=1, original=text,
                transformed=f"{text} indeed", model="stub", generator_hash=plan.generator_hash,
                prompt_hash=plan.prompt_hashes[name],
            )
        )  # fmt: skip
    return found


def _control(pair: Pair, kind: str) -> Pair:
    more = {"pair_id": identity("benchmark-v1", kind, pair.pair_id), "control": kind}
    return pair.model_copy(update=more | ({"repeats": pair.pair_id} if kind == "repeat" else {}))


def _members(study: Study, raters: int) -> list[Member]:
    names = [f"{study.name}-{pool}-EN" for pool in POOLS]
    return [
        Member(rater_id=f"rater-{number:04}", dataset=name, simulated=False)
        for number in range(raters)
        for name in names
    ]


def _ratings(pairs: list[Pair], raters: int) -> pd.DataFrame:
    """Three raters' answers to two questions on each pair, half a minute apart; every eighth with a comment."""
    generator, number = np.random.default_rng(1), len(pairs)
    start = generator.integers(0, raters, number)
    who = (start[:, None] + np.arange(PER_PAIR) * (raters // PER_PAIR)) % raters
    felt = generator.normal(4, 0.8, (number, 1, 1)) + generator.normal(0, 1, (number, PER_PAIR, 2))
    place = np.repeat(np.arange(number), 2 * PER_PAIR)
    names = np.array([f"rater-{one:04}" for one in range(raters)], dtype=object)
    minutes = generator.integers(0, 100_000, (number, PER_PAIR)).repeat(2, axis=1).ravel()
    column = {name: np.array([getattr(pair, name) for pair in pairs], dtype=object)[place]
              for name in ("pair_id", "transformation", "language")}  # fmt: skip
    return pd.DataFrame(
        {
            **column,
            "rater_id": names[who].repeat(2, axis=1).ravel(),
            "question": np.tile(np.array(["quality", "fluency"], dtype=object), PER_PAIR * number),
            "value": np.clip(np.round(felt), 1, 5).astype(int).ravel(),
            "status": "submitted",
            "submitted_at": pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(minutes, "min"),
            "source": "argilla",
            "batch": "",
            "seconds": generator.uniform(5, 60, (number, PER_PAIR)).repeat(2, axis=1).ravel(),
            "answer": "",
            "order": "",
            "turn": 0,
            "comment": np.where(place % 8 == 0, "the tone is another one", ""),
            "excluded": "",
            "surplus": False,
            "simulated": False,
        }
    )
