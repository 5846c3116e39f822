"""The content of a bundle: its members' names, the manifest, and the members' records."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plumbline.errors import DataError
from plumbline.reading import MalformedError, parse_json
from plumbline.records import Number, Record
from plumbline.study.base import first_complaint
from plumbline.study.engines import JUDGE_SETTINGS

Fault = tuple[str, str]  # member, what is wrong with it
COPY = "copy_of"
AGAIN = "get it again from where it came from"
#: A model's settings in a bundle: none reaches into a machine (a folder, a server, a key, code).
OF_MODELS = ("name", "kind", "revision", "prompts", "ngrams", "dimensions")
FOLDER = "folder"  # marks a generator whose model is a folder's name: its hash covers the whole path
KINDS = ("sentence_transformers", "mteb", "lexical")
OF_GENERATORS = ("languages", "quantization", "dtype", "max_model_len")  # settings of engines
#: The settings that `study.json` may have, by part: none lets a model run code of its own, for example.
OF_STUDY: dict[str, tuple[str, ...]] = {
    "study": ("name", "description", "datasets", "transformations", "seeds", "prompts", "languages", "wordings",
              "generator", "sample", "rubric", "raters", "acceptance", "quality", "judges", "evaluation"),
    "generator": ("kind", "model", "revision", "sampling", *OF_GENERATORS, FOLDER),
    "raters": ("per_pair",),
    "judges": JUDGE_SETTINGS,
    "evaluation": ("protocol", "precision", "failed", "models"),
}  # fmt: skip
STUDY, TRANSFORMATIONS, RUBRIC = "study.json", "transformations.json", "rubric.json"
PAIRS, RATINGS, SCORES = "pairs.parquet", "ratings.parquet", "scores.parquet"
CONTROLS, CONTROL_RATINGS, MEANS = "controls.parquet", "control_ratings.parquet", "pair_means.parquet"
JUDGED, JUDGEMENTS, REFUSED = "judged.parquet", "judgements.parquet", "judges.json"
VERDICTS, AGREEMENT = "verdicts.json", "agreement.json"
REPORTS = {"report/ratings.html": "report/index.html", "report/scores.html": "report_evaluation/index.html"}
FORMAT: Literal["plumbline bundle"] = "plumbline bundle"
VERSION = 1


class _Statement(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArchiveMember(_Statement):
    """One file in the archive."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of its bytes")
    size: int = Field(ge=0, description="its bytes")


class DatasetSource(_Statement):
    """A data set of the bundle's outputs."""

    name: str = Field(description="its name in every record")
    kind: Literal["local", "mteb"] = Field(description="a file of the maker's, or a task of mteb")
    task: str = Field(description="its task")
    revision: str = Field(description="of a file the hash of its bytes; of mteb's repository@commit on the hub")
    texts: Literal["include", "reference"] = Field(description="whether its texts are in the bundle")
    n_texts: int = Field(ge=0, description="distinct texts that were transformed")
    languages: tuple[str, ...] = Field(description="codes of these")
    licence: str = Field(description="of its texts")
    citation: str = Field(default="", description="BibTeX")
    reference: str = Field(default="", description="address of a page about it")
    domains: tuple[str, ...] = Field(default=(), description="what the texts are, in mteb's words")


