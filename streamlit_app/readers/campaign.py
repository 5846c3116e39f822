"""Read the campaign, its verdicts with their evidence, judges and outputs: tables, and the pairs behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.campaign_records import CampaignRecords
from annotation.judges.check import saved_lines, who_decides
from annotation.judges.decisions import judged
from annotation.judges.people import far_ratings
from annotation.judges.records import over_orders
from annotation.judges.select_generator import FOLDER
from annotation.preview import preview_html
from annotation.ratings.review import pairs_to_read
from annotation.report import exhibits, raters
from annotation.report.material import CampaignMaterial, campaign_material, read_material
from annotation.report.raters import judge_exhibits, made_up
from annotation.verdicts.evidence import Evidence
from generation.output_statistics import by_generator, is_counted, tally
from generation.output_tables import error_rates, errors_measure, length_table, lengths_measure
from generation.unit import COMMAND
from plumbline.errors import PlumblineError
from plumbline.exhibits.table import Exhibit
from plumbline.records import Pair, Text, TransformedText, nfc
from plumbline.store import as_record, read_batches
from plumbline.transformations import ORIGINAL
from streamlit_app.readers import CONTROLS, JUDGED, RATED, RULES, OverviewReader, cached, shared

SHOWN = 100  # matches
_TEXT = ["dataset", "split", "item", "field", "language", "text_id", "text"]
_OUTPUT = ["text_id", "text", "source_language", "transformation", "seed", "language", "output", "status", "reason"]
_OUTPUT += ["flags", "attempts", "model"]

_OUTPUTS = ("transformations/", "candidates/")
_SAID = ["judge", "question", "order", "score", "status", "text", "reason", "kind"]
_ANSWERED = ["value", "answer", "status", "comment", "excluded", "withdrawn"]


@dataclass(frozen=True)
class CampaignTables:
    """Tables on raters and decisions about them; for a crowd also cost against plan and decisions on submissions."""

    raters: Exhibit
    signs: Exhibit
    decisions: Exhibit
    exclusions: Exhibit
    crowd: tuple[Exhibit, ...]  #: empty without crowd workers


@dataclass(frozen=True)
class Judges:
    """The judges' part of a page."""

    exhibits: Sequence[Exhibit]  #: as in the report: decisions, and how far judges agree with people
    lines: Sequence[str]  #: lines on the judges: names, recorded or simulated ones, saved ratings
    far: pd.DataFrame  #: `far_ratings` of any judge, the farthest first
    left_out: str  #: why judges are left out; empty otherwise
    itself: pd.DataFrame  #: self-preference, of the last `judge select`; empty if it did not run


