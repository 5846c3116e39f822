"""The whole flow on the sample study, by the commands that documents show, on a really started Argilla."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from annotation import server
from plumbline.study import ROOT
from plumbline.study.transformations import EIGHT
from tests.commands import here, words_of
from tests.conftest import EMPTY_FIGURE
from tests.scale import scaled
from tests.test_layout import commands

SHOWN = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/own_study.md"))
STUDY = "studies/demo.yaml"
#: Of each transformation: Argilla takes most of the time, for answers to them.
PAIRS = scaled(8, 24)
#: A command with a process of its own here, for it needs Argilla; in test_package.py most others have one.
APART = "collect"

pytestmark = pytest.mark.timeout(900)  # twenty commands, on a busy machine


class Flow:
    """A folder of records and a home of Argilla, and the commands that work on them."""

    def __init__(self, folder: Path) -> None:
        self.exports, self.home = folder / "exports", server.Home(folder / "argilla")
        self.folder = self.exports / "demo"
        self.study = sample_study(folder, PAIRS)
        self.printed: dict[str, str] = {}

    def run(self, line: str, expect: int = 0, *, apart: bool = False) -> subprocess.CompletedProcess[str]:
        """A command line as a document shows it, on the study of PAIRS pairs, with its records in this folder.

        In this process, unless it is to be `apart`: importing torch once more would take most of the time. No figure is
        drawn.
        """
        line = line.replace(STUDY, str(self.study))
        words = [*words_of(line), "--exports", str(self.exports)]
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("ARGILLA_")]:
                patch.delenv(name)
            patch.setenv("PLUMBLINE_ARGILLA_HOME", str(self.home.path))
            patch.setattr("vl_convert.vegalite_to_svg", lambda _: EMPTY_FIGURE)
            if apart:
                command = [sys.executable, "-m", "plumbline", *words]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            else:
                done = here(*words)
        assert done.returncode == expect, f"{line}: exit {done.returncode}\n{done.stderr}"
        return done

    def frame(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.folder / name)


def sample_study(folder: Path, pairs: int) -> Path:
    """The sample study, or a copy in which people rate fewer pairs and one of its three models is scored."""
    there = ROOT / STUDY
    text = there.read_text(encoding="utf-8")
    assert text.count("  pairs: 24 ") == text.count("  min_pairs: 20\n") == 1
    if pairs == 24:
        return there
    shutil.copytree(there.with_suffix(""), folder / "studies" / "demo")
    file = folder / STUDY
    text = text.replace("  pairs: 24 ", f"  pairs: {pairs} ").replace(
        "  min_pairs: 20\n", f"  min_pairs: {pairs - 1}\n"
    )
    text, removed = re.subn(r"    - name: (?:sentence|glove).*?(?=    - name: )", "", text, flags=re.DOTALL)
    assert removed == 2
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    """The commands of the README and of the page on one's own study, run in their order."""
    made = Flow(tmp_path_factory.mktemp("flow"))
    lines = [line for line in commands(SHOWN) if line.startswith("plumbline ") and " serve" not in line]
    lines = [line for line in lines if STUDY in line and "--include-rejected" not in line]
    stages = [" ".join(words_of(line.split(" --")[0])) for line in lines]
    assert ", ".join(stages) == (
        "generate, sample, preview, publish, simulate, collect, status, judge run, review, accept, ratings-report,"
        " evaluate, scores-report, generate, errors, compare"
    )
    with server.running(made.home):
        for line, stage in zip(lines, stages, strict=True):
            done = made.run(line, apart=stage == APART)
            made.printed.setdefault(stage, done.stdout)
    return made


