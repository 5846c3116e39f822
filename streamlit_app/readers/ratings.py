"""What raters answered and what was decided: records that most pages rest on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pandas as pd

from annotation.ratings.collected import CampaignData
from annotation.ratings.ratings import read_ratings
from annotation.ratings.review import signs_of
from annotation.records import Sign, Verdict
from annotation.verdicts.marks import late_lines
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_other_file
from plumbline.errors import DataError
from plumbline.study import Study
from streamlit_app.readers.files import COLLECTED, RATED, RULES
from streamlit_app.records import cached, shared


@shared("verdicts.json")
def verdicts(study: Study) -> tuple[Verdict, ...]:
    """The verdicts reached last."""
    return tuple(read_verdicts(study))


@cached("verdicts.json", watches=(*RATED, "manifest.json"))
def verdicts_hold(study: Study) -> str:
    """Empty where the verdicts follow from what is on disk, else why not."""
    try:
        refuse_stale(study, verdicts(study))
        refuse_other_file(study)
    except DataError as error:
        return str(error)
    return ""


@shared("ratings.parquet")
def answers(study: Study) -> pd.DataFrame:
    """Every answer (`plumbline.records.Rating`)."""
    return read_ratings(study)


@shared(watches=COLLECTED)
def collected(study: Study) -> CampaignData:
    """What raters saw and answered, controls and repeats too."""
    return CampaignData.read(study)


@shared(*RATED, watches=RULES)
def signs(study: Study) -> Sequence[Sign]:
    """What is odd in raters' answers."""
    return signs_of(study, collected(study))


@cached(watches=("verdicts.json", *COLLECTED))
def simulated(study: Study) -> bool:
    """Whether any rating, or any verdict, rests on simulated raters; records that cannot be read say nothing."""
    any_simulated = False
    with contextlib.suppress(DataError, OSError):
        any_simulated = bool(collected(study).ratings["simulated"].any())
    with contextlib.suppress(DataError, OSError):
        any_simulated = any_simulated or any(verdict.simulated for verdict in verdicts(study))
    return any_simulated


@cached(watches=("verdicts.json", *COLLECTED))
def late(study: Study) -> Sequence[str]:
    """A line where the verdicts' rules were fixed after the first rating; verdicts that are not there say none."""
    with contextlib.suppress(DataError, OSError):
        return late_lines(verdicts(study))
    return ()


def answers_to(study: Study, pair_id: str) -> pd.DataFrame:
    """Every answer to one pair, by raters' pseudonyms, with what they wrote."""
    ratings = answers(study)
    columns_of = ["value", "answer", "status", "comment", "excluded", "withdrawn"]
    columns = ["rater_id", "question", *columns_of, "submitted_at", "simulated"]
    return ratings.loc[ratings["pair_id"] == pair_id, columns].reset_index(drop=True)
