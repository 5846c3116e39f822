"""Real people's ratings as numbers by item: published values, and those of other packages, without anybody's texts.

The constants of other packages were computed once from the same files, by krippendorff 0.9.0, pingouin 0.7.0
(`intraclass_corr`) and statsmodels 0.15.0 (`fleiss_kappa`), in an environment without Plumbline.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from annotation import ac2, alpha, icc, kappa
from plumbline.resources import ROOT
from plumbline.statistics.agreement import Answers, fleiss_kappa, nominal_alpha
from plumbline.statistics.reliability import Form
from plumbline.study import load_study
from tests.annotation.imports.importing import Workplace

NUMBERS = Path(__file__).parent / "numbers"
SCALES = {"grammaticality": (1, 2, 3, 4, 5), "meaning": (1, 2, 3, 4, 5)}
SCALES |= dict.fromkeys(("simplicity", "structural_simplicity"), (-2, -1, 0, 1, 2))
#: Sulem et al. (2018), Table 2, by question in the order of `SCALES`; the paper cuts some numbers where others round.
PRINTED = {
    "DSS": (3.42, 4.15, 0.16, 0.16),
    "HYBRID": (2.96, 2.46, 0.43, 0.43),
    "Identity": (4.80, 5.00, 0.00, 0.00),
    "Simple Wikipedia": (4.60, 4.21, 0.83, 0.38),
}
FORMS: tuple[Form, ...] = ("1", "2", "3", "1k", "2k", "3k")
#: pingouin's, in the order of `FORMS`, of 1,960 outputs and three raters.
CORRELATIONS = {
    "grammaticality": (0.550115, 0.563136, 0.616680, 0.785792, 0.794540, 0.828366),
    "meaning": (0.750430, 0.753794, 0.785563, 0.900206, 0.901816, 0.916598),
    "simplicity": (0.455259, 0.464156, 0.488069, 0.714872, 0.722117, 0.740944),
    "structural_simplicity": (0.462942, 0.471798, 0.496350, 0.721137, 0.728234, 0.747253),
}
#: krippendorff's ordinal alpha: of all outputs, of DSS, of HYBRID.
ALPHAS = {
    "grammaticality": (0.584165, 0.529535, 0.381344),
    "meaning": (0.777299, 0.491241, 0.589339),
    "simplicity": (0.452588, 0.345830, 0.200232),
    "structural_simplicity": (0.457712, 0.345830, 0.172846),
}
#: By batch of MTurk's: statsmodels' Fleiss' kappa, krippendorff's nominal alpha.
BATCHES = {4041412: (0.025538, 0.027842), 4041515: (0.168006, 0.180064)}


@pytest.fixture(scope="module")
def sulem() -> pd.DataFrame:
    frame = pd.read_csv(NUMBERS / "sulem2018.csv")
    return frame.assign(pair_id=frame["system"] + " " + frame["sentence"].astype(str), rater_id=frame["annotator"])


def question(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame[["pair_id", "rater_id"]].assign(value=frame[name])


def test_the_112_means_of_systems_come_in(tmp_path: Path) -> None:
    """All 28 systems, ids in the texts' place: the file's own means, and those that the paper prints."""
    place = Workplace(tmp_path)
    answers = [word for name in SCALES for word in ("--column", f"answer={name}")]
    done = place.take(str(NUMBERS / "sulem2018.csv"), "--column", "item=sentence", *answers)
    assert "23,520 ratings of 1,960 texts by 3 raters" in done.out and not place.listed
    means = place.ratings().groupby(["transformation", "question"])["value"].mean()
    assert len(means) == 112
    frame = pd.read_csv(NUMBERS / "sulem2018.csv")
    due = frame.groupby("system")[list(SCALES)].mean()
    for system, row in due.iterrows():
        group = next(name for name in means.index.levels[0] if slug_of(str(system)) == slug_of(name))
        assert [means[group, name] for name in SCALES] == pytest.approx(list(row), abs=1e-12)
    for system, printed in PRINTED.items():
        assert list(due.loc[system]) == pytest.approx(printed, abs=0.01)


def slug_of(name: str) -> str:
    """A system's name without what file names do not take."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


