"""The base of subjects that people judge, their units with verdicts, and the subject of a study that names none.

A study's subject is `Study.judging`. A new kind is a class in `plumbline.study.subjects`, and a reader of its items
(`annotation.campaign.subjects.READERS`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator

from plumbline.study.base import StudyPart
from plumbline.study.datasets import DatasetSpec, Texts, texts_of
from plumbline.words import count

if TYPE_CHECKING:
    from plumbline.study import Study

TEXT = "text"  # the field that holds a row's text
INSTRUCTIONS = "instructions/prompts.parquet"  # the wordings of instructions, in a study's folder
_OF_TRANSFORMATIONS = ("transformations", "prompts", "languages", "seeds", "generator", "candidates")


ORIGINAL = "original"
NAME = r"^[a-z][a-z0-9_-]{0,63}$"
JudgedName = Annotated[str, Field(pattern=NAME)]
# What tables call other things: their columns and rows.
_TAKEN = {
    *("original", "total", "hteb_total", "overall", "everything", "model", "models", "n_models", "n_datasets", "name"),
    *("n_failed", "included_rejected", "simulated", "family", "parameters", "threshold", "accepted", "n_scopes"),
    *("reason", "axis", "transformation"),
}
#: The titles of all units that this process knows, by name (empty: none): HTEB's transformations, and the units of the
#: studies that it has read (where two have a unit of the same name, the later one's title). A table with any other name
#: in the place of a transformation is damaged.
KNOWN: dict[str, str] = {}
ENDS = ("_original", "_difference", "_reason")  # of an axis's columns


def is_reserved(name: str) -> bool:
    """Return whether tables call something else by a name."""
    return name in _TAKEN or name.endswith(ENDS)


class VerdictUnit(StudyPart):
    """A unit that gets verdicts (a transformation, or a group of items): its name, and its explanation to raters."""

    name: JudgedName = Field(description="its name in files, and in tables and pages if it has no title")
    title: str = Field(default="", max_length=100, description="its name in tables and pages, such as GPT-4.1")
    axis: JudgedName = Field(description="the property that it changes; results are averaged by axis")
    rated_with: str = Field(
        default="", description="name of the transformation with which it shares ratings and verdict"
    )
    queue: str = Field(
        default="",
        pattern=rf"({NAME})|^$",
        description="the queue of its pairs, if it shares one with others: raters do not learn which of them made a"
        " text, and each original is drawn with the outputs of all of them",
    )
    raters: dict[str, Any] = Field(
        default={}, description="its explanation to raters, in the form of a rubric's pools, if the rubric has none"
    )

    @field_validator("name", "axis")
    @classmethod
    def _not_taken(cls, value: str) -> str:
        if is_reserved(value):
            raise ValueError(f"{value!r} is reserved for rows and columns of tables; choose another name")
        return value

    def model_post_init(self, _context: Any, /) -> None:
        """Note the name and the title."""
        KNOWN[self.name] = self.title

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Restore the unit in another process, and note its name and title."""
        super().__setstate__(state)
        KNOWN[self.name] = self.title

    @property
    def pool(self) -> str:
        """The unit whose ratings decide about it: itself, or its `rated_with`."""
        return self.rated_with or self.name


class ItemNames(NamedTuple):
    """The names for people of a study's units, items and checks, in the singular and in small letters."""

    judged: str  #: what gets a verdict
    item: str  #: what raters see at a time

    @property
    def an_item(self) -> str:
        """`a pair`, `an item`."""
        return f"{'an' if self.item == 'item' else 'a'} {self.item}"

    @property
    def known(self) -> str:
        """The name of items with a right answer, which check raters: `controls` among pairs, else `known items`."""
        return "controls" if self.item == PAIRS.item else "known items"


PAIRS = ItemNames("transformation", "pair")


