"""A campaign's progress, by transformation and language and by rater, and the stages that it has completed.

An answer is what one rater gave to one pair, on all questions.

The files on disk and the manifest tell which stages a study has completed, and which of them rest on something that has
changed since. If the manifest has no hashes (for example, because records were copied without it), no stage is stale.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from annotation.campaign.counting import asked_again, untimed
from annotation.campaign.names import listed_raters
from annotation.campaign.offering import LEDGER, is_complete, ledgers
from annotation.campaign.records import CampaignRecords
from annotation.records import Member, Sign
from annotation.sampling.queues import frames_by_queue
from annotation.sampling.sample import sample_settings
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import changes
from generation.jobs import journal_files
from plumbline.errors import DataError
from plumbline.manifest import Manifest, RecordFile
from plumbline.records import ARGILLA
from plumbline.study import Study, file_hash
from plumbline.study.transformations import EIGHT

_UNIT = ["transformation", "language"]
_ANSWER = ["pair_id", "rater_id"]
_STATES = ["drafts", "discarded", "last", "signs", "excluded", "out"]
_RATER = ["rater_id", "simulated", "answers", "open", *_STATES]


MEMBERS = RecordFile("members.json", Member, "collect")


def read_members(records: CampaignRecords) -> list[Member]:
    """Return the raters of each dataset at the last collection from Argilla; none before it."""
    return records.models(MEMBERS) if records.has(MEMBERS) else []


@dataclass(frozen=True)
class Workload:
    """The numbers of pairs and raters that were asked for."""

    datasets: Mapping[str, str]  #: of each pair that raters see, by id: controls and repeats too
    members: Sequence[Member]
    per_pair: int
    withdrawn: Collection[str] = ()  #: pairs that are not wanted any more
    fewer: Mapping[str, int] = field(default_factory=dict)  #: raters of each pair of a dataset that wants other numbers

    @classmethod
    def of(cls, evidence: Evidence) -> Workload:
        """Return the workload of a study."""
        study, read = evidence.study, evidence.collected
        datasets, wanted = dict[str, str](), dict[str, int]()
        for queue, group in frames_by_queue(read.pairs[["pair_id", "queue", "pool", "language", "output_language"]]):
            wanted[queue.dataset(study.name)] = study.raters_of(queue.pool)
            datasets |= dict.fromkeys(group["pair_id"].to_list(), queue.dataset(study.name))
        names = set(datasets.values())
        members = [member for member in read_members(evidence) if member.dataset in names]
        return cls(datasets, members, study.raters.per_pair, {*read.withdrawn, *evidence.unopened()}, wanted)

    def left(self, answers: pd.DataFrame) -> dict[str, Counter[str]]:
        """Return how many pairs that want answers each member neither answered nor discarded, by dataset."""
        complete = self.complete(answers)
        number = Counter(self.datasets.values())
        number.subtract(self.datasets[pair] for pair in complete)
        answered = answers[(answers["status"] != "draft") & ~answers["pair_id"].isin(complete)]
        done = _counts(answered, ["rater_id", "dataset"])
        open_pairs: dict[str, Counter[str]] = defaultdict(Counter)
        for member in self.members:
            open_pairs[member.rater_id][member.dataset] = number[member.dataset] - done[member.rater_id, member.dataset]
        return open_pairs

    def complete(self, answers: pd.DataFrame) -> list[str]:
        """Return the pairs that want no answer now: they have enough, were withdrawn, or their block is not open."""
        got = answers.loc[(answers["status"] == "submitted") & ~answers["again"], "pair_id"].value_counts()
        got = got[got >= min([self.per_pair, *self.fewer.values()])]
        wanted = [self.fewer.get(self.datasets.get(pair_id, ""), self.per_pair) for pair_id in got.index]
        complete = [*got.index[got >= wanted], *(pair_id for pair_id in self.withdrawn if pair_id in self.datasets)]
        return list(dict.fromkeys(complete))

    def unanswerable(self, pairs: pd.DataFrame, answers: pd.DataFrame) -> int:
        """Return how many open answers no member who is not excluded can give; 0 where no member is known.

        `pairs` have columns pair_id and `open`; a member can answer a pair once, and not after discarding it.
        """
        excluded = set(answers.loc[answers["excluded"] != "", "rater_id"])
        present = {(member.dataset, member.rater_id) for member in self.members if member.rater_id not in excluded}
        done = answers.loc[answers["status"] != "draft", _ANSWER].drop_duplicates()
        places = zip(done["pair_id"].map(self.datasets), done["rater_id"], strict=True)
        through = done.loc[[membership in present for membership in places], "pair_id"].value_counts()
        let_in = Counter(dataset for dataset, _ in present)
        able = [let_in[self.datasets[pair_id]] - through.get(pair_id, 0) for pair_id in pairs["pair_id"]]
        return int((pairs["open"] - able).clip(lower=0).sum()) if present else 0


def by_transformation(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each transformation and language of the sample, in order; `pairs` are those of `by_pair`.

    Columns: transformation, language; numbers of pairs: `withdrawn`, and without these `pairs`, `complete` and
    `enough`; numbers of answers to those that stay: `counting`, `wanted`, `open`, `drafts`, `discarded`, `surplus` and
    `excluded`.
    """
    numbers = ["pairs", "withdrawn", "complete", "enough"]
    names = [*numbers, "counting", "wanted", "open", "drafts", "discarded", "surplus", "excluded"]
    return pairs.groupby(_UNIT, sort=False)[names].sum().reset_index()