def test_every_record_has_the_columns_that_others_rely_on(flow: Flow) -> None:
    columns = {
        "ratings.parquet": "pair_id transformation language rater_id question value status submitted_at source"
        " simulated",
        "drift.parquet": "pair_id model drift",
        "scores.parquet": "model dataset task_type language transformation axis seed metric score n status",
        "texts.parquet": "dataset split item field language text_id text",
        "pairs.parquet": "pair_id transformation language original transformed",
    }
    for name, needed in columns.items():
        assert set(needed.split()) <= set(flow.frame(name).columns), name
    for name in EIGHT:
        assert len(pd.read_parquet(flow.folder / "transformations" / name / "1337.parquet")) >= 104
    verdict = json.loads((flow.folder / "verdicts.json").read_text(encoding="utf-8"))[0]
    needed = "transformation language decision reasons n_pairs questions origin"
    assert set(needed.split()) <= set(verdict)
    assert {"question", "mean", "low", "high", "ac2"} <= set(verdict["questions"][0])


def test_the_bad_transformation_is_rejected_and_the_others_accepted(flow: Flow) -> None:
    verdicts = json.loads((flow.folder / "verdicts.json").read_text(encoding="utf-8"))
    decisions = {verdict["transformation"]: verdict["decision"] for verdict in verdicts}
    assert decisions == dict.fromkeys(EIGHT, "accepted") | {"summarised_expansion": "rejected"}
    assert all(verdict["simulated"] for verdict in verdicts)


def test_only_accepted_transformations_are_scored(flow: Flow) -> None:
    scores = flow.frame("scores.parquet")
    assert scores["dataset"].nunique() == 6
    evaluated = scores[scores["status"] == "evaluated"]
    assert set(evaluated["transformation"]) == {"original", *EIGHT} - {"summarised_expansion"}
    assert evaluated["score"].notna().all()
    refused = scores[scores["status"] == "left_out"]
    assert set(refused["transformation"]) == {"summarised_expansion"}
    assert refused["score"].isna().all()
    assert refused["reason"].str.startswith("rejected: mean quality").all()


def test_every_pair_has_a_drift(flow: Flow) -> None:
    drift = flow.frame("drift.parquet")
    assert set(flow.frame("pairs.parquet")["transformation"].value_counts()) == {PAIRS}
    assert set(drift["pair_id"]) == set(flow.frame("pairs.parquet")["pair_id"])
    assert drift["drift"].between(-1e-6, 2).all()


def test_ratings_carry_no_names(flow: Flow) -> None:
    ratings = flow.frame("ratings.parquet")
    assert ratings["rater_id"].str.fullmatch(r"simulated-[0-9a-f]{8}").all()
    assert ratings["simulated"].all()


def test_simulated_raters_see_repeats_far_from_their_pairs(flow: Flow) -> None:
    flow.run(f"plumbline sheet --study {STUDY}")
    sheet = (flow.folder / "sheet" / "heds.md").read_text(encoding="utf-8")
    assert "repeated answers" in sheet and "IntraAA not assessed" not in sheet


def test_what_a_study_writes_is_its_users_alone(flow: Flow) -> None:
    paths = [flow.exports, *flow.exports.rglob("*")]
    assert {".manifest.lock", "vectors.f32", "keys.sqlite", "ratings.parquet"} <= {path.name for path in paths}
    published = flow.folder.with_name("demo.zip")
    assert [path for path in paths if path.stat().st_mode & 0o077 and path != published] == []


def test_rejected_transformations_can_be_included_and_say_so(flow: Flow) -> None:
    printed = flow.run(f"plumbline evaluate --study {STUDY} --include-rejected").stdout
    scores = flow.frame("scores.parquet")
    marked = scores[scores["transformation"] == "summarised_expansion"]
    assert set(marked["status"]) == {"included_rejected"}
    assert marked["score"].notna().all()
    assert "included" in printed
    flow.run(f"plumbline evaluate --study {STUDY}")
    assert "included_rejected" not in set(flow.frame("scores.parquet")["status"])


def test_the_sample_study_is_a_bundle_that_says_that_it_is_simulated(flow: Flow) -> None:
    out = flow.folder.parent / "demo.zip"
    printed = flow.run(f"plumbline bundle export --study {STUDY} --out {out}").stdout
    assert "its ratings are SIMULATED" in printed and out.stat().st_size < 800_000
    refused = flow.run(f"plumbline bundle evaluate {out} --model character-n-grams", expect=2).stderr
    assert "nobody accepted these texts" in refused
