"""Prompts of judges, and their replies read as scores.

A prompt of `prompts/judges/` has `{variables}`: the rubric's (guidelines, asked, question, points, lowest, highest) and
the texts' (`texts`: all fields with their titles; original and transformed, which PTEB's prompts call sentence1 and
sentence2, or paraphrase). All are put in at once, so that nothing in a text or rubric is taken for a variable. An
unreadable reply gets no score, never the middle of the scale.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, model_validator

from annotation.campaign.rubric import Rubric
from annotation.judges.records import JudgedPair
from annotation.questions.entries import worded
from annotation.questions.wordings import packaged
from plumbline.errors import DataError, StudyError, TextUnansweredError, nearest
from plumbline.fields import PAIR, fields_json, fields_of
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.journal import record_lines
from plumbline.models.chat import Attempt, Client, Completion
from plumbline.prompts import Prompt, prompt_folders, read_prompt
from plumbline.records import Pair, Record, nfc
from plumbline.scales import Continuous
from plumbline.study import Study
from plumbline.study.engines import EngineSpec, JudgeSpec, Reading

OF_RUBRIC = ("guidelines", "asked", "question", "points", "lowest", "highest")
ALIKE = {"original": PAIR[0], "sentence1": PAIR[0], "transformed": PAIR[1], "sentence2": PAIR[1], "paraphrase": PAIR[1]}
ALL = "texts"


class JudgePrompt(Prompt):
    """A prompt for judges; a prompt with its own question also has its own scale."""

    question: str = Field(
        default="",
        description="name of the prompt's own question in records; if unset, the prompt asks the rubric's ratings one"
        " by one",
    )
    lowest: float | None = Field(default=None, description="lowest score of the prompt's own question")
    highest: float | None = Field(default=None, description="highest score of the prompt's own question")
    decimals: int = Field(default=0, ge=0, le=3, description="decimal places of a score on the prompt's own question")

    @model_validator(mode="after")
    def _asks_something(self) -> JudgePrompt:
        variables = (*OF_RUBRIC, *ALIKE, ALL)
        if unknown := [name for name in self.variables if name not in variables]:
            raise ValueError(f"has the unknown variable {{{unknown[0]}}}; {nearest(unknown[0], list(variables))}")
        if not {ALL, *ALIKE} & set(self.variables):
            raise ValueError(f"does not show the texts; put {{{ALL}}} where the judge should read them")
        of_rubric = [name for name in OF_RUBRIC if name in self.variables]
        if self.question and of_rubric:
            raise ValueError(
                f"has its own question but also takes {{{of_rubric[0]}}} from the rubric; remove one of them"
            )
        if not self.question and not {"question", "points"} <= set(self.variables):
            raise ValueError(
                "asks no question: name its own in `question`, or use the rubric's {question} and {points}"
            )
        scale = self.lowest, self.highest
        if bool(self.question) == (None in scale) or (self.question and not scale[0] < scale[1]):  # type: ignore[operator]
            raise ValueError(
                "set lowest and highest with the prompt's own question, and only then; lowest must be below highest"
            )
        return self


@dataclass(frozen=True)
class Scale:
    """The scale of a question."""

    lowest: float
    highest: float
    points: tuple[float, ...] = ()  #: the scale's points; empty on a scale with decimals or a continuous one


@dataclass(frozen=True)
class JudgeMessage:
    """A question to a judge about a pair; `prompt_hash` covers everything except the texts."""

    pair: JudgedPair
    question: str
    scale: Scale
    prompt_hash: str
    render: Callable[[], str]

    @property
    def message(self) -> str:
        """The message's text, rendered on demand, since there may be very many."""
        return self.render()

    @property
    def labels(self) -> list[str]:
        """The scale's points as texts; empty on a scale without points."""
        return [str(point) for point in self.scale.points]