def by_rater(ratings: pd.DataFrame, workload: Workload, signs: Sequence[Sign]) -> pd.DataFrame:
    """Return a row for each rater who answered or is asked to, most answers first; `ratings` are all.

    Columns: rater_id, simulated, `answers` (submitted), `open` (pairs of the rater's datasets that want answers and
    have none of the rater's; NA for who is no member: ratings from files), `drafts`, `discarded`, `last` (when the last
    answer was submitted, NaT where files do not say it), `signs`, `excluded` and `out` (answered in Argilla, and is
    neither excluded nor let in while others are).
    """
    columns = [*_ANSWER, "status", "excluded", "submitted_at", "simulated", "source", "batch"]
    answers = ratings[columns].assign(again=asked_again(ratings)).drop_duplicates(_ANSWER)
    pairs = answers["pair_id"].astype("category").cat
    datasets = pd.Categorical([workload.datasets.get(pair) for pair in pairs.categories.tolist()])
    raters = listed_raters(answers["rater_id"])
    answers = answers.assign(dataset=datasets[pairs.codes.to_numpy()], rater_id=raters).dropna(subset=["dataset"])
    submitted = answers[answers["status"] == "submitted"]
    first = answers.drop_duplicates("rater_id")
    simulated_by_rater = dict(zip(first["rater_id"], first["simulated"], strict=True))
    simulated_by_rater |= {member.rater_id: member.simulated for member in workload.members}
    excluded = set(answers.loc[answers["excluded"] != "", "rater_id"].unique())
    members = {member.rater_id for member in workload.members}
    here = set(answers.loc[answers["source"] == ARGILLA, "rater_id"]) if members else set[str]()
    open_pairs = workload.left(answers)
    drafts, discarded = (_counts(answers[answers["status"] == name], "rater_id") for name in ("draft", "discarded"))
    of_rater = Counter(sign.rater_id for sign in signs)
    answered, timed = _counts(submitted, "rater_id"), submitted[~untimed(answers)[submitted.index]]
    last = timed.groupby("rater_id", observed=True)["submitted_at"].max().to_dict()
    rows: list[dict[str, Any]] = [
        {
            "rater_id": rater,
            "simulated": bool(simulated),
            "answers": answered[rater],
            "open": sum(open_pairs[rater].values()) if rater in open_pairs else pd.NA,
            "drafts": drafts[rater],
            "discarded": discarded[rater],
            "last": last.get(rater, pd.NaT),
            "signs": of_rater[rater],
            "excluded": rater in excluded,
            "out": rater in here - members - excluded,
        }
        for rater, simulated in simulated_by_rater.items()
    ]
    frame = pd.DataFrame(rows, columns=_RATER).astype({"open": "Int64"})
    return frame.sort_values(["answers", "rater_id"], ascending=[False, True], ignore_index=True)


def _counts(frame: pd.DataFrame, by: str | list[str]) -> Counter[Any]:
    """Return the number of rows by the values of one or several columns."""
    return Counter(frame.groupby(by, observed=True).size().to_dict())


State = Literal["done", "stale", "under way", "not yet"]
REHEARSING = ("publish", "simulate", "collect")  # what raters who are simulated need, in turn
DASHBOARD = "dashboard"
PEOPLE_REPORT = "people and models"  # the report of a study whose people do tasks
_LARGE = ("texts.parquet", "transformations")  # hashed when they were made, and not again to look at them


