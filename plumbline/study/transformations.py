"""A study's transformations: HTEB's eight, which come with Plumbline as data, and its own; their axes and order.

`prompts/transformations/<name>.yaml` holds one of HTEB's (Table 1 and appendix D); a user's own transformation is such
a file too, or part of the study file. Every draw of a language is a pure function of the seed and of its text or run,
so that a re-run, a resumed run or another order of work gives the same languages; a hash decides, so consecutive seeds
share nothing.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, PrivateAttr, Tag, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from plumbline.error_types import FLAGS, Flag, Flags
from plumbline.errors import StudyError
from plumbline.languages import language_code
from plumbline.reading import read_yaml, with_lines
from plumbline.resources import resource
from plumbline.study.base import TAGS, Line, Name, StudyPart, Words, complaints, distinct
from plumbline.study.engines import EngineSpec
from plumbline.study.subject import ENDS, ORIGINAL, VerdictUnit
from plumbline.words import shows

# The error types of length by what is expected of it (HTEB, A.2); the others may be found on any output.
_OF_LENGTH: dict[str, tuple[Flag, ...]] = {
    "similar": ("runaway", "truncated"),
    "longer": ("truncated",),
    "shorter": ("runaway", "summary_too_long"),
    "any": (),
}
_LENGTHS = frozenset(flag for flags in _OF_LENGTH.values() for flag in flags)
_OF_MODELS: tuple[Flag, ...] = ("ellipsis", "json_fragment", "reasoning_leak", "prefix_leak")


def _is_code(value: str) -> str:
    if (code := language_code(value)) != value:
        raise ValueError(f"write the language as its code: {code!r}, not {value!r}")
    return value


_WrittenCode = Annotated[str, AfterValidator(_is_code)]


class PromptText(StudyPart):
    """A prompt that is written in the transformation itself."""

    text: Words = Field(description="the message, with {text} and, where a language is drawn, {target_language}")
    language: str = Field(default="en", description="language of the instruction itself")


class OutputsFile(StudyPart):
    """Outputs from elsewhere: a file with a row for each text."""

    path: Line = Field(description="a CSV, TSV, JSONL, Parquet or Excel file, relative to the file that names it")
    sheet: str = Field(default="", description="the sheet of an Excel file, if several have rows")
    text: Line = Field(default="text", description="the column of the originals")
    output: Line = Field(default="output", description="the column of the outputs")
    number: int | None = Field(
        default=None, ge=1, description="of a text's several outputs, in a list or in rows: which to take, from 1"
    )


#: A prompt by name or as text; without the tags, a fault of the one would be told as one of the other, too.
Prompt = Annotated[
    Annotated[Name, Tag(TAGS[0])] | Annotated[PromptText, Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[0] if isinstance(value, str) else TAGS[1]),
]


class Transformation(VerdictUnit):
    """One way to change a text: by a generator's calls, by a function, or by a file of outputs."""

    source: str = Field(default="", description="its source: paper, appendix, licence")
    calls: tuple[Prompt, ...] = Field(
        default=(),
        description="prompts in order, by name or as text; the answer to each prompt but the last is the input of the"
        " next call",
    )
    function: str = Field(
        default="",
        pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)?$",
        description="module:function of an installed package, called with a text, `language` and `seed`",
    )
    outputs: OutputsFile | None = Field(default=None, description="a file of outputs")
    draw: Literal["none", "text", "run"] = Field(
        default="none",
        description="draw a target language for each text, for each run (data set and seed), or not at all (none)",
    )
    languages: Annotated[tuple[_WrittenCode, ...], distinct("language")] = Field(
        default=(), description="codes to draw from; a text's own language is never drawn"
    )
    drawn_call: int = Field(
        default=1,
        ge=1,
        description="number of the call, from 1, that uses the drawn language; the other calls use the text's own"
        " language",
    )
    language: Annotated[str, AfterValidator(lambda code: code and _is_code(code))] = Field(
        default="", description="language of all outputs (code); default: the drawn one, or the text's own"
    )
    length: Literal["similar", "longer", "shorter", "any"] = Field(
        default="similar",
        description=(
            "expected length of an output; shorter: may not be longer than its text; longer: may be much longer"
        ),
    )
    meaning: Literal["kept", "changed"] = Field(
        default="kept", description="whether the transformation should keep or change the meaning"
    )
    error_types: Flags | None = Field(
        default=None,
        description="error types to look for; default: all that fit `length` and the kind of transformation",
    )
    growth: float = Field(
        default=1.0, gt=0, le=1000, description="expected characters of an answer per character of the text"
    )
    order: SkipJsonSchema[int | None] = Field(
        default=None, description="place in the tables of the paper, for HTEB's own"
    )

    _base: Path = PrivateAttr(default=Path())
    _file: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _whole(self) -> Transformation:
        ways = [way for way in ("calls", "function", "outputs") if getattr(self, way)]
        if len(ways) != 1:
            fault = f"has {' and '.join(ways)}" if ways else "has no source of outputs"
            raise ValueError(f"{fault}; give it one of `calls`, `function` and `outputs`")
        if (self.draw == "none") == bool(self.languages):
            raise ValueError("`draw` (text or run) and `languages` go together; give both or neither")
        if self.languages and (self.outputs or self.language):
            raise ValueError("`draw` does not go with `outputs` or `language`; take `draw` out")
        if len(self.languages) == 1:
            raise ValueError(
                "`languages` needs at least two; with only one, a text in that language would have no target"
            )
        if self.languages and self.drawn_call > max(1, len(self.calls)):
            raise ValueError(f"`drawn_call` {self.drawn_call} is more than the number of `calls`, {len(self.calls)}")
        return self

    def placed(self, base: Path, file: Path | None) -> Transformation:
        """Return a copy with the folder that its paths are relative to, and its file, if it has one."""
        placed = self.model_copy()
        placed._base, placed._file = base, file
        return placed

    @property
    def base(self) -> Path:
        """The folder that its paths are relative to."""
        return self._base

    @property
    def file(self) -> Path | None:
        """The file that defines it; None for HTEB's, and for one that the study file defines."""
        return self._file

    def files(self) -> list[Path]:
        """The files that it consists of: the one that defines it, and one of outputs."""
        return [*([self.file] if self.file else []), *([self.base / self.outputs.path] if self.outputs else [])]

    @property
    def made_by(self) -> Literal["generator", "function", "outputs"]:
        """The kind of maker of its texts."""
        return "generator" if self.calls else "function" if self.function else "outputs"

    @functools.cached_property
    def flags(self) -> frozenset[Flag]:
        """The error types that its outputs can have."""
        if self.error_types is not None:
            return frozenset(self.error_types)
        general = set(FLAGS) - _LENGTHS - set(() if self.calls else _OF_MODELS)
        return frozenset({*general, *_OF_LENGTH[self.length]})

    @functools.cached_property
    def translates(self) -> bool:
        """Whether its output is in another language than its text."""
        return bool(self.language) or (self.draw != "none" and self.drawn_call == max(1, len(self.calls)))

    def within(self, codes: Collection[str]) -> Transformation:
        """Return a copy with outputs in some languages alone; one that does not translate stays as it is.

        Raises StudyError if it has none of them as a target.
        """
        if not (self.translates and self.languages):
            return self
        limited = tuple(code for code in self.languages if code in codes)
        if not limited:
            raise StudyError(f"languages: {self.name!r} has no target among {', '.join(codes)}; add one of its targets")
        return self.model_copy(update={"languages": limited})

    def drawn(self, *, seed: int, dataset: str, text: str, source: str) -> str | None:
        """The drawn language (a code), or None where this transformation draws none.

        `text` is in NFC, `source` its language code. For `draw == "run"` the text plays no part, for
        `draw == "text"` the data set plays none: equal texts in two data sets are transformed once. A run draws one
        language for all its texts; those that are in this language already share a second draw, so a data set of
        several languages has one target for all others.
        """
        if self.draw == "none":
            return None
        further = [language for language in self.languages if language != source]
        if not further:
            raise StudyError(
                f"languages: {self.name!r} has the only target {self.languages[0]}, but some texts are already in it;"
                " add another language"
            )
        if self.draw == "text":
            return draw_from(further, self.name, seed, text)
        drawn = draw_from(self.languages, self.name, seed, dataset)
        return drawn if drawn != source else draw_from(further, self.name, seed, dataset)

    def call_languages(self, source: str, drawn: str | None) -> tuple[str, ...]:
        """The language that each call is told to answer in, in order (codes); without calls the output's alone."""
        number = max(1, len(self.calls))
        languages = [
            drawn if drawn is not None and call == self.drawn_call else source for call in range(1, number + 1)
        ]
        return (*languages[:-1], self.language or languages[-1])

    def output_language(self, source: str, drawn: str | None) -> str:
        """The language that the output should be in (a code)."""
        return self.call_languages(source, drawn)[-1]


