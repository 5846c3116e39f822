"""A large campaign: 10,000 pairs put before raters, and 100,000 ratings of them collected.

Both by the commands' own functions against a really started server in a temporary folder. The answers are put into the
stopped server's database: that raters' submissions are quick is what `server.raters` measures.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from annotation.argilla.accounts import published
from annotation.argilla.client import attach
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignRecords
from annotation.server import Home, ensure_user, running
from benchmarks.registry import Measurement, benchmark
from benchmarks.server import quiet
from generation.jobs import Plan
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.study import Study, load_study

PAIRS, PER_PAIR, RATERS = 10_000, 5, 8  #: two questions: 10,000 x 5 x 2 = 100,000 ratings
POOLS = ("paraphrasing", "backtranslation", "style_change", "expansion")
WORDS = 25  #: of a text


@benchmark
def large() -> Iterator[Measurement]:
    """10,000 pairs in four datasets published, 100,000 ratings collected, and collected again when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        home, study = Home(Path(folder) / "home"), _study(Path(folder))
        with running(home, progress=quiet) as connection, attach(connection) as argilla:
            for number in range(RATERS):
                ensure_user(connection, f"bench{number}", "B")
            start = time.perf_counter()
            new = publish(study, argilla).new
            yield Measurement("annotation.publish_seconds_10k", time.perf_counter() - start, "s", at_most=120)
            if sum(new.values()) != PAIRS or len(published(CampaignRecords(study), argilla)) != len(POOLS):
                raise RuntimeError(f"{sum(new.values())} pairs are new: nothing was measured")
        _answer(home.database)
        with running(home, progress=quiet) as connection, attach(connection) as argilla:
            for name, limit in (("collect", 60), ("collect_again", None)):
                start = time.perf_counter()
                ratings = collect(study, argilla)
                seconds = time.perf_counter() - start
                if len(ratings) != PAIRS * PER_PAIR * 2:
                    raise RuntimeError(f"{len(ratings)} ratings were collected: nothing was measured")
                yield Measurement(f"annotation.{name}_seconds_100k", seconds, "s", at_most=limit)


def _study(folder: Path) -> Study:
    """A drawn study of made-up pairs."""
    content = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": list(POOLS),
        "seeds": [1],
        "generator": {"kind": "openai", "model": "stub", "base_url": "http://127.0.0.1:9/v1"},
        "raters": {"per_pair": PER_PAIR},
        "evaluation": {"models": [{"name": "none"}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    study = load_study(folder / "study.yaml", folder / "exports")
    plan, draw = Plan(study), random.Random(1)  # noqa: S311 (texts, no secret)
    words = ["".join(draw.choices("abdefgiklmnoprstu", k=draw.randint(2, 9))) for _ in range(5000)]
    pairs = [_pair(plan, number, " ".join(draw.choices(words, k=WORDS))) for number in range(PAIRS)]
    Manifest.of(study).write_table("pairs.parquet", pairs, Pair)
    Manifest.of(study).write_table("controls.parquet", [], Pair)
    return study


def _pair(plan: Plan, number: int, text: str) -> Pair:
    name, key = POOLS[number % len(POOLS)], identity("benchmark-v1", number)
    return Pair(
        pair_id=key, key=key, transformation=name, axis="", pool=name, dataset="texts", task_type="clustering",
        language="en", output_language="en", seed=1, original=text, transformed=f"{text} indeed",
        model="stub", generator_hash=plan.generator_hash, prompt_hash=plan.prompt_hashes[name],
    )  # fmt: skip


def _answer(database: Path) -> None:
    """Let PER_PAIR of the raters answer each pair, in a stopped server's database, half a minute apart."""
    draw, start = random.Random(2), datetime.now(UTC).replace(tzinfo=None) - timedelta(days=60)  # noqa: S311
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        users = [row[0] for row in connection.execute("SELECT id FROM users WHERE username LIKE 'bench%'")]
        rows = []
        for number, (record,) in enumerate(connection.execute("SELECT id FROM records").fetchall()):
            for user in draw.sample(users, PER_PAIR):
                at = f"{start + timedelta(seconds=30 * number + users.index(user)):%Y-%m-%d %H:%M:%S.%f}"
                values = (
                    f'{{"quality": {{"value": {draw.randint(1, 5)}}}, "fluency": {{"value": {draw.randint(1, 5)}}}}}'
                )
                rows.append((uuid.uuid4().hex, record, user, values, "submitted", at, at))
        columns = 'id, record_id, user_id, "values", status, inserted_at, updated_at'
        connection.executemany(f"INSERT INTO responses ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608
        connection.execute("UPDATE datasets SET last_activity_at = ?", (f"{start:%Y-%m-%d %H:%M:%S.%f}",))