class CampaignReader(OverviewReader):
    """Reads the answers of raters and judges, and the outputs of generators."""

    @cached(*RATED, "control_ratings.parquet", watches=RULES)
    def tables(self) -> CampaignTables:
        """The tables on raters and crowds."""
        material = campaign_material(Evidence.open(self.study).changed(signs=self.signs()))
        crowd_tables = (
            (raters.campaigns_exhibit(material), raters.crowd_decisions_exhibit(material)) if material.crowd else ()
        )
        return CampaignTables(
            exhibits.raters_exhibit(material),
            exhibits.signs_exhibit(material),
            exhibits.decisions_exhibit(material),
            exhibits.exclusions_exhibit(material),
            crowd_tables,
        )

    @cached("pairs.parquet", "ratings.parquet")
    def to_read(self) -> pd.DataFrame:
        """`annotation.ratings.review.pairs_to_read` of the sample."""
        return pairs_to_read(self.pairs(), self.answers(), self.study.raters.per_pair)

    @cached("pairs.parquet", watches=("decisions.json", "rules.json", "ratings.parquet", *CONTROLS))
    def preview(self) -> str:
        """The page of `plumbline preview`, for a page that has a heading."""
        return preview_html(CampaignRecords.open(self.study), headed=False)

    @shared(*JUDGED, watches=(*RULES, "judgements/"))
    def material(self) -> CampaignMaterial:
        """The material of the campaign's report: verdicts that hold, and their ratings."""
        return read_material(Evidence.open(self.study).changed(signs=self.signs()))

    @cached(*JUDGED, watches=RULES)
    def table(self, make: Callable[[CampaignMaterial], Exhibit]) -> Exhibit:
        """A table of `annotation.report.exhibits`."""
        return make(self.material())

    @cached(*JUDGED, watches=RULES)
    def severity(self) -> pd.DataFrame:
        """Raters' severity, a row for each question and rater (`annotation.verdicts.severity`)."""
        adjusted = self.material().adjusted
        return adjusted.raters if adjusted else pd.DataFrame()

    @cached(*JUDGED, watches=RULES)
    def shares(self) -> pd.DataFrame:
        """Shares of the points of each scale (`annotation.report.exhibits.shares_frame`)."""
        return exhibits.shares_frame(self.material())

    @cached("verdicts.json")
    def means(self) -> pd.DataFrame:
        """Means against the threshold, a row a verdict and question (`annotation.report.exhibits.means_frame`)."""
        return exhibits.means_frame(self.verdicts())

    @cached(*JUDGED, watches=(*RULES, "judgements/", f"{FOLDER}/self_preference.csv"))
    def judges(self) -> Judges | None:
        """The judges beside the verdicts; None without judgements, or while judges may not be shown."""
        if not judged(self.study):
            return None
        campaign = self.material()
        judging = campaign.beside
        if judging is None:
            return Judges((), (), pd.DataFrame(), campaign.judges_left_out, pd.DataFrame())
        scaled = campaign.counting[campaign.counting["question"].isin(campaign.questions)]
        far = far_ratings(scaled, over_orders(judging.judging.judgements), "any")
        far = far.sort_values("farthest", key=abs, ascending=False, kind="stable").reset_index(drop=True)
        names = scaled.drop_duplicates("pair_id").set_index("pair_id")["transformation"]
        far.insert(0, "transformation", far["pair_id"].map(names).astype(str))
        lines = [who_decides(decides=judging.decides), *made_up(judging), *saved_lines(judging.saved)]
        return Judges(judge_exhibits(campaign), lines, far, "", self._self_preference())

    def _self_preference(self) -> pd.DataFrame:
        file = self.study.folder / FOLDER / "self_preference.csv"
        # It is a copy of printed output, and may have been edited by hand.
        with contextlib.suppress(OSError, ValueError):
            table = pd.read_csv(file)
            return table if {"model", "self_preference", "low", "high"} <= set(table) else pd.DataFrame()
        return pd.DataFrame()

    def pair(self, pair_id: str) -> Pair | None:
        """One pair; None if the sample does not contain it (any more)."""
        sample = self.pairs()
        rows = sample[sample["pair_id"] == pair_id].to_dict(orient="records")
        return as_record({str(name): value for name, value in rows[0].items()}, Pair) if rows else None

    def answers_to(self, pair_id: str) -> pd.DataFrame:
        """Every answer to one pair, by raters' pseudonyms, with comments."""
        ratings = self.answers()
        columns = ["rater_id", "question", *_ANSWERED, "submitted_at", "simulated"]
        return ratings.loc[ratings["pair_id"] == pair_id, columns].reset_index(drop=True)

    def judgements_of(self, pair_id: str) -> pd.DataFrame:
        """Judges' answers to one pair, after people's verdicts; no rows without any."""
        with contextlib.suppress(PlumblineError, OSError):
            judging = (
                self.material().beside
                if judged(self.study) and (self.study.folder / "verdicts.json").exists()
                else None
            )
            if judging is not None:
                judgements = judging.judging.judgements
                return judgements.loc[judgements["pair_id"] == pair_id, _SAID].reset_index(drop=True)
        return pd.DataFrame(columns=_SAID)

    def adjudicated(self, pair_id: str) -> pd.DataFrame:
        """Adjudicators' decisions on one pair, a row for each question; none without any, or if the file is damaged."""
        from annotation.adjudication import ADJUDICATIONS  # noqa: PLC0415 (a pair's window alone needs it)

        rows = []
        with contextlib.suppress(PlumblineError, OSError):
            for adjudication in CampaignRecords.open(self.study).models(ADJUDICATIONS):
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
        return pd.DataFrame(
            rows, columns=["Adjudicator", "Question", "Decided", "Judges' score shown", "Also rated the pair"]
        )

    def units(self) -> list[tuple[str, int]]:
        """The transformations and seeds that have outputs on disk."""
        wanted = [(name, seed) for name in self.study.transformations for seed in self.study.seeds]
        return [unit for unit in wanted if self.study.transformation_file(*unit).exists()]

    @cached("texts.parquet", watches=_OUTPUTS)
    def counted(self) -> bool:
        """Return whether `plumbline generate` has counted the errors, so that the page need not read the outputs."""
        sources = by_generator([self.study])
        errors_of = [errors_measure(self.study.transforming, after_retries=after) for after in (False, True)]
        return all(is_counted(sources, measure) for measure in (*errors_of, lengths_measure()))

    @cached("texts.parquet", watches=_OUTPUTS)
    def errors(self, by: str, *, after_retries: bool) -> pd.DataFrame:
        """`generation.output_tables.error_rates` of the generator and the candidates."""
        return error_rates(
            tally(by_generator([self.study]), errors_measure(self.study.transforming, after_retries=after_retries)), by
        )

    @cached("texts.parquet", watches=_OUTPUTS)
    def lengths(self) -> pd.DataFrame:
        """`generation.output_tables.length_table` of the same."""
        return length_table(tally(by_generator([self.study]), lengths_measure()), self.study.transforming)

    @cached(watches=("texts.parquet", *_OUTPUTS))
    def find(self, query: str, where: str) -> tuple[pd.DataFrame, bool]:
        """(the first matches, whether there may be more), searched once for all times that the page shows them.

        `where` is `original` (the data sets' texts) or a transformation (outputs and their originals, of all seeds), or
        empty for all transformations. Letter case does not matter; the query is literal text, not a pattern. Files are
        read in pieces. Raises DataError for damaged files.
        """
        tables: list[pa.Table] = []
        number = 0
        for batch in self._batches(where):
            columns = [batch["text"]] if where == ORIGINAL else [batch["text"], batch["output"]]
            hits = pc.match_substring(columns[0], nfc(query), ignore_case=True)
            for column in columns[1:]:
                hits = pc.or_(hits, pc.match_substring(column, nfc(query), ignore_case=True))
            tables.append(batch.filter(hits))
            number += tables[-1].num_rows
            if number > SHOWN:
                break
        frame = pa.concat_tables(tables).to_pandas() if tables else pd.DataFrame(columns=_OUTPUT)
        return frame.head(SHOWN), len(frame) > SHOWN

    def _batches(self, where: str) -> Iterator[pa.Table]:
        study = self.study
        if where == ORIGINAL:
            yield from read_batches(study.folder / "texts.parquet", Text, study.command(COMMAND), _TEXT)
            return
        for transformation, seed in self.units():
            if where in ("", transformation):
                path = study.transformation_file(transformation, seed)
                yield from read_batches(path, TransformedText, study.command(COMMAND), _OUTPUT)
