"""What the first page shows, and what most pages rest on: where the study stands, its answers, verdicts and rules."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from annotation.campaign_records import CampaignData, CampaignRecords
from annotation.records import Look, RuleSet, Sign, Verdict
from annotation.sampling.sample import COMMAND as SAMPLE
from annotation.status.status import Status, read_status
from annotation.verdicts import preregistration
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.rules import late_lines
from annotation.verdicts.verdicts import refuse_stale
from annotation.verdicts.verification import refuse_other_file
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.records import Pair, Score
from plumbline.store import read_frame
from streamlit_app.records import COLLECTED, RATED, RULES, PageReader, cached, shared


class OverviewReader(PageReader):
    """Reads where a study stands, and the records that most pages rest on; imports nothing that takes long."""

    @cached(watches=("*",))
    def status(self) -> Status:
        """Where the study stands, as `python -m annotation status` says it."""
        noted = Manifest.of(self.study).read().get("stages", {})
        if not isinstance(noted, dict) or not all(isinstance(entry, dict) for entry in noted.values()):
            path = self.study.folder / "manifest.json"
            raise DataError(f"{path} is damaged: `stages` is not what a run writes; delete it and run again")
        evidence = Evidence.open(self.study).changed(collected=self.collected(), signs=self.signs())
        return read_status(evidence, datetime.now(UTC))

    def read_ahead(self) -> None:
        """Read what the page shows, so that it is there when the page is asked for."""
        self.simulated()
        self.status()
        self.amendments()
        self.looks()

    @shared("verdicts.json")
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts reached last."""
        return tuple(CampaignRecords.open(self.study).verdicts)

    @cached("verdicts.json", watches=(*RATED, "manifest.json"))
    def verdicts_hold(self) -> str:
        """Empty where the verdicts follow from what is on disk, else why not."""
        try:
            records = CampaignRecords.open(self.study)
            refuse_stale(records, self.verdicts())
            refuse_other_file(records)
        except DataError as error:
            return str(error)
        return ""

    @shared("ratings.parquet")
    def answers(self) -> pd.DataFrame:
        """Every answer (`plumbline.records.Rating`)."""
        return CampaignRecords.open(self.study).ratings

    @shared(watches=COLLECTED)
    def collected(self) -> CampaignData:
        """What raters saw and answered, controls and repeats too."""
        return CampaignData.read(self.study)

    @shared(*RATED, watches=RULES)
    def signs(self) -> Sequence[Sign]:
        """What is odd in raters' answers."""
        return Evidence.open(self.study).changed(collected=self.collected()).signs

    @cached(watches=("verdicts.json", *COLLECTED))
    def simulated(self) -> bool:
        """Whether any rating, or any verdict, rests on simulated raters; records that cannot be read say nothing."""
        any_simulated = False
        with contextlib.suppress(DataError, OSError):
            any_simulated = bool(self.collected().ratings["simulated"].any())
        with contextlib.suppress(DataError, OSError):
            any_simulated = any_simulated or self.simulates()
        return any_simulated

    def simulates(self) -> bool:
        """Whether any verdict rests on simulated ratings."""
        return any(verdict.simulated for verdict in self.verdicts())

    @cached(watches=("verdicts.json", *COLLECTED))
    def late(self) -> Sequence[str]:
        """A line where the verdicts' rules were fixed after the first rating; verdicts that are not there say none."""
        with contextlib.suppress(DataError, OSError):
            return late_lines(self.verdicts())
        return ()

    @cached(watches=RULES)
    def looks(self) -> list[Look]:
        """When verdicts were reached."""
        return CampaignRecords.open(self.study).looks

    @cached(watches=(*RULES, *COLLECTED))
    def amendments(self) -> list[tuple[RuleSet, list[str]]]:
        """The rules that replaced others after the first rating, each with what it changed."""
        first = preregistration.first_rating(self.collected().ratings)
        return preregistration.amendments(CampaignRecords.open(self.study).rules, first)

    @cached("scores.parquet")
    def coverage(self) -> pd.DataFrame:
        """How many scores there are; columns: transformation, status, n (of all models, data sets and seeds)."""
        # What `evaluation.results` would import to read the same table takes longer than the page.
        scores = Manifest.of(self.study).frame("scores.parquet", Score, self.study.command("evaluation.run"))
        counts = scores.groupby(["transformation", "status"], sort=False).size()
        table: pd.DataFrame = counts.rename("n").reset_index()
        return table

    @shared("pairs.parquet")
    def pairs(self) -> pd.DataFrame:
        """The sample's pairs."""
        return words_as_objects(read_frame(self.study.folder / "pairs.parquet", Pair, self.study.command(SAMPLE)))


def words_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its words as Python's strings: tables go through them often, and Arrow's take long."""
    words = {name: object for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return frame.astype(words)