class BundleManifest(_Statement):
    """The manifest. Its hash is the bundle's identity."""

    format: Literal["plumbline bundle"] = Field(default=FORMAT, description="what this is")
    version: int = Field(default=VERSION, ge=1, le=VERSION, strict=True, description="of the format")
    made_with: str = Field(description="version of Plumbline")
    study: str = Field(description="name of the study")
    description: str = Field(description="the study's own")
    edition: str = Field(description="the maker's own version of it")
    licence: str = Field(description="of outputs and ratings")
    citation: str = Field(description="BibTeX")
    contact: str = Field(description="whom to write to")
    creators: tuple[str, ...] = Field(default=(), description="who made it")
    reference: str = Field(default="", description="address of a page about it")
    published: str = Field(default="", description="the day of its publication")
    simulated: bool = Field(description="true if any rating is a program's and no person's")
    comments: bool = Field(description="whether raters' free words are in it")
    datasets: tuple[DatasetSource, ...] = Field(description="what was transformed")
    generator: dict[str, Any] = Field(description="kind (`recorded`: replayed from files), model, revision, sampling")
    rated: tuple[str, str] = Field(description="days of the first and of the last rating")
    members: dict[str, ArchiveMember] = Field(description="every other file in the archive")

    def to_bytes(self) -> bytes:
        """Return the manifest as it is in the archive."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def read_manifest(content: bytes, where: str) -> tuple[BundleManifest, str]:
    """Return (a manifest, the bundle's identity). Raises DataError for other content or a later format."""
    try:
        data = parse_json(content)
    except MalformedError as error:
        raise DataError(f"{where}: its manifest is damaged ({error}); {AGAIN}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError(f"{where} is not a bundle (its manifest does not say {FORMAT!r}); {AGAIN}")
    if isinstance(data.get("version"), int) and data["version"] > VERSION:
        raise DataError(
            f"{where} has format {data['version']}, but this version reads up to {VERSION}: update Plumbline"
        )
    try:
        return BundleManifest.model_validate(data), hashlib.sha256(content).hexdigest()
    except ValidationError as error:
        raise DataError(f"{where}: its manifest is damaged ({first_complaint(error)}); {AGAIN}") from None


def outputs_of(transformation: str, seed: int) -> str:
    """Return the name of the member with a unit's outputs."""
    return f"outputs/{transformation}/{seed}.parquet"


def rows_of(dataset: str, part: str) -> str:
    """Return the name of the member with a part of a local data set's rows."""
    return f"data/{dataset}/{part}.parquet"


def texts_of(dataset: str) -> str:
    """Return the name of the member with a data set's texts, their positions and hashes."""
    return f"texts/{dataset}.parquet"


class BundledOutput(Record):
    """The output of a text (`outputs/<transformation>/<seed>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of everything that changes the output, as in pairs.parquet")
    text_id: str = Field(description="the original's hash")
    datasets: tuple[str, ...] = Field(description="data sets in which it replaces that text")
    source_language: str = Field(description="the original's language")
    language: str = Field(description="the language that the output should be in")
    output: str = Field(description="the transformed text; empty if there is none, or if it is `copy_of` a text")
    status: Literal["ok", "failed"] = Field(description="whether there is one")
    reason: str = Field(description="why there is none, without messages of servers or functions; empty otherwise")
    flags: tuple[str, ...] = Field(description="error types found on the last attempt")
    first_flags: tuple[str, ...] = Field(description="error types found on the first attempt")
    attempts: int = Field(description="answers received")
    copy_of: str = Field(
        default="",
        description="the hash of the text, if the output is a literal copy of a text that may not be shared",
    )


class BundledJudged(Record):
    """An output rated by judges (`judged.parquet`) that decide with people; its texts are elsewhere."""

    KEY = ("pair_id",)
    pair_id: str = Field(description="as in pairs.parquet, where the output was rated by people too")
    key: str = Field(description="the output's")
    transformation: str = Field(description="its transformation")
    pool: str = Field(description="transformations rated together")
    dataset: str = Field(description="first data set that holds the original")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="language that the output should be in")
    seed: int = Field(description="transformation seed")
    wave: int = Field(description="wave of the sample in which it was drawn")
    stratum: str = Field(description="where it was drawn")
    place: int = Field(description="its place among the judged of its transformation, from 1; the sample's come first")


class BundledJudgement(Record):
    """One answer of one judge to one question on one output (`judgements.parquet`), without its text."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of judge, prompt, question, order and pair")
    pair_id: str = Field(description="which output, as in judged.parquet")
    judge: str = Field(description="the judge's name")
    question: str = Field(description="the question")
    order: Literal["up", "down"] = Field(description="the scale's points from the lowest (up) or the highest (down)")
    score: Number = Field(description="the judgement, on the question's scale; NaN without one")
    status: Literal["ok", "failed", "unanswered"] = Field(description="whether there is one")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="the judge's kind; recorded ones were not asked")
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and way of reading")
    prompt_hash: str = Field(description="hash of the prompt without the texts")
    text: str = Field(default="", description="its answer as it came; empty if free answers are left out")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class BundledPrompt(BaseModel):
    """A prompt, word for word."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    source: str
    language: str
    text: str


class BundledTransformation(BaseModel):
    """The making of a transformation (`transformations.json`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    definition: dict[str, Any] = Field(description="the transformation as its file has it")
    prompts: tuple[BundledPrompt, ...] = Field(description="its calls' prompts, in order")
    prompt_hash: str = Field(description="of these; empty without prompts")
    kind: str = Field(description="what made it: the generator's kind, function or outputs")
    model: str = Field(description="the generator's model, the function, or the file of outputs")
    generator_hash: str = Field(description="identity of what made it")
