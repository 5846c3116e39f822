"""What generation leaves of instructions: replies as they came, wordings for people, and those that were taken out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from plumbline.identity import identity
from plumbline.records import Record

REPLIES, REMOVED = "instructions/replies.parquet", "instructions/removed.json"


class Reply(Record):
    """What the generator said to one call (`instructions/replies.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of the generator, the message, the number of wordings and the seed")
    context: str = Field(description="what the generator was told: task_type, description or language")
    task: str = Field(description="the data set that the wordings are for; empty for all of the type")
    task_type: str = Field(description="its task")
    prompts: tuple[str, ...] = Field(description="the wordings; none where there is no valid reply")
    raw: str = Field(description="the last answer as it came")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: no valid reply after all attempts; unanswered: no answer came, the next run asks again"
    )
    reason: str = Field(description="why there are no wordings; empty otherwise")
    attempts: int = Field(description="answers received")
    model: str = Field(description="the generator's model")
    generator_kind: str = Field(description="its kind: recorded, openai or vllm")
    generator_hash: str = Field(description="hash of model, revision and sampling")
    prompt_hash: str = Field(description="hash of the template's text")
    finished_at: datetime = Field(description="when the last answer was received, UTC")


class Instruction(Record):
    """One wording of an instruction (`instructions/prompts.parquet`): what people label and models are given."""

    KEY = ("prompt_id",)
    prompt_id: str = Field(description="hash of the wording and of the data set, or task type, that it is for")
    text: str = Field(description="the exact wording, in NFC, without blanks around it")
    group: str = Field(description="what it gets a verdict with: from_task_type, from_people and so on")
    source: Literal["machine", "human"] = Field(description="who worded it")
    context: str = Field(description="what the generator was told, as in `Reply`; empty for people's")
    task: str = Field(description="the data set that it is for; empty for all of its type")
    task_type: str = Field(description="that data set's task")
    task_words: str = Field(description="what raters read of the task beside the wording")
    language: str = Field(description="code of the wording's language")
    generator: str = Field(description="the generator's model; empty for people's")
    generator_kind: str = Field(description="its kind, such as recorded; empty for people's")
    generator_hash: str = Field(description="hash of model, revision and sampling; of people's, of their file")
    prompt_hash: str = Field(description="hash of the template's text; empty for people's")
    seed: int = Field(description="of the generator's first attempt; 0 for people's")
    right: str = Field(default="", description="of a known item its right label: it tells about raters alone")

    def serves(self, task: str, task_type: str) -> bool:
        """Whether a data set is evaluated under it."""
        return self.task == task if self.task else self.task_type == task_type


class RemovedWording(Record):
    """A wording that another stands for (`instructions/removed.json`)."""

    text: str = Field(description="the wording")
    group: str = Field(description="what it would get a verdict with")
    task: str = Field(description="the data set that it was for; empty for all of its type")
    task_type: str = Field(description="that data set's task")
    kept: str = Field(description="prompt_id of the wording that stands for it")
    kept_text: str = Field(description="that wording")
    distance: float = Field(description="normalised Levenshtein distance of the two, 0 for equal ones")


def prompt_id(text: str, task: str, task_type: str) -> str:
    """Identity of a wording for a data set, or where none is named for all of a type."""
    return identity("instruction-v1", "task" if task else "type", task or task_type, text)[:16]