@dataclass(frozen=True)
class Stage:
    """One stage of the flow."""

    name: str
    state: State
    at: datetime | None = None  #: when it ended last, UTC; None if unknown
    note: str = ""  #: why it is stale, or how far it is
    reason: str = ""  #: of a sample: why it grows, by whoever extended it, or the settings that changed
    wanted: bool = True  #: whether the study has such a stage; one that it has not is done
    annotators: int | None = None  #: how many annotators may see what was published; None if unknown
    admitted_at: datetime | None = None  #: when these were counted


class _StageHistory:
    """A study and its stages in the manifest; its files are hashed once for all stages."""

    def __init__(self, study: Study, manifest: Mapping[str, Any]) -> None:
        self.study, self.manifest = study, manifest
        self.entries: Mapping[str, dict[str, Any]] = manifest.get("stages", {})
        self.hash_of = functools.cache(lambda path: file_hash(path) if path.exists() else "")

    def ended(self, command: str) -> datetime | None:
        """Return the time at which a command last ended."""
        return datetime.fromisoformat(self.entries[command]["finished_at"]) if command in self.entries else None

    def ended_at(self) -> dict[str, datetime]:
        """Return when each command last ended."""
        return {name: datetime.fromisoformat(entry["finished_at"]) for name, entry in self.entries.items()}

    def _place(self, name: str) -> Path:
        """Return the path of a file that a command read, among the records or below the study file."""
        path = self.study.folder / name
        return path if path.exists() else self.study.file.parent / name

    def changed(self, command: str) -> list[str]:
        """Return which of the files that a command read are others now."""
        outputs = self.entries.get("generation", {}).get("outputs", {})
        inputs = self.entries.get(command, {}).get("inputs", {})
        hashes = {name: self.hash_of(self._place(name)) for name in inputs if name not in _LARGE}
        return [name for name, was in inputs.items() if hashes.get(name, outputs.get(name, was)) != was]

    def has_other_inputs(self, command: str, paths: Collection[Path]) -> bool:
        """Return whether a command read other files than these are now; missing ones are left out."""
        inputs = self.entries.get(command, {}).get("inputs")
        return inputs is not None and {self.hash_of(path) for path in paths if path.exists()} != set(inputs.values())

    def stage(self, name: str, path: Path, command: str) -> Stage:
        """The stage whose `command` made `path`."""
        if not path.exists():
            return Stage(name, "not yet")
        changed = self.changed(command)
        note = f"{' and '.join(changed)} changed afterwards" if changed else ""
        return Stage(name, "stale" if changed else "done", self.ended(command), note)

    @property
    def _generated(self) -> datetime | None:
        """The time at which outputs of the study's present generator were last made."""
        outputs = self.entries.get("generation", {}).get("outputs", {})
        return self.ended("generation") if self.study.outputs.name in outputs else None

    def texts(self) -> Stage:
        """Return the stage of texts: stale if outputs, or a subject's sample, were made of other files."""
        data = self.study.data_files()
        if self.study.judging.transforms:
            if not (self.study.folder / "texts.parquet").exists():
                return Stage("texts", "not yet")
            if not self.has_other_inputs("generation", data):
                return Stage("texts", "done", self._generated)
            new = " or own transformations" if any(name not in EIGHT for name in self.study.transformations) else ""
            return Stage("texts", "stale", self._generated, f"data sets{new} changed afterwards")
        if missing := [path for path in data if not path.exists()]:
            return Stage("texts", "not yet", None, f"no file {missing[0]}")
        if self.has_other_inputs("sample", data):
            return Stage("texts", "stale", None, "changed since the sample was drawn")
        return Stage("texts", "done")

    def transformations(self) -> Stage:
        """Return the stage of outputs: done when every transformation with every seed has its table."""
        study = self.study
        if not study.judging.transforms:
            return Stage("transformations", "done", None, "none: nothing is transformed", wanted=False)
        units = [(name, seed) for name in study.transformations for seed in study.seeds]
        present = sum(study.transformation_file(*unit).exists() for unit in units)
        if present == len(units):
            return Stage("transformations", "done", self._generated)
        if not present and not any(journal_files(study.journal_file(*unit)) for unit in units):
            return Stage("transformations", "not yet")
        return Stage("transformations", "under way", None, f"{present} of {len(units)} units (transformation and seed)")

    def sample(self, records: CampaignRecords, mismatched: Sequence[str]) -> Stage:
        """Return the stage of the sample: stale if it is no longer the study's."""
        stage = self.stage("sample", self.study.folder / "pairs.parquet", "sample")
        if cut_off := [wave for wave in records.waves[-1:] if not is_complete(records, wave)]:
            (wave,) = cut_off
            note = f"its extension to wave {wave.number} was interrupted: {wave.reason}"
            return Stage("sample", "under way", stage.at, note, wave.reason)
        if mismatched:
            judging = self.study.judging
            note = "made by another generator or other prompts than the study's"
            return Stage("sample", "stale", stage.at, note if judging.transforms else "not of the study's items now")
        changed_settings = changes(
            self.entries.get("sample", {}).get("settings", {}),
            sample_settings(self.study.sample, self.study.judging, self.study.raters.blocks),
        )
        if stage.state == "done" and changed_settings:
            changed = "; ".join(changed_settings)
            return Stage("sample", "stale", stage.at, f"drawn with other settings: {changed}", changed)
        return stage

    def published(self, ratings: pd.DataFrame) -> Stage:
        """Return the stage of publication, without asking Argilla.

        The manifest records it, and ratings from Argilla show it; the ledger lists what was offered to crowd workers.
        """
        if "publish" in self.entries:
            stage = self.stage("published", self.study.folder / "pairs.parquet", "publish")
            ended = self.ended_at()
            last = max((name for name in ("publish", "users invite") if name in ended), key=lambda name: ended[name])
            people = self.entries[last].get("settings", {}).get("annotators")
            return replace(stage, annotators=people, admitted_at=ended[last])
        if (ratings["source"] == ARGILLA).any():
            return Stage("published", "done")
        if offered := [campaign for campaign in ledgers(self.study.scratch / LEDGER) if campaign.counts]:
            return Stage(
                "published", "done", None, "to crowd workers: " + ", ".join(campaign.label for campaign in offered)
            )
        return Stage("published", "not yet", None, "ratings came from files" if len(ratings) else "")

    def scores(self) -> Stage:
        """Return the stage of scores, if the study evaluates models or people."""
        judging = self.study.judging
        if not (judging.does_tasks or (judging.scored_by and self.study.evaluation.models)):
            return Stage("scores", "done", None, "none: the study evaluates no model", wanted=False)
        table, command = judging.scores
        stage = self.stage("scores", self.study.folder / table, command)
        try:
            manifest = Manifest.of(self.study, self.manifest)
            manifest.refuse_replaced(table, self.study.command(judging.scored_by))
        except DataError as error:
            return Stage("scores", "stale", stage.at, str(error).partition(";")[0])
        if stage.state != "not yet" and command not in self.entries:
            return Stage("scores", "under way", None, "no run has finished")
        return stage


