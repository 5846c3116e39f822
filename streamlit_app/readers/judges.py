"""Judges beside people: decisions, agreement, what they have saved, and ratings that lie far from theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.judges.beside import judged
from annotation.judges.check_text import saved_lines, who_decides
from annotation.judges.judgements import over_orders
from annotation.judges.names import FOLDER
from annotation.judges.people import far_ratings
from annotation.report.judges import judge_exhibits, made_up
from plumbline.errors import PlumblineError
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from streamlit_app.readers.files import JUDGED, RULES
from streamlit_app.readers.verdicts import material
from streamlit_app.records import cached

_SAID = ["judge", "question", "order", "score", "status", "text", "reason", "kind"]


@dataclass(frozen=True)
class Judges:
    """What a page shows of judges."""

    exhibits: Sequence[Exhibit]  #: as in the report: decisions, and how far judges agree with people
    told: Sequence[str]  #: who they are, what is recorded or simulated, what was saved
    far: pd.DataFrame  #: `far_ratings` of any judge, the farthest first
    left_out: str  #: why there is nothing of this
    itself: pd.DataFrame  #: self-preference, as `judge select` found it last; empty where it did not run


@cached(*JUDGED, watches=(*RULES, "judgements/", f"{FOLDER}/self_preference.csv"))
def judges(study: Study) -> Judges | None:
    """What stands beside the verdicts; None where no judge has said anything, or may not speak."""
    if not judged(study):
        return None
    found = material(study)
    made = found.beside
    if made is None:
        return Judges((), (), pd.DataFrame(), found.judges_left_out, pd.DataFrame())
    scaled = found.counting[found.counting["question"].isin(found.questions)]
    far = far_ratings(scaled, over_orders(made.judging.judgements), "any")
    far = far.sort_values("farthest", key=abs, ascending=False, kind="stable").reset_index(drop=True)
    names = scaled.drop_duplicates("pair_id").set_index("pair_id")["transformation"]
    far.insert(0, "transformation", far["pair_id"].map(names).astype(str))
    told = [who_decides(decides=made.decides), *made_up(made), *saved_lines(made.saved)]
    return Judges(judge_exhibits(found), told, far, "", _itself(study))


def _itself(study: Study) -> pd.DataFrame:
    file = study.folder / FOLDER / "self_preference.csv"
    with contextlib.suppress(OSError, ValueError):  # a hand may have changed it: it is a copy of what was printed
        found = pd.read_csv(file)
        return found if {"model", "self_preference", "low", "high"} <= set(found) else pd.DataFrame()
    return pd.DataFrame()


def said_of(study: Study, pair_id: str) -> pd.DataFrame:
    """What judges said of one pair, once people's verdicts stand; no row where nothing can be told."""
    with contextlib.suppress(PlumblineError, OSError):
        made = material(study).beside if judged(study) and (study.folder / "verdicts.json").exists() else None
        if made is not None:
            said = made.judging.judgements
            return said.loc[said["pair_id"] == pair_id, _SAID].reset_index(drop=True)
    return pd.DataFrame(columns=_SAID)


def adjudicated(study: Study, pair_id: str) -> pd.DataFrame:
    """What adjudicators decided about one pair: a row a question; no row where nobody did, or the file is damaged."""
    from annotation.adjudication.collect import read_adjudications  # noqa: PLC0415 (a pair's window alone needs it)

    rows = []
    with contextlib.suppress(PlumblineError, OSError):
        for one in read_adjudications(study):
            if one.pair_id == pair_id:
                said = one.answer if one.value is None else str(one.value)
                decided = "discarded" if one.status == "discarded" else said
                rows.append((one.adjudicator, one.question, decided, one.suggested, "yes" if one.rated else "no"))
    return pd.DataFrame(rows, columns=["Adjudicator", "Question", "Decided", "Judges' score in sight", "Rated it too"])