class Questionnaire:
    """One judge of a study: its prompt, its questions about pairs, and how its answers are read.

    Raises StudyError for a prompt or questions that it cannot be asked.
    """

    def __init__(self, spec: JudgeSpec, rubric: Rubric, study: Study) -> None:
        """Read the judge's prompt."""
        self.spec, self._rubric, self._resolve = spec, rubric, study.resolve
        judge = f"{study.file}: judge {spec.name!r}"
        self.prompt_file = self._find_prompt(judge)
        self.prompt = read_prompt(self.prompt_file, JudgePrompt)
        if self.prompt.decimals and spec.score == "expected":
            raise StudyError(
                f"{judge}: prompt {self.prompt.name!r} asks for decimals, which take several tokens; write score: text"
            )
        self.reading: Reading = spec.score or ("text" if self.prompt.decimals else "expected")
        ratings = [self.prompt.question] if self.prompt.question else rubric.rating_names()
        if not ratings:
            raise StudyError(f"{judge}: rubric {rubric.name!r} has no rating question, and judges answer no other kind")
        if unknown := [name for name in spec.questions if name not in ratings]:
            raise StudyError(f"{judge}: no question {unknown[0]!r}; {nearest(unknown[0], ratings)}")
        self.questions = [name for name in ratings if not spec.questions or name in spec.questions]
        self._rubric_words: dict[tuple[str, ...], dict[str, str]] = {}
        self._hashes: dict[tuple[str, ...], str] = {}

    def _find_prompt(self, judge: str) -> Path:
        """Return the file of the prompt. Raises StudyError, which begins with `judge`, if no prompt has its name."""
        name = self.spec.prompt
        if name.endswith((".yaml", ".yml")):
            return self._resolve(name)
        folders = [folder / "judges" for folder in prompt_folders()]
        if file := next((path for folder in folders if (path := folder / f"{name}.yaml").is_file()), None):
            return file
        names = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
        raise StudyError(f"{judge}: no prompt {name!r}; {nearest(name, names)}")

    @functools.cached_property
    def hash(self) -> str:
        """The judge's identity: model, revision, sampling, seed and reading; if recorded, its files' content."""
        spec = self.spec
        recordings = recording_hashes(spec.engine, self._resolve)
        return identity("judge-v1", *spec.identity(), self.reading, spec.seed, *recordings)

    def askings(self, pair: JudgedPair) -> Iterator[JudgeMessage]:
        """Yield every question about a pair."""
        if pair.fields and ALL not in self.prompt.variables:
            raise StudyError(f"prompt {self.prompt.name!r} shows only pairs of texts; use one with {{{ALL}}}")
        for question in self.questions:
            if self.prompt.question or any(candidate.name == question for candidate in self._rubric.asked(pair.pool)):
                texts = {field.name: field.text for field in fields_of(pair)}
                render = functools.partial(self._rendered, pair, question, texts)
                yield JudgeMessage(pair, question, self.scale(question), self._hash(pair, question), render)

    def _hash(self, pair: Pair, question: str) -> str:
        """Return the identity of the prompt about pairs like this one, without their texts."""
        names = [field.name for field in fields_of(pair)]
        key = (pair.pool, pair.language, pair.output_language, question, *names)
        if key not in self._hashes:
            text = self._rendered(pair, question, {name: f"{{{name}}}" for name in names})
            scale = self.scale(question)
            self._hashes[key] = identity("judge-prompt-v1", text, question, scale.lowest, scale.highest)
        return self._hashes[key]

    def _rendered(self, pair: Pair, question: str, texts: Mapping[str, str]) -> str:
        """Return the message with these texts, by field, in the place of the pair's."""
        language = self._rubric.language_for(pair.language, pair.output_language)
        titles = self._rubric.field_titles(pair.pool, language, pair.language, pair.output_language)
        values = {} if self.prompt.question else dict(self._words(pair.pool, question, language))
        values[ALL] = "\n\n".join(f"{titles.get(name, name)}:\n{text}" for name, text in texts.items())
        values |= {name: texts[field] for name, field in ALIKE.items() if field in texts}
        return self.prompt.render({name: values[name] for name in self.prompt.variables})

    def scale(self, question: str) -> Scale:
        """Return the scale of a question."""
        prompt = self.prompt
        if prompt.question and prompt.lowest is not None and prompt.highest is not None:
            integers = () if prompt.decimals else tuple(range(int(prompt.lowest), int(prompt.highest) + 1))
            return Scale(prompt.lowest, prompt.highest, integers)
        points = self._rubric.scale_of(question)
        return Scale(points[0], points[-1], () if isinstance(points, Continuous) else points)

    def _words(self, pool: str, question: str, language: str) -> dict[str, str]:
        """Return the rubric's words in the language in which a rater reads them."""
        key = (pool, language, question)
        if key not in self._rubric_words:
            entry = next(entry for entry in self._rubric.questions if entry.name == question)
            hint, points = self._rubric.meaning(pool, entry, language)
            scale = self._rubric.scale_of(question)
            self._rubric_words[key] = {
                "guidelines": worded(self._rubric.guidelines, language),
                "asked": worded(self._rubric.pool(pool).asked, language),
                "question": " ".join(filter(None, (worded(entry.title, language), hint))),
                "points": "\n".join(f"{point} = {meaning}" for point, meaning in points.items()),
                "lowest": str(scale[0]),
                "highest": str(scale[-1]),
            }
        return self._rubric_words[key]


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>")
#: Words for points, without `null`, which is no answer.
_WORDS = {
    word: number
    for number, words in enumerate(packaged("imports/words.yaml")["numbers"])
    for word in words.split()
    if word != "null"
}
_NUMBER = re.compile(  # 4, 4.0, 4,0, four, Rating: 4, 4/5, 4 out of 5, 4 = almost the same, 4 (almost the same)
    r"(?:(?P<label>[^\W\d][^\d:=]{0,40})[:=]\s*)?"
    rf"(?P<number>-?\d+(?:[.,]\d+)?|{'|'.join(_WORDS)})"
    r"(?:\s*\(?\s*(?:/|\b(?:out of|of|von|sur|de)\b)\s*(?P<top>\d+)\)?)?"
    r"(?:\s*[-–—=:(](?P<meaning>\D*))?\s*\.?",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"(?:`{3,}\w*\s*)?(\{.*\})(?:\s*`{3,})?", re.DOTALL)