def draw_from(pool: Sequence[str], *what_for: str | int) -> str:
    """One element of `pool`, decided by SHA-256 over `what_for`; uniform to within 2**-60."""
    words = ", ".join(
        [encode_basestring(word) if isinstance(word, str) else str(word) for word in ("draw-v1", *what_for)]
    )
    digest = hashlib.sha256(f"[{words}]".encode()).digest()  # of a JSON list
    return pool[int.from_bytes(digest[:8], "big") % len(pool)]


_READ = [Transformation.model_validate(read_yaml(file)) for file in resource("prompts").glob("transformations/*.yaml")]
EIGHT: Mapping[str, Transformation] = {kind.name: kind for kind in sorted(_READ, key=lambda kind: kind.order or 0)}
HTEB_TOTAL, OWN_TOTAL = "hteb_total", "total"
AXES: tuple[str, ...] = tuple(dict.fromkeys(transformation.axis for transformation in EIGHT.values()))


def own_transformations(entries: Sequence[Any], base: Path) -> tuple[list[Any], dict[str, Transformation]]:
    """Return the names of a study's `transformations`, and its own transformations, from the study or from files.

    Other entries (names, or faulty entries) stay as they are. Raises StudyError with the place.
    """
    names, custom, faults = list[Any](), dict[str, Transformation](), list[str]()
    for position, entry in enumerate(entries):
        if not isinstance(entry, dict) and not (isinstance(entry, str) and "." in entry):
            names.append(entry)
            continue
        try:
            kind = _read(entry, base, f"transformations.{position}")
        except StudyError as error:
            faults += error.args
            continue
        if kind.name in custom:
            faults.append(f"transformations.{position}: {kind.name!r} appears twice; give each its own name")
        names.append(kind.name)
        custom[kind.name] = kind
    if faults:
        raise StudyError(*faults)
    refuse_mixed_up(custom)
    return names, custom