@pytest.mark.parametrize("name", SCALES)
def test_agreement_by_system_and_over_all_is_that_of_other_packages(sulem: pd.DataFrame, name: str) -> None:
    parts = (sulem, sulem[sulem["system"] == "DSS"], sulem[sulem["system"] == "HYBRID"])
    values = [alpha(question(part, name), scale=SCALES[name]).value for part in parts]
    assert values == pytest.approx(ALPHAS[name], abs=1e-6)
    correlations = [icc(question(sulem, name), form).value for form in FORMS]
    assert correlations == pytest.approx(CORRELATIONS[name], abs=1e-6)


def test_coefficients_differ_where_marginals_are_skewed(sulem: pd.DataFrame) -> None:
    """docs/method/agreement.md, "Which coefficient when"."""
    meaning = question(sulem, "meaning")
    values = [measure(meaning, scale=SCALES["meaning"]).value for measure in (ac2, alpha, kappa)]
    assert values == pytest.approx((0.829, 0.777, 0.754), abs=0.0005)
    skewed = sulem[sulem["system"] == "SETrain2-Moses"]
    for name, (gwet, krippendorff) in {"meaning": (0.998, 0.327), "grammaticality": (0.945, 0.240)}.items():
        found = [measure(question(skewed, name), scale=SCALES[name]).value for measure in (ac2, alpha)]
        assert found == pytest.approx((gwet, krippendorff), abs=0.0005)


@pytest.mark.parametrize("batch", BATCHES)
def test_fleiss_kappa_by_batch_is_that_of_other_packages(batch: int) -> None:
    frame = pd.read_csv(NUMBERS / "mturk_paraphrase.csv")
    of_batch = frame[frame["batch"] == batch].rename(columns={"item": "pair_id", "rater": "rater_id"})
    codes = {"grammatical": 0, "ungrammatical": 1, "none": 2}
    answers = Answers.of(of_batch.assign(value=of_batch["label"].map(codes)), (0, 1, 2))
    found = fleiss_kappa(answers).value, nominal_alpha(answers, np.random.default_rng(1)).value
    assert found == pytest.approx(BATCHES[batch], abs=1e-6)


def test_rankings_come_in_as_the_ranks_that_were_given(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    ranks = pd.read_csv(NUMBERS / "apty.csv")["rank"]
    roles = ("item=task", "item=candidate", "answer=rank")
    command = (str(NUMBERS / "apty.csv"), *(word for role in roles for word in ("--column", role)))
    scales = [f"--scale=rank={ends}" for ends in (f"{ranks.max()}..1", f"1..{ranks.max()}")]
    asked = place.refused(*command)
    assert all(scale.replace("=rank", " rank") in asked for scale in scales)
    done = place.take(*command, scales[0])
    assert yaml.safe_load((place.folder / "studies/mine/questions.yaml").read_text())["questions"][0]["lower_is_better"]
    assert f"{len(ranks):,} ratings of {len(ranks):,} texts" in done.out
    assert place.ratings()["value"].value_counts().to_dict() == ranks.value_counts().to_dict()


def test_the_gallery_has_a_study_and_a_row_for_each_set() -> None:
    """Texts come in beside the study files, and none is in the repository."""
    files = sorted((ROOT / "studies" / "real").glob("*.yaml"))
    page = (ROOT / "docs" / "real.md").read_text(encoding="utf-8")
    assert len(files) == 10 and all(f"--out studies/real/{file.name}" in page for file in files)
    assert all(load_study(file).name == file.stem for file in files)
    kinds = [kind for file in files for kind in load_study(file).kinds.values() if kind.axis == "imported"]
    # As `import` writes them: what several systems wrote is rated by the same people, who do not learn whose it is.
    assert len(kinds) == 31 and {kind.queue for kind in kinds} == {"systems"}
