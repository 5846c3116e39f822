"""The contents of a bundle: its files' names, the manifest, and the records that no study has."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from plumbline.records import Record
from plumbline.study.base import Line, StudyPart

COPY = "copy_of"
AGAIN = "get it again from its source"
#: A model's settings in a bundle: none gives access to a machine (by a folder, a server, a key or code).
OF_MODELS = ("name", "kind", "revision", "prompts")
KINDS = ("sentence_transformers", "mteb", "lexical")
OF_GENERATORS = ("languages", "quantization", "dtype", "max_model_len")  # settings of engines
#: The settings that `study.json` may have, by part: none lets a model run code of its own, for example.
OF_STUDY: dict[str, tuple[str, ...]] = {
    "study": ("name", "description", "datasets", "transformations", "seeds", "prompts", "languages", "wordings",
              "generator", "sample", "rubric", "raters", "acceptance", "evaluation"),
    "generator": ("kind", "model", "revision", "sampling", *OF_GENERATORS),
    "raters": ("per_pair",),
    "evaluation": ("protocol", "precision", "models"),
}  # fmt: skip
SUMS, MANIFEST, CARD, CROISSANT = "SHA256SUMS", "manifest.json", "README.md", "croissant.json"
STUDY, TRANSFORMATIONS, RUBRIC = "study.json", "transformations.json", "rubric.json"
PAIRS, RATINGS, SCORES = "pairs.parquet", "ratings.parquet", "scores.parquet"
CONTROLS, CONTROL_RATINGS, MEANS = "controls.parquet", "control_ratings.parquet", "pair_means.parquet"
VERDICTS, AGREEMENT = "verdicts.json", "agreement.json"


class DatasetFacts(StudyPart):
    """A data set of the bundle's outputs, with the rights in its texts."""

    licence: Line = Field(description="licence of the texts")
    texts: Literal["include", "reference"] = Field(
        default="include", description="include: the bundle contains the texts; reference: it has only their hashes"
    )
    citation: str = Field(default="", description="mteb's citation, as BibTeX")
    reference: str = Field(default="", description="mteb's web address of a page about the data set")
    domains: tuple[str, ...] = Field(default=(), description="mteb's domains of the texts, such as News")
    task: str = Field(description="the data set's task")
    revision: str = Field(description="hash of a local file's bytes; for mteb, repository@commit on the hub")
    n_texts: int = Field(ge=0, description="number of distinct texts that were transformed")
    languages: tuple[str, ...] = Field(description="language codes of the texts")


class BundleManifest(StudyPart):
    """The facts about a bundle that no other file in it has (`manifest.json`)."""

    licence: str = Field(description="licence of outputs and ratings; empty if none is named")
    metadata: dict[str, str] = Field(description="further facts in Croissant's words, as in the study")
    format: Literal["plumbline bundle 1"] = Field(default="plumbline bundle 1", description="name of the format")
    made_with: str = Field(description="version of Plumbline that made the bundle")
    datasets: dict[str, DatasetFacts] = Field(description="the transformed data sets, by name")

    @property
    def citation(self) -> str:
        """The bundle's citation, as BibTeX; empty if there is none."""
        return self.metadata.get("citeAs", "")

    @property
    def version(self) -> str:
        """The bundle's version."""
        return self.metadata.get("version", "1.0.0")


def outputs_of(transformation: str, seed: int) -> str:
    """Return the name of the file with a unit's outputs."""
    return f"outputs/{transformation}/{seed}.parquet"


def rows_of(dataset: str, part: str) -> str:
    """Return the name of the file with a part of a local data set's rows."""
    return f"data/{dataset}/{part}.parquet"


def texts_of(dataset: str) -> str:
    """Return the name of the file with a data set's texts, their positions and hashes."""
    return f"texts/{dataset}.parquet"


class BundledOutput(Record):
    """The output of a text (`outputs/<transformation>/<seed>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="hash of everything that affects the output, as in pairs.parquet")
    transformation: str = Field(description="the transformation's name")
    seed: int = Field(description="transformation seed")
    text_id: str = Field(description="the original's hash, as in texts/")
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
