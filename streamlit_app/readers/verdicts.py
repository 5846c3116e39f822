"""What verdicts rest on, and what another threshold would make of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.judges.check import saved_lines, who_decides
from annotation.judges.decisions import judged
from annotation.judges.people import far_ratings
from annotation.judges.records import over_orders
from annotation.judges.select_generator import FOLDER
from annotation.report import exhibits
from annotation.report.judges import judge_exhibits, made_up
from annotation.report.material import CampaignMaterial, read_material
from evaluation.tables import sensitivity
from plumbline.errors import PlumblineError
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import JUDGED, RULES, SCORED
from streamlit_app.readers.ratings import signs, verdicts
from streamlit_app.readers.scores import scores
from streamlit_app.records import cached, shared


@shared(*JUDGED, watches=(*RULES, "judgements/"))
def material(study: Study) -> CampaignMaterial:
    """What the campaign's report rests on: verdicts that hold, and their ratings."""
    return read_material(study, signs=signs(study))


@cached(*JUDGED, watches=RULES)
def table_two(study: Study) -> Exhibit:
    """Ratings and agreement (HTEB, Table 2)."""
    return exhibits.table_two_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def agreement(study: Study) -> Exhibit:
    """Every coefficient of agreement, with its interval."""
    return exhibits.agreement_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def labels(study: Study) -> Exhibit:
    """Shares and ranks of labels, and agreement on them."""
    return exhibits.labels_exhibit(material(study))


@cached(*JUDGED, watches=RULES)
def shares(study: Study) -> pd.DataFrame:
    """How often each point was given (`annotation.report.exhibits.shares_frame`)."""
    return exhibits.shares_frame(material(study))


@cached("verdicts.json")
def means(study: Study) -> pd.DataFrame:
    """Means against the threshold, a row a verdict and question (`annotation.report.exhibits.means_frame`)."""
    return exhibits.means_frame(verdicts(study))


@cached("verdicts.json")
def decisions_at(study: Study, *thresholds: float) -> pd.DataFrame:
    """What would be decided at thresholds (`evaluation.tables.sensitivity.threshold_decisions`)."""
    return sensitivity.threshold_decisions(verdicts(study), study.acceptance, thresholds)


@cached(*SCORED)
def scores_at(study: Study, *thresholds: float) -> pd.DataFrame:
    """Scores as they would be at thresholds (`evaluation.tables.sensitivity.threshold_table`)."""
    return sensitivity.threshold_table(scores(study), verdicts(study), study.acceptance, thresholds)


_SAID = ["judge", "question", "order", "score", "status", "text", "reason", "kind"]


@dataclass(frozen=True)
class Judges:
    """What a page shows of judges."""

    exhibits: Sequence[Exhibit]  #: as in the report: decisions, and how far judges agree with people
    lines: Sequence[str]  #: who they are, what is recorded or simulated, what was saved
    far: pd.DataFrame  #: `far_ratings` of any judge, the farthest first
    left_out: str  #: why there is nothing of this
    itself: pd.DataFrame  #: self-preference, as `judge select` found it last; empty where it did not run


@cached(*JUDGED, watches=(*RULES, "judgements/", f"{FOLDER}/self_preference.csv"))
def judges(study: Study) -> Judges | None:
    """What stands beside the verdicts; None where no judge has said anything, or may not speak."""
    if not judged(study):
        return None
    campaign = material(study)
    judging = campaign.beside
    if judging is None:
        return Judges((), (), pd.DataFrame(), campaign.judges_left_out, pd.DataFrame())
    scaled = campaign.counting[campaign.counting["question"].isin(campaign.questions)]
    far = far_ratings(scaled, over_orders(judging.judging.judgements), "any")
    far = far.sort_values("farthest", key=abs, ascending=False, kind="stable").reset_index(drop=True)
    names = scaled.drop_duplicates("pair_id").set_index("pair_id")["transformation"]
    far.insert(0, "transformation", far["pair_id"].map(names).astype(str))
    lines = [who_decides(decides=judging.decides), *made_up(judging), *saved_lines(judging.saved)]
    return Judges(judge_exhibits(campaign), lines, far, "", _itself(study))


def _itself(study: Study) -> pd.DataFrame:
    file = study.folder / FOLDER / "self_preference.csv"
    with contextlib.suppress(OSError, ValueError):  # a hand may have changed it: it is a copy of what was printed
        table = pd.read_csv(file)
        return table if {"model", "self_preference", "low", "high"} <= set(table) else pd.DataFrame()
    return pd.DataFrame()


def said_of(study: Study, pair_id: str) -> pd.DataFrame:
    """What judges said of one pair, once people's verdicts stand; no row where nothing can be told."""
    with contextlib.suppress(PlumblineError, OSError):
        judging = material(study).beside if judged(study) and (study.folder / "verdicts.json").exists() else None
        if judging is not None:
            judgements = judging.judging.judgements
            return judgements.loc[judgements["pair_id"] == pair_id, _SAID].reset_index(drop=True)
    return pd.DataFrame(columns=_SAID)


def adjudicated(study: Study, pair_id: str) -> pd.DataFrame:
    """What adjudicators decided about one pair: a row a question; no row where nobody did, or the file is damaged."""
    from annotation.adjudication import read_adjudications  # noqa: PLC0415 (a pair's window alone needs it)

    rows = []
    with contextlib.suppress(PlumblineError, OSError):
        for adjudication in read_adjudications(study):
            if adjudication.pair_id == pair_id:
                answer = adjudication.answer if adjudication.value is None else str(adjudication.value)
                decided = "discarded" if adjudication.status == "discarded" else answer
                rows.append(
                    (
                        adjudication.adjudicator,
                        adjudication.question,
                        decided,
                        adjudication.suggested,
                        "yes" if adjudication.rated else "no",
                    )
                )
    return pd.DataFrame(rows, columns=["Adjudicator", "Question", "Decided", "Judges' score in sight", "Rated it too"])
