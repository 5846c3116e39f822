"""What the first page shows: where the study stands, its rules, and what was evaluated."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

from annotation.records import Look, RuleSet
from annotation.status.status import Status, read_status
from annotation.verdicts import preregistration
from annotation.verdicts.verdicts import read_looks
from plumbline.errors import DataError
from plumbline.manifest import read_kept_frame, read_manifest
from plumbline.records import Score
from plumbline.study import Study
from streamlit_app.readers.files import COLLECTED, RULES
from streamlit_app.readers.ratings import collected, signs, simulated
from streamlit_app.records import cached


@cached(watches=("*",))
def status(study: Study) -> Status:
    """Where the study stands, as `python -m annotation status` says it."""
    noted = read_manifest(study).get("stages", {})
    if not isinstance(noted, dict) or not all(isinstance(entry, dict) for entry in noted.values()):
        path = study.folder / "manifest.json"
        raise DataError(f"{path} is damaged: `stages` is not what a run writes; delete it and run again")
    return read_status(study, datetime.now(UTC), collected(study), lambda: signs(study))


def read_ahead(study: Study) -> None:
    """Read what the page shows, so that it is there when the page is asked for."""
    simulated(study)
    status(study)
    amendments(study)
    looks(study)


@cached(watches=RULES)
def looks(study: Study) -> list[Look]:
    """When verdicts were reached."""
    return read_looks(study)


@cached(watches=(*RULES, *COLLECTED))
def amendments(study: Study) -> list[tuple[RuleSet, list[str]]]:
    """The rules that replaced others after the first rating, each with what it changed."""
    first = preregistration.first_rating(collected(study).ratings)
    return preregistration.amendments(preregistration.read_rules(study), first)


@cached("scores.parquet")
def coverage(study: Study) -> pd.DataFrame:
    """How many scores there are; columns: transformation, status, n (of all models, data sets and seeds)."""
    # What `evaluation.results` would import to read the same table takes longer than the page.
    scores = read_kept_frame(study, "scores.parquet", Score, study.command("evaluation.run"))
    counts = scores.groupby(["transformation", "status"], sort=False).size()
    table: pd.DataFrame = counts.rename("n").reset_index()
    return table