class Subject(StudyPart):
    """The subject that people judge in a study: its settings, and all that differs between kinds of subject."""

    kind: str
    names: ClassVar[ItemNames]  #: what people call what gets a verdict, and what raters see at a time
    group_words: ClassVar[str] = "groups"  #: what of a sample is drawn from each
    sources: ClassVar[str] = "items"  #: what a sample is drawn of
    failed: ClassVar[str] = "rows that lack a text"  #: what of these nobody can rate
    needs_datasets: ClassVar[bool] = True  #: whether it is of data sets
    takes: ClassVar[tuple[str, ...]] = ()  #: keys of a study for transformations that it has a use for
    transforms: ClassVar[bool] = False  #: whether outputs of transformations are judged
    does_tasks: ClassVar[bool] = False  #: whether people do tasks, as models do
    drawn_from: ClassVar[tuple[str, ...]] = ()  #: the records that a sample is drawn from, if it is not from data files
    takes_all: ClassVar[bool] = False  #: whether all items are drawn, near-duplicates too
    first_command: ClassVar[str] = "sample"  #: the first that makes something
    scored_by: ClassVar[str] = ""  #: the command that scores models; empty where its verdicts are the result
    simulation: ClassVar[str] = (
        "their opinions of the items are random, drawn with the seed"  #: how simulated raters answer
    )
    scores: ClassVar[tuple[str, str]] = ("", "")  #: the table of these scores, and the stage that makes it

    refusals: ClassVar[Mapping[str, str]] = {  #: why it has no use for a command or setting, by its name
        "evaluate": "studies with the subject {kind} score no models; their results are the verdicts of"
        " `plumbline accept`",
        "export": "a study with the subject {kind} scores no models, so it has no bundle",
        "human-report": "people do no tasks in this study; run `plumbline scores-report`",
        "training": "training uses pairs of transformations, but the study has another subject; leave it out",
    }

    def file_of(self, study: Study) -> Path | None:
        """The file whose rows are its items; None where they are no rows of a file."""
        return None

    def missing_file(self, study: Study, path: Path) -> str:
        """Return what to do if the file does not exist."""
        return f"subject: no file {path}; correct `path` in the study"

    @property
    def beside(self) -> Mapping[str, str]:
        """The fields that stand beside an item's text, with their columns."""
        return {}

    @property
    def systems_by_label(self) -> Mapping[str, str]:
        """The columns of the systems behind the labels of choices, by label."""
        return {}

    @property
    def known_questions(self) -> Mapping[str, str]:
        """The questions to which some items have right answers, with the columns of these."""
        return {}

    @property
    def fields(self) -> list[str]:
        """The fields of each item, as far as the study file says them."""
        return []

    def pools(self, group: str, task: str | None) -> list[str]:
        """The pools of a rubric whose words may explain a group (its data set has this `task`); none if it has its own.

        The first that the rubric has is taken.
        """
        return []

    def sizes(self, unit: str) -> tuple[int, int] | None:
        """The items and raters that a unit has of its own; None where it has those of the study."""
        return None

    def units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        """Return the units that get a verdict, by name. Raises ValueError for useless keys of a study (`keys`)."""
        if unused := [name for name in _OF_TRANSFORMATIONS if name in keys and name not in self.takes]:
            why = f"does not apply to subject {self.kind}, which transforms nothing; take it out"
            raise ValueError("\n".join(f"{name}: {why}" for name in unused))
        return self._units(datasets, keys)

    def _units(self, datasets: Sequence[DatasetSpec], keys: Collection[str]) -> Mapping[str, VerdictUnit]:
        raise NotImplementedError

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        """The languages and tasks of what is judged, as far as the study file says them."""
        raise NotImplementedError

    def model_names(self) -> list[str]:
        """Return the names in tables of language models that do people's work."""
        return []

    @property
    def has_size(self) -> bool:
        """Whether a sample has as many items of each group as the study says, if there are so many."""
        return not (self.takes_all or self.does_tasks)

    def checks(self, controls: Mapping[str, int]) -> str:
        """Return the checks on raters in words, from their numbers by kind."""
        return f"{count(controls['known'], 'known item')}, {count(controls['repeat'], 'repeat')}"

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the sample; none for pairs."""
        return self.model_dump(mode="json")


class PairSubject(Subject):
    """Texts beside their transformed texts: what a study judges that names no subject."""

    kind: Literal["pairs"] = "pairs"
    names = PAIRS
    sources = "outputs"
    failed = "outputs that failed"
    transforms = True
    first_command = "generate"
    drawn_from = ("texts.parquet", "transformations")
    scored_by = "evaluate"
    scores = ("scores.parquet", "evaluation")
    simulation = ""
    refusals: ClassVar[Mapping[str, str]] = {"human-report": Subject.refusals["human-report"]}

    def texts(self, units: Collection[str], datasets: Sequence[DatasetSpec]) -> Texts:
        return dict.fromkeys(units, texts_of(datasets))

    def checks(self, controls: Mapping[str, int]) -> str:
        """Return the controls, which are made of pairs, and the repeats."""
        by_kind = f"{controls['positive']} positive and {controls['negative']} negative controls"
        return f"{by_kind}, {count(controls['repeat'], 'repeat')}"

    def settings(self) -> dict[str, Any]:
        return {}
