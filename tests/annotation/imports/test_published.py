"""Public ratings come in whole, and published numbers come out; skipped where the files are not beside the checkout."""

from __future__ import annotations

from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest

from annotation.report.exhibits import truth_exhibit
from annotation.report.material import campaign_material
from annotation.verdicts.evidence import Evidence
from plumbline.resources import ROOT
from tests.annotation.imports.importing import Workplace
from tests.scale import FULL

PEOPLE = next((path for path in (ROOT / "shared/data/people", ROOT.parent / "shared/data/people",
                                 ROOT.parents[1] / "shared/data/people") if path.is_dir()), Path("none"))  # fmt: skip
QUESTIONS = ("grammaticality", "meaning", "simplicity", "structural_simplicity")
SULEM = [word for name in QUESTIONS for word in ("--column", f"answer={name}")] + ["--column", "item=sentence"]
pytestmark = pytest.mark.skipif(not PEOPLE.is_dir(), reason="the public ratings are not beside the checkout")


def files(*names: str) -> list[str]:
    return [str(PEOPLE / name) for name in names]


def alpha(ratings: pd.DataFrame, column: str, level: str) -> float:
    """Krippendorff's alpha by the counts of each answer to each item."""
    counts = pd.crosstab(ratings["pair_id"], ratings[column])
    domain = None if level == "nominal" else np.array(counts.columns, float)
    return float(krippendorff.alpha(value_counts=counts.to_numpy(), value_domain=domain, level_of_measurement=level))


def test_qags(place: Workplace) -> None:
    place.take(*files("qags/mturk_cnndm.jsonl", "qags/mturk_xsum.jsonl"), *OPTIONS["qags"])
    ratings = place.ratings()
    assert len(ratings) == 2859 and not place.listed
    assert alpha(ratings, "answer", "nominal") == pytest.approx(0.4878830126174004, abs=1e-12)
    for name, printed in (("mturk_cnndm.jsonl", 0.5135), ("mturk_xsum.jsonl", 0.3421)):
        assert alpha(ratings[ratings["source"] == name], "answer", "nominal") == pytest.approx(printed, abs=5e-5)


def test_recipe(place: Workplace) -> None:
    place.take(*files("recipe/meta_evaluation_recipes.json"))
    ratings = place.ratings()
    printed = {"grammar": 0.4151, "fluency": 0.4324, "verbosity": 0.3991, "structure": 0.3986, "success": 0.3627,
               "overall": 0.4351}  # fmt: skip
    found = {name: alpha(of_question, "value", "ordinal") for name, of_question in ratings.groupby("question")}
    assert found == pytest.approx(printed, abs=5e-5) and not place.listed


def test_sulem(place: Workplace) -> None:
    place.take(*files("sulem2018/ratings.csv", "sulem2018/texts.csv"), *SULEM)
    ratings = place.ratings()
    means = ratings.groupby(["transformation", "question"])["value"].mean()
    for name, printed in {"dss": (3.42, 4.15, 0.16, 0.16), "hybrid": (2.96, 2.46, 0.43, 0.43)}.items():
        of_system = [means[name, q] for q in QUESTIONS]
        assert of_system == pytest.approx(printed, abs=0.01)  # some are cut, not rounded
    assert len(ratings) == 25 * 70 * 3 * 4 and len(place.listed) == 3 * 70 * 3 * 4


def test_d_product(place: Workplace) -> None:
    place.take(*files("d_product/answer.csv", "d_product/truth.csv"), *OPTIONS["product"])
    truth = pd.read_csv(place.study.folder / "truth.csv", dtype=str).set_index("pair_id")["truth"]
    yes = place.ratings().assign(yes=lambda frame: frame["answer"] == "label-1").groupby("pair_id")["yes"].mean() > 0.5
    right = yes == (truth.reindex(yes.index) == "label-1")
    assert len(right) == 8315 and right.mean() == pytest.approx(0.8966, abs=5e-5)
    table = truth_exhibit(campaign_material(Evidence(place.study))).frame.set_index(["method", "statistic"])["value"]
    printed = {("majority", "accuracy"): 0.8966, ("majority", "F1 of label-1"): 0.5905}
    printed |= {("Dawid-Skene", "accuracy"): 0.9400, ("Dawid-Skene", "F1 of label-1"): 0.7217}
    assert {name: table[name] for name in printed} == pytest.approx(printed, abs=5e-5)


def test_label_studio_and_mturk(place: Workplace) -> None:
    place.take(*files("label_studio/result_first_150.json"))
    assert len(place.ratings()) == 727 and len(place.listed) == 108
    place.take(*files("label_studio/result_second.json"), "--replace")
    assert len(place.ratings()) == 1374 and not place.listed
    batches = files(
        "mturk_paraphrase/Batch_4041412_batch_results.csv", "mturk_paraphrase/Batch_4041515_batch_results.csv"
    )
    place.take(*batches, "--replace")
    assert len(place.ratings()) == 488 and len(place.listed) == 4 and place.ratings()["seconds"].notna().all()
    assert b"AWORKER0" not in place.everything()


def test_simplicity(place: Workplace) -> None:
    done = place.take(*files("simplicity_da/simplicity_DA_ratings.csv"), *OPTIONS["simplicity"])
    assert "9,000 ratings of 600 pairs by 67 raters" in done.out and "0 to 100" in done.out


def test_summeval(place: Workplace) -> None:
    assert "19,200 ratings of 1,600 texts by 3 raters" in place.take(*files("summeval/human_annotations.json")).out


#: Study of the gallery -> the files and options of its command in docs/real.md.
GALLERY = {
    "apty": ["label_studio/result_second.json"],
    "apty_choices": ["label_studio/result_first_150.json"],
    "paraphrases": [f"mturk_paraphrase/Batch_{batch}_batch_results.csv" for batch in (4041412, 4041515)],
    "product": ["d_product/answer.csv", "d_product/truth.csv"],
    "qags": ["qags/mturk_cnndm.jsonl", "qags/mturk_xsum.jsonl"],
    "recipe": ["recipe/meta_evaluation_recipes.json"],
    "simplicity": ["simplicity_da/simplicity_DA_ratings.csv"],
    "structural": ["simplicity_da/structural_simplicity_ratings.csv"],
    "sulem": ["sulem2018/ratings.csv", "sulem2018/texts.csv"],
    "summeval": ["summeval/human_annotations.json"],
}
OPTIONS = {
    "product": ["--column", "item=question"],
    "qags": ["--raters-per-file", "--column", "output=sentence"],
    "simplicity": ["--column", "answer=simplicity"],
    "structural": ["--column", "answer=structural_simplicity"],
    "sulem": SULEM,
}


@pytest.mark.parametrize("name", GALLERY if FULL else ("paraphrases",))
def test_the_gallerys_files_come_into_its_studies(place: Workplace, name: str) -> None:
    study = place.folder / "studies" / f"{name}.yaml"
    study.parent.mkdir()
    study.write_bytes((ROOT / "studies" / "real" / study.name).read_bytes())
    done = place.run("import", *files(*GALLERY[name]), *OPTIONS.get(name, []), "--out", f"studies/{name}.yaml")
    assert done.status == 0, done.err
    assert study.read_bytes() == (ROOT / "studies" / "real" / study.name).read_bytes()
    assert not FULL or place.run("accept", "--study", f"studies/{name}.yaml").status == 0