LEAST_MASS = 0.5  # total probability of the points; an answer with less has no score
_SHOWN = 60  # characters of an answer in a reason


@dataclass(frozen=True)
class Read:
    """A score, or the reason why there is none; for `expected` with label mass."""

    score: float = math.nan
    reason: str = ""
    label_mass: float = math.nan


def read_expected(answer: Completion, scale: Scale) -> Read:
    """Compute the mean of the scale's points, weighted by their probabilities to be the answer's first token.

    With p_s the probability of point s: label mass m = sum p_s and score = sum s p_s / m. Under
    `LEAST_MASS` there is no score.

    Source: G-Eval (Liu et al., EMNLP 2023), section 2, with the probabilities themselves instead of samples.

    >>> read = read_expected(Completion("4", labels={"3": 0.2, "4": 0.6}), Scale(1, 5, points=(1, 2, 3, 4, 5)))
    >>> round(read.score, 2), round(read.label_mass, 2)  # (3 * 0.2 + 4 * 0.6) / 0.8
    (3.75, 0.8)
    """
    if answer.labels is None:
        return Read(reason="the answer came without probabilities of the points")
    shares, text = {point: answer.labels.get(str(point), 0.0) for point in scale.points}, answer.text
    mass = math.fsum(shares.values())
    if not (math.isfinite(mass) and mass < 1.001 and min(shares.values(), default=0.0) >= 0):
        return Read(reason=f"the answer's probabilities of the points are invalid; it begins with {shown(text)}")
    if mass < LEAST_MASS:
        line = f"the points have probability {f'{mass:.3f}, below {LEAST_MASS:g}' if mass else 0}"
        thinks = _THINKING.match(text.strip()) is not None
        hint = "; the model thinks first: write score: text, and raise sampling.max_tokens" if thinks else ""
        return Read(reason=f"{line}; the answer begins with {shown(text)}{hint}", label_mass=mass)
    score = math.fsum(point * share for point, share in shares.items()) / mass
    return Read(score, "", min(mass, 1.0))


def read_text(answer: Completion, scale: Scale) -> Read:
    """Read an answer that is one number, in whatever form has one reading on this scale; thoughts are cut off.

    >>> scale = Scale(1, 5, points=(1, 2, 3, 4, 5))
    >>> [read_text(Completion(text), scale).score for text in ("4", "**4**", "4,0", "four", "4/5", '{"score": 4}')]
    [4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    >>> [read_text(Completion(text), scale).reason for text in ("8/10", "7", "4.5")]
    ["not just a number: '8/10'", 'outside the scale 1 to 5: 7', 'between two points: 4.5']
    """
    text, reason = spoken(answer)
    if reason:
        return Read(reason=reason)
    match = _NUMBER.fullmatch(_plain(text))
    written = match["number"].casefold() if match else ""
    if (
        not match
        or float(match["top"] or scale.highest) != scale.highest
        or (scale.highest >= 1000 and re.search(r",|\.\d{3}$", written))
    ):
        return Read(reason=f"not just a number: {shown(text)}")
    number = float(_WORDS.get(written, written.replace(",", ".")))
    beside = [re.findall(r"\w+", (match[part] or "").casefold()) for part in ("label", "meaning")]
    if any(0 < len(words) <= 3 and _WORDS.get(words[-1], number) != number for words in beside):  # four or five
        return Read(reason=f"not just a number: {shown(text)}")
    if not scale.lowest <= number <= scale.highest:
        return Read(reason=f"outside the scale {scale.lowest:g} to {scale.highest:g}: {written}")
    between = scale.points and number not in scale.points
    return Read(reason=f"between two points: {written}") if between else Read(number)