def within_languages(
    kinds: Mapping[str, Transformation], codes: Sequence[str], generator: EngineSpec
) -> dict[str, Transformation]:
    """Return the study's transformations that put texts into its `languages` (codes), limited to these.

    Raises StudyError if none does, and if the languages come from recordings.
    """
    if not codes:
        return {}
    if generator.recorded_languages:
        raise StudyError(
            "`languages` cannot be combined with the generator's `settings.languages: recorded`, which uses the"
            " recordings' languages; leave one of them out"
        )
    within = {name: kind.within(codes) for name, kind in kinds.items()}
    limited = {name: kind for name, kind in within.items() if kind is not kinds[name]}
    if not limited:
        raise StudyError("languages: no transformation of the study translates; leave it out")
    return limited


def _read(entry: dict[Any, Any] | str, base: Path, field: str) -> Transformation:
    """Return a user's own transformation, from a mapping or the file that it names."""
    file, entry_field = None, field
    if isinstance(entry, str):
        file = base / entry
        field = f"{field}: {file}"
        try:
            entry = read_yaml(file)
        except FileNotFoundError:
            raise StudyError(f"{field}: this file does not exist; correct its path") from None
        if not isinstance(entry, dict):
            raise StudyError(f"{field}: a transformation must be a mapping with `name`, `axis` and a source of outputs")
    try:
        transformation = Transformation.model_validate(entry)
    except ValidationError as error:
        if file:
            raise StudyError(*(f"{entry_field}: {line}" for line in with_lines(file, complaints(error)))) from None
        raise StudyError(*(f"{entry_field}: {fault}" for fault in complaints(error))) from None
    if transformation.order is not None:
        raise StudyError(f"{field}: only HTEB's transformations may have `order`; take it out")
    return transformation.placed(file.parent if file else base, file)


