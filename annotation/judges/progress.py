"""One judge's judgements: what is wanted of it, what is there, and what is left to ask.

Resume is a set difference, as in `generation.unit`: what is wanted minus what stands in the judge's table and journal.
Judgements by other prompts or settings, or of pairs that are judged no more, cost GPU time, so they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import pandas as pd

from annotation.judges.prompts import JudgeMessage, Questionnaire
from annotation.judges.records import JudgedPair, Judgement, ModelAnswer
from annotation.judges.replies import Read, refuse_no_recording
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.journal import Journal
from plumbline.manifest import read_kept_frame, refuse_replaced_table, write_kept_table
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.engines import JudgeSpec, Reading

COMMAND = "annotation judge run"


class _JudgeQuestion(Protocol):
    """What is asked: `prompt_hash` is of all that is said but the texts."""

    @property
    def prompt_hash(self) -> str: ...


A = TypeVar("A", bound=_JudgeQuestion)
R = TypeVar("R", Judgement, ModelAnswer)


def judge_hash(study: Study, spec: JudgeSpec, reading: Reading) -> str:
    """Identity of a judge: model, revision, sampling, seed and way of reading; of a recorded one its file's content."""
    of_file = []
    if spec.kind == "recorded":
        refuse_no_recording(path := study.resolve(spec.recording))
        of_file = [cached_file_hash(path)]
    return identity("judge-v1", *spec.identity(), reading, spec.seed, spec.least_mass, *of_file)


@dataclass(frozen=True)
class Place:
    """Where a model's answers stand: a table of the study's records, a row a record, and its journal."""

    study: Study
    name: str  #: of the table, from the study's folder

    @property
    def path(self) -> Path:
        """The table's file."""
        return self.study.folder / self.name

    def journal(self) -> Journal:
        """What came since the table was written."""
        return Journal((self.study.scratch / self.name).with_suffix(".journal"))


class ResumableAnswers(Generic[A, R]):
    """What a model has answered and has yet to answer: rows with a key and a status, by what was asked.

    With `again` failed ones are asked for again; unanswered ones always are.
    """

    def __init__(self, table: Place, row: type[R], wanted: Mapping[str, A], *, again: bool = False) -> None:
        self._place, self._wanted = table, wanted
        self._row: type[R] = row
        self.path, self.journal = table.path, table.journal()
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        self._there = {row.key: row.status for row in self._rows()}

    @property
    def wanted(self) -> int:
        """Answers that the study wants."""
        return len(self._wanted)

    def todo(self) -> list[tuple[str, A]]:
        """What is left to ask, by key: those that begin alike one after another, so that the beginning is read once."""
        questions = [
            (key, question)
            for key, question in self._wanted.items()
            if key not in self._there or self._there[key] in self._again
        ]
        return sorted(questions, key=lambda item: item[1].prompt_hash)

    def settle(self) -> None:
        """Turn the journal into the table: wanted ones first, in their order."""
        rows: dict[str, R] = {row.key: row for row in self._rows()}
        if self.path.exists() and not self.journal.path.exists():
            return
        order = [*(key for key in self._wanted if key in rows), *(key for key in rows if key not in self._wanted)]
        write_kept_table(self._place.study, self._place.name, (rows[key] for key in order), self._row)
        self.journal.remove()

    def frame(self) -> pd.DataFrame:
        """The answers that the study wants, as far as they stand in the table."""
        study = self._place.study
        frame = read_kept_frame(study, self._place.name, self._row, study.command(COMMAND))
        return frame[frame["key"].isin(self._wanted.keys())].reset_index(drop=True)

    def _rows(self) -> Iterator[R]:
        """What is there; later ones go before earlier ones."""
        study, command = self._place.study, self._place.study.command(COMMAND)
        if self.path.exists():
            refuse_replaced_table(study, self._place.name, command)
            yield from read_records(self.path, self._row, command)
        yield from (self._row.model_validate(row) for _, row in self.journal.lines(self._row))


class JudgeProgress(ResumableAnswers[JudgeMessage, Judgement]):
    """What one judge has said and has yet to say about pairs, in a table of a folder of the study's records."""

    def __init__(
        self,
        study: Study,
        questionnaire: Questionnaire,
        pairs: Iterable[JudgedPair],
        folder: Path,
        *,
        again: bool = False,
    ) -> None:
        self.asked = questionnaire
        self.hash = judge_hash(study, questionnaire.spec, questionnaire.reading)
        table = Place(study, str((folder / f"{questionnaire.spec.name}.parquet").relative_to(study.folder)))
        wanted = {self.key(asking): asking for pair in pairs for asking in questionnaire.askings(pair)}
        super().__init__(table, Judgement, wanted, again=again)

    def key(self, asking: JudgeMessage) -> str:
        """Identity of a judgement: of all that changes it."""
        position = asking.question, asking.order, asking.pair.pair_id
        return identity("judgement-v1", self.hash, asking.prompt_hash, *position)


def judgement(progress: JudgeProgress, key: str, asking: JudgeMessage, read: Read, **fields: object) -> Judgement:
    """The record of what came; `fields` are mode, text, status and attempts."""
    pair, spec = asking.pair, progress.asked.spec
    return Judgement.model_validate(
        {
            "key": key,
            "judge": spec.name,
            "question": asking.question,
            "order": asking.order,
            **{name: getattr(pair, name) for name in OF_PAIR},
            "generator": pair.model,
            "score": read.score,
            "label_mass": read.label_mass,
            "entropy": read.entropy,
            "reason": read.reason,
            "model": spec.model,
            "kind": spec.kind,
            "judge_hash": progress.hash,
            "prompt_hash": asking.prompt_hash,
            "finished_at": datetime.now(UTC),
            **fields,
        }
    )


OF_PAIR: Sequence[str] = (
    "pair_id",
    "transformation",
    "pool",
    "dataset",
    "task_type",
    "language",
    "output_language",
    "seed",
    "stratum",
)