def stages_of(
    records: CampaignRecords, manifest: Mapping[str, Any], mismatched: Sequence[str], outdated: str = ""
) -> dict[str, Stage]:
    """The stages in the flow's order, by name.

    `mismatched` is what `mismatch` says, `outdated` why the verdicts no longer hold, empty where they do. Raises
    DataError for damaged files.
    """
    study, noted = records.study, _StageHistory(records.study, manifest)
    published = noted.published(records.collected.ratings)
    collected = noted.stage("collected", study.folder / "ratings.parquet", "collect")
    if published.state == "not yet" and records.collected.ratings.empty:  # of a rehearsal that was removed
        collected = Stage("collected", "not yet")
    judged = Stage("verdicts", "stale" if outdated else "done", noted.ended("accept"), outdated)
    stages = [
        noted.texts(),
        noted.transformations(),
        noted.sample(records, mismatched),
        published,
        collected,
        judged if records.looks else Stage("verdicts", "not yet"),
        noted.stage("report", study.folder / "report" / "index.html", "report"),
        noted.scores(),
    ]
    if study.judging.does_tasks:
        page = study.folder / "report_human" / "index.html"
        stages.append(noted.stage(PEOPLE_REPORT, page, "evaluation human report"))
    return {stage.name: stage for stage in stages}


def pages_of(study: Study, manifest: Mapping[str, Any]) -> dict[str, Stage]:
    """Return what shows a study to people beside the stages of its flow, by the command that makes it."""
    noted = _StageHistory(study, manifest)
    files = {
        "preview": ("preview", "preview.html"),
        "judge check": ("judge check", "judge_check"),
        "scores-report": ("evaluation report", "report_evaluation/index.html"),
        "sheet": ("sheet", "sheet"),
        DASHBOARD: (DASHBOARD, "manifest.json"),
        "export": ("export", "export"),
    }
    stages = {name: noted.stage(name, study.folder / file, stage) for name, (stage, file) in files.items()}
    return {
        name: stage if files[name][0] in noted.entries else replace(stage, state="not yet")
        for name, stage in stages.items()
    }


def ended_at(study: Study, manifest: Mapping[str, Any]) -> dict[str, datetime]:
    """Return when each command that the manifest notes last ended."""
    return _StageHistory(study, manifest).ended_at()