def refuse_mixed_up(custom: Mapping[str, Transformation]) -> None:
    """Raise StudyError for names and axes that would change HTEB's numbers, or give one name two meanings."""
    axes, faults = {kind.axis for kind in EIGHT.values()}, list[str]()
    reserved = "is reserved, because HTEB's own transformations have an axis of that name; choose another"
    shown = Counter(kind.title or name.replace("_", " ").capitalize() for name, kind in custom.items())
    for name, kind in custom.items():
        partner = custom.get(kind.rated_with)
        is_partner = partner and partner is not kind and not partner.rated_with and partner.axis == kind.axis
        languages = {(system.language, system.languages) for system in custom.values() if system.queue == kind.queue}
        wrong = {
            " is one of HTEB's eight; give yours another name": name in EIGHT,
            f": its name {reserved}": name in axes,
            f": its axis {kind.axis!r} {reserved}": kind.axis in axes,
            f": its axis {kind.axis!r} is also a transformation's name; rename one of them": kind.axis
            in {*EIGHT, *custom},
            f": its queue {kind.queue!r} is also the name of a transformation or an axis; rename it": kind.queue
            in {*EIGHT, *custom, *axes},
            ": raters do not learn which of a queue made a text, so leave rated_with out": kind.queue
            and kind.rated_with,
            f": the same people rate all outputs of a queue, so give all transformations with queue {kind.queue!r} the"
            " same `language`, and draw none": kind.queue and languages != {(kind.language, ())},
            f": rated_with {kind.rated_with!r} must be another of the study's own transformations, on the same axis and"
            " without rated_with": kind.rated_with and not is_partner,
            f": tables show another as {kind.title!r}, too; give each its own title": kind.title
            and shown[kind.title] > 1,
            ": its title has no visible character; leave it out": kind.title and not shows(kind.title),
        }
        faults += [f"transformation {name!r}{fault}" for fault, is_so in wrong.items() if is_so]
    if faults:
        raise StudyError(*faults)


def in_order(names: Iterable[str]) -> list[str]:
    """Return transformations, each once: HTEB's in its order, then others in the given order."""
    return _first(EIGHT, names)


def axes_in_order(axes: Iterable[str]) -> list[str]:
    """Return axes, each once: HTEB's in its order, then others in the given order; originals have no axis."""
    return _first(AXES, (axis for axis in axes if axis != ORIGINAL))


def total_axes(transformations: Iterable[str], axes: Iterable[str]) -> tuple[str, ...]:
    """Return the axes whose mean is the total.

    `transformations` and `axes` are those that results have. With any of HTEB's eight transformations these are HTEB's
    three axes, unless results have own axes and only one or two of these; then, and without HTEB's eight, they are all
    axes of the results.
    """
    present = tuple(axes_in_order(axes))
    missing, further = set(AXES) - set(present), set(present) - set(AXES)
    if any(name in EIGHT for name in transformations) and not (missing and further):
        return AXES
    return present or AXES


@dataclass(frozen=True)
class Axes:
    """The axes of some results: those that are `shown`, and those whose mean is the total (`total_axes`)."""

    shown: tuple[str, ...] = AXES
    of_total: tuple[str, ...] = AXES

    @classmethod
    def of(cls, frame: Any) -> Axes:
        """Return the axes of a frame with columns transformation and axis: HTEB's in its order, then others."""
        axes = axes_in_order(frame["axis"].unique())
        total = total_axes(frame["transformation"].unique(), axes)
        return cls(tuple(axes_in_order((*total, *axes))), total)

    @classmethod
    def of_columns(cls, table: Any) -> Axes:
        """Return the axes of a table with a column for each, between `original` and the total."""
        names = [str(name) for name in table.columns]
        end = next(position for position, name in enumerate(names) if name in (HTEB_TOTAL, OWN_TOTAL))
        axes = [name for name in names[names.index("original") + 1 : end] if not name.endswith(ENDS)]
        return cls(tuple(axes), AXES if names[end] == HTEB_TOTAL else tuple(axes))

    @property
    def total(self) -> str:
        """The total's name: HTEB's is of its three axes."""
        return HTEB_TOTAL if self.of_total == AXES else OWN_TOTAL

    @property
    def names(self) -> tuple[str, ...]:
        """The axes, then the total."""
        return *self.shown, self.total

    @property
    def are_htebs(self) -> bool:
        """Whether there is no axis beside HTEB's three."""
        return self.shown == AXES


def _first(order: Iterable[str], names: Iterable[str]) -> list[str]:
    columns = dict.fromkeys(names)
    return [*(name for name in order if name in columns), *(name for name in columns if name not in set(order))]
