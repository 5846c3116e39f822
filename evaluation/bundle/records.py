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

Fault = tuple[str, str]  # member, description of the fault
COPY = "copy_of"
AGAIN = "get it again from its source"
#: A model's settings in a bundle: none gives access to a machine (by a folder, a server, a key or code).
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

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file")
    size: int = Field(ge=0, description="size in bytes")


class DatasetSource(_Statement):
    """A data set of the bundle's outputs."""

    name: str = Field(description="the data set's name in all records")
    kind: Literal["local", "mteb"] = Field(description="local: the maker's own file; mteb: a task of mteb")
    task: str = Field(description="the data set's task")
    revision: str = Field(description="hash of a local file's bytes; for mteb, repository@commit on the hub")
    texts: Literal["include", "reference"] = Field(
        description="include: the bundle has the texts; reference: it does not"
    )
    n_texts: int = Field(ge=0, description="number of distinct texts that were transformed")
    languages: tuple[str, ...] = Field(description="language codes of the texts")
    licence: str = Field(description="licence of the texts")
    citation: str = Field(default="", description="BibTeX")
    reference: str = Field(default="", description="address of a page about the data set")
    domains: tuple[str, ...] = Field(default=(), description="domains of the texts, in mteb's terms")


class BundleManifest(_Statement):
    """The manifest. Its hash is the bundle's identity."""

    format: Literal["plumbline bundle"] = Field(default=FORMAT, description="name of the format")
    version: int = Field(default=VERSION, ge=1, le=VERSION, strict=True, description="version of the format")
    made_with: str = Field(description="version of Plumbline that made the bundle")
    study: str = Field(description="name of the study")
    description: str = Field(description="the study's description")
    edition: str = Field(description="the maker's name for this version of the bundle")
    licence: str = Field(description="licence of outputs and ratings")
    citation: str = Field(description="BibTeX")
    contact: str = Field(description="contact for questions about the bundle")
    creators: tuple[str, ...] = Field(default=(), description="creators of the bundle")
    reference: str = Field(default="", description="address of a page about the bundle")
    published: str = Field(default="", description="date of publication")
    simulated: bool = Field(description="true if any of the ratings is simulated")
    comments: bool = Field(description="true if the bundle has raters' comments and free answers")
    datasets: tuple[DatasetSource, ...] = Field(description="the transformed data sets")
    generator: dict[str, Any] = Field(
        description="the generator's kind (`recorded`: replayed from files), model, revision and sampling"
    )
    rated: tuple[str, str] = Field(description="dates of the first and the last rating")
    members: dict[str, ArchiveMember] = Field(description="all other files in the archive")

    @property
    def generator_words(self) -> str:
        """The study's generator with its kind; without one, functions or files transformed all texts."""
        if self.generator.get("kind") == "none":
            return "none (functions or files transformed the texts)"
        return f"{self.generator.get('model', '')} ({self.generator.get('kind', '')})"

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
    key: str = Field(description="hash of everything that affects the output, as in pairs.parquet")
    text_id: str = Field(description="the original's hash")
    datasets: tuple[str, ...] = Field(description="data sets in which the output replaces the original")
    source_language: str = Field(description="the original's language")
    language: str = Field(description="the language that the output should be in")
    output: str = Field(description="the transformed text; empty if it failed or is a copy (`copy_of`)")
    status: Literal["ok", "failed"] = Field(description="ok: there is an output; failed: there is none")
    reason: str = Field(description="why there is no output, without messages of servers or functions; empty otherwise")
    flags: tuple[str, ...] = Field(description="error types found on the last attempt")
    first_flags: tuple[str, ...] = Field(description="error types found on the first attempt")
    attempts: int = Field(description="number of answers received")
    copy_of: str = Field(
        default="",
        description="hash of a text that may not be shared, if the output is a literal copy of it; empty otherwise",
    )


class BundledJudged(Record):
    """An output rated by judges that decide with people (`judged.parquet`), without its texts."""

    KEY = ("pair_id",)
    pair_id: str = Field(description="the pair's id, as in pairs.parquet if people rated the output too")
    key: str = Field(description="the output's key")
    transformation: str = Field(description="the output's transformation")
    pool: str = Field(description="transformations rated together")
    dataset: str = Field(description="first data set that contains the original")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="language that the output should be in")
    seed: int = Field(description="transformation seed")
    wave: int = Field(description="wave of the sample in which it was drawn")
    stratum: str = Field(description="stratum from which it was drawn")
    place: int = Field(
        description="the output's rank among the judged outputs of its transformation, from 1; the sample's come first"
    )


class BundledJudgement(Record):
    """One answer of one judge to one question on one output (`judgements.parquet`), without its text."""

    KEY = ("key",)
    key: str = Field(description="hash of judge, prompt, question, order and pair")
    pair_id: str = Field(description="id of the judged output, as in judged.parquet")
    judge: str = Field(description="the judge's name")
    question: str = Field(description="the question")
    order: Literal["up", "down"] = Field(
        description="the prompt lists the scale from its lowest point (up) or highest (down)"
    )
    score: Number = Field(description="the score on the question's scale; NaN if there is none")
    status: Literal["ok", "failed", "unanswered"] = Field(description="ok: there is a score; otherwise there is none")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="the judge's kind; recorded: answers from a file")
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and method of reading answers")
    prompt_hash: str = Field(description="hash of the prompt without the texts")
    text: str = Field(default="", description="the judge's answer, unchanged; empty if the bundle leaves it out")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class BundledPrompt(BaseModel):
    """A prompt, word for word."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    source: str
    language: str
    text: str


class BundledTransformation(BaseModel):
    """A transformation's definition, prompts and generator (`transformations.json`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    definition: dict[str, Any] = Field(description="the transformation's definition, as in its file")
    prompts: tuple[BundledPrompt, ...] = Field(description="the prompts of its calls, in order")
    prompt_hash: str = Field(description="hash of the prompts; empty if there are none")
    kind: str = Field(description="the generator's kind, or `function` or `outputs`")
    model: str = Field(description="the generator's model, the function, or the file of outputs")
    generator_hash: str = Field(description="hash of the generator, function or file")