def _plain(text: str) -> str:
    """Return an answer in usual digits and without marks of Markdown; of a JSON object its one number."""
    if in_braces := _OBJECT.fullmatch(text):
        with contextlib.suppress(ValueError, RecursionError):
            pairs = json.loads(in_braces[1], object_pairs_hook=list)
            numbers = [value for _, value in pairs if type(value) in (int, float)]
            return str(numbers[0]) if len(numbers) == 1 else text
    return re.sub(r"[*_`\"']", " ", unicodedata.normalize("NFKC", text)).strip()


def spoken(answer: Completion) -> tuple[str, str]:
    """Return an answer without the thoughts before it, and why it is no answer (empty if it is one)."""
    text = _THOUGHT.sub("", answer.text).strip()
    if _THINKING.search(text):
        return text, "the model spent all tokens on thinking; raise sampling.max_tokens, or turn thinking off"
    if not text or answer.cut_off:
        return text, f"cut off by max_tokens: {shown(text)}" if answer.cut_off else "an empty answer"
    return text, ""


def shown(text: str) -> str:
    """Return the beginning of an answer as one line."""
    text = " ".join(text.split())
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...")


_Share = Annotated[float, Field(ge=0, le=1, strict=True)]
#: chosen by the answer's type, so that an invalid share is not reported as an invalid text
_Answer = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, _Share], Tag("points")],
    Discriminator(lambda answer: "points" if isinstance(answer, dict) else "text"),
]


class RecordedJudgement(Record):
    """A line of a file of recorded judgements."""

    original: str = ""
    transformed: str = ""
    fields: str = Field(default="", description="the pair's value of the column `fields` in `pairs.parquet`")
    answers: dict[str, _Answer] = Field(
        min_length=1,
        description="by question: the answer as received, or for each point its probability of being the first token",
    )

    @model_validator(mode="after")
    def _of_something(self) -> RecordedJudgement:
        if not self.fields and not (self.original and self.transformed):
            raise ValueError("must name the judged texts by `original` and `transformed`, or by `fields`")
        return self


def _pair(original: str, transformed: str) -> str:
    return fields_json({"original": nfc(original), "transformed": nfc(transformed)})


def refuse_no_recording(path: Path) -> None:
    """Raise DataError if the file does not exist."""
    if not path.is_file():
        raise DataError(f"no recorded judgements at {path}; correct the judge's path in the study")


def recording_hashes(engine: EngineSpec, resolve: Callable[[str], Path]) -> list[str]:
    """Return the hashes of the files that a judge's answers come from. Raises DataError for a missing one."""
    paths = [resolve(path) for path in engine.recordings]
    for path in paths:
        refuse_no_recording(path)
    return [cached_file_hash(path) for path in paths]


class JudgeClient(Client, abc.ABC):
    """What answers for a judge."""

    tells_labels: bool = True  #: whether answers come with probabilities of labels
    sent: int = 0  #: tokens of prompts
    cached: int = 0  #: those computed for earlier prompts

    @abc.abstractmethod
    async def answer(self, asking: Any, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the answer to a message, with probabilities of `labels`. Raises as `Chat.ask`."""


class RecordedJudgeAnswers(JudgeClient):
    """Recorded answers by what they are about."""

    def __init__(self, recorded: Mapping[Any, Any]) -> None:
        self.recorded = recorded

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read all answers of a file. Raises DataError with file and line."""
        refuse_no_recording(path)
        recorded: dict[Any, Any] = {}
        for number, key, subject, answer in cls.lines(path):
            if key in recorded:
                raise DataError(f"{path}: line {number}: a second answer to {subject}; keep one")
            recorded[key] = answer
        return cls(recorded)

    @classmethod
    @abc.abstractmethod
    def lines(cls, path: Path) -> Iterator[tuple[int, Any, str, Any]]:
        """Yield each answer: its line, what it is about, the same in words, and the answer."""


class RecordedJudgements(RecordedJudgeAnswers):
    """Recorded judgements by texts and question."""

    @classmethod
    def lines(cls, path: Path) -> Iterator[tuple[int, Any, str, Any]]:
        """Yield the judgements of a file."""
        for number, line in record_lines(path, RecordedJudgement):
            texts = line.fields or _pair(line.original, line.transformed)
            for question, answer in line.answers.items():
                yield number, (texts, question), f"{question} on the same texts", answer

    async def answer(self, asking: JudgeMessage, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the recorded judgement. Raises TextUnansweredError if there is none."""
        pair = asking.pair
        answer = self.recorded.get((pair.fields or _pair(pair.original, pair.transformed), asking.question))
        if answer is None:
            raise TextUnansweredError(f"no recorded answer to {asking.question}")
        text, shares = (answer, None) if isinstance(answer, str) else ("", answer)
        return Completion(text, labels=shares, repeatable=False)
