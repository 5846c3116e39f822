"""The contents of a bundle: its files' names, the manifest, the records that no study has, and the facts for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from annotation.records import P_IS, Verdict
from annotation.verdicts.rules import late_lines, unchecked
from annotation.verdicts.tables import rated, verdicts_exhibit
from plumbline.exhibits.table import UNDEFINED, Exhibit, number
from plumbline.records import Record
from plumbline.study.base import Line, StudyPart

COPY = "copy_of"
AGAIN = "get it again from its source"
#: A model's settings in a bundle: none gives access to a machine (by a folder, a server, a key or code).
OF_MODELS = ("name", "kind", "revision", "prompts", "truncate_dim")
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


SIMULATED = "Its ratings are SIMULATED: no person accepted these texts, and scores on them measure nothing."
_SHARED = {"include": "in the bundle", "reference": "in your own copy (--data)"}


@dataclass(frozen=True)
class BundleFacts:
    """The facts that the data card, the tasks for mteb and `inspect` state: of `study.json`, verdicts and ratings."""

    settings: Mapping[str, Any]
    manifest: BundleManifest
    verdicts: Sequence[Verdict]
    ratings: pd.DataFrame

    @property
    def study(self) -> str:
        """The study's name."""
        return str(self.settings["name"])

    @property
    def description(self) -> str:
        """The study's description."""
        return str(self.settings.get("description", ""))

    @property
    def simulated(self) -> bool:
        """Whether any of the ratings is simulated."""
        return bool(self.ratings["simulated"].any())

    @property
    def rated(self) -> tuple[str, str]:
        """The dates of the first and the last rating."""
        times = self.ratings.loc[self.ratings["status"] == "submitted", "submitted_at"]
        return (f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}")

    @property
    def warnings(self) -> list[str]:
        """The warnings about the verdicts: simulated ratings, and rules that were fixed late."""
        return [*([SIMULATED] if self.simulated else []), *late_lines(self.verdicts)]

    @property
    def title(self) -> str:
        """The study's name with the version."""
        return f"{self.study}, version {self.manifest.version}"

    @property
    def origin(self) -> str:
        """The generator and the dates of the ratings; without a generator functions or files transformed the texts."""
        kind, model = (self.settings.get("generator", {}).get(name, "") for name in ("kind", "model"))
        named = "none (functions or files transformed the texts)" if kind == "none" else f"{model} ({kind})"
        return f"generator: {named}; rated from {self.rated[0]} to {self.rated[1]}"

    @property
    def claims(self) -> list[str]:
        """The maker's own statements that nobody can check."""
        manifest, comments = self.manifest, "included" if (self.ratings["comment"] != "").any() else "left out"
        return [
            self.title,
            *([self.description] if self.description else []),
            f"{self.origin}; bundle made with Plumbline {manifest.made_with}",
            f"licence of outputs and ratings: {manifest.licence or 'none given'}; raters' comments: {comments}",
        ]

    @property
    def sources(self) -> Exhibit:
        """The data sets whose texts were transformed, their licences, and where their texts are."""
        on_hub = {spec.get("name") for spec in self.settings["datasets"] if spec.get("mteb")}
        rows = [
            {
                "Data set": name,
                "Task": facts.task,
                "Languages": ", ".join(facts.languages),
                "Texts": number(facts.n_texts, 0),
                "Licence": facts.licence,
                "Texts are": "on the hub" if name in on_hub else _SHARED[facts.texts],
                "Source": facts.reference or facts.revision,
            }
            for name, facts in self.manifest.datasets.items()
        ]
        return Exhibit.of("sources", "Data sets", pd.DataFrame(rows), pd.DataFrame(rows))

    @property
    def decisions(self) -> Exhibit:
        """The verdicts, with the means and the agreement behind them, and the reasons."""
        table = verdicts_exhibit(self.verdicts)
        agreement = pd.DataFrame(
            {f"{summary.question.capitalize()} AC2": number(summary.ac2.value) for summary in rated(verdict.questions)}
            for verdict in self.verdicts
        )
        printed = table.printed.join(agreement.fillna(UNDEFINED))
        printed = printed[[*(name for name in printed if name != "Reasons"), *(["Reasons"] if len(printed) else [])]]
        return replace(table, printed=printed, notes=tuple(filter(None, [P_IS, unchecked(self.verdicts)])))
