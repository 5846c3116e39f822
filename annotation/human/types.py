"""The types of tasks that people do: a class for each, with all that differs in drawing its items, in `TASK_KINDS`.

Items and their candidates are drawn by a seed, and balanced on request. Gold guides the drawing and goes no further:
raters get only texts and ids. A new type is a class here, a file of words in `prompts/human/`, and a class in
`evaluation.human.sampled`.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from generation.datasets.dataset import Dataset
from generation.datasets.scored import ScoredItem, all_labels, label_words
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.languages import language_name
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.human import CANNOT_TELL, MOST_POINTS, HumanTaskSpec
from plumbline.words import shows, trim

NONE = "none"  # the answer that no label fits
GRADES = (0, 1, 2, 3)
HIDDEN = "-1"  # the label of items with secret gold
MOST_LABELS = 499  # the most that Argilla takes, beside "cannot tell"
LONGEST = 500  # the most characters on a button that Argilla takes
_MANY = 500  # up to so many rows are all ranked for each text; from more rows, some are drawn
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class DrawnItem:
    """An item that was drawn, with its candidates by id."""

    scored: ScoredItem
    shown: tuple[str, ...] = ()  #: the candidates in the order shown, which a hash decides

    @property
    def candidates(self) -> tuple[str, ...]:
        """The candidates in the order of their ids."""
        return tuple(sorted(self.shown))

    def content(self) -> list[object]:
        """Everything that people and models get of the item, and its gold."""
        scored = self.scored
        texts = [[name, scored.candidates[name]] for name in self.candidates]
        gold = [list(scored.labels), None if math.isnan(scored.score) else scored.score, sorted(scored.relevant)]
        return [scored.subset, scored.item, scored.language, scored.output_language, dict(scored.fields), texts, gold]


@dataclass(frozen=True)
class TaskSource:
    """A task's data set, the words of the answers of all tasks, and a crowd worker's most items (None: no crowd)."""

    data: DatasetSpec
    dataset: Dataset
    general: Mapping[str, Any]
    batch: int | None = None


@dataclass
class TaskDrawing:
    """The drawing of a task's items by a seed: those drawn, and those left out, counted by reason."""

    spec: HumanTaskSpec
    seed: int
    items: list[DrawnItem] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def rank(self, *names: str) -> int:
        """Return a number to sort by, which depends only on the seed and the names."""
        return int(identity("human-rank-v1", self.seed, self.spec.name, *names)[:16], 16)

    def refusal(self, reason: str) -> StudyError:
        """Return an error about the task."""
        return StudyError(f"subject.tasks: {self.spec.name!r}: {reason}")

    @property
    def scored(self) -> list[ScoredItem]:
        """The drawn items with their gold."""
        return [item.scored for item in self.items]

    def pick(self, items: Sequence[ScoredItem]) -> list[ScoredItem]:
        """Return the wanted number of items, in the data set's order; groups are taken whole or not at all."""
        units = defaultdict[str, list[ScoredItem]](list)
        for item in items:
            units[item.drawn_with if item.drawn_with and not item.labels else item.item].append(item)
        order = sorted(units, key=self.rank)
        if self.spec.balance == "label":
            turns, placed = Counter[str](), list[tuple[int, int, str]]()
            for name in order:
                label = ", ".join(sorted(units[name][0].labels))
                placed.append((turns[label], len(placed), name))
                turns[label] += 1
            order = [name for *_, name in sorted(placed)]  # labels alternate
        picked = set[str]()
        for name in order:
            if picked and len(picked) + len(units[name]) > self.spec.items:
                continue
            picked |= {item.item for item in units[name]}
            if len(picked) >= self.spec.items:
                break
        return [item for item in items if item.item in picked]


class TaskKind:
    """A type of task: an item is one or two texts that get a score from people; other types override what differs."""

    metric: ClassVar[str] = "cosine_spearman"  #: of people and models, by mteb's name
    form: ClassVar[str] = "score"  #: of the answers (`annotation.human.forms`)
    keys: ClassVar[tuple[str, ...]] = ("scale",)  #: of a task in a study, those without effect on most other types
    has_labels: ClassVar[bool] = False  #: which a drawing can balance
    fields: ClassVar[tuple[str, ...]] = ("sentence1", "sentence2")  #: that raters read of an item without candidates

    def __init__(self, name: TaskType) -> None:
        self.name = name

    def form_for(self, relevance: str) -> str:
        """Return the form of the answers; `relevance` is how a study has searches asked."""
        del relevance
        return self.form

    def fields_with(self, *, per_candidate: bool) -> tuple[str, ...]:
        """Return the fields that raters read; `per_candidate` is true if each candidate is a record of its own."""
        del per_candidate
        return self.fields

    def draw(self, spec: HumanTaskSpec, items: Sequence[ScoredItem], seed: int) -> TaskDrawing:
        """Draw items for people: for each pair of languages, as many as the task asks for or the data set has.

        Raises StudyError for settings without effect, if there are no items, and if balancing is impossible.
        """
        drawing = TaskDrawing(spec, seed)
        self._refuse_settings(drawing)
        if len(items) > 1 and all(map(self._hidden, items)):  # as in the test sets of contests, whose owners keep it
            raise drawing.refusal(
                f"none of its {len(items)} items has gold (all are -1 or empty), so nobody can be scored; take the task"
                " out, or use a split of the data with gold"
            )
        by_languages = defaultdict[tuple[str, str], list[ScoredItem]](list)
        for item in self._usable(items, drawing.left_out):
            by_languages[item.language, item.output_language].append(item)
        for of_languages in by_languages.values():
            drawing.items += self._drawn(drawing, of_languages)
        if not drawing.items:
            reasons = "; ".join(f"{number} {reason}" for reason, number in drawing.left_out.items())
            raise drawing.refusal(
                f"no item can be shown to people ({reasons or 'the data set has no rows'}); take the task out"
            )
        return drawing

    def facts(self, drawing: TaskDrawing, source: TaskSource) -> dict[str, Any]:
        """Return the fields of `HumanTask` that only some types have: the points of people's scale, and gold's ends.

        Raises StudyError for tasks that people cannot do: here for gold off its scale.
        """
        scale = self._points(drawing, source.data.gold_scale)
        declared = source.data.gold_scale if "gold_scale" in source.data.model_fields_set else ()
        gold_scale = () if (scale[0], scale[-1]) == declared else declared
        self._refuse_off_scale(drawing, scale, gold_scale)
        return {"scale": scale, "gold_scale": gold_scale}

    def _refuse_settings(self, drawing: TaskDrawing) -> None:
        """Raise StudyError for a key that has no effect on tasks of this type."""
        for key in dict.fromkeys(key for kind in TASK_KINDS.values() for key in kind.keys):
            if key in drawing.spec.model_fields_set and key not in self.keys:
                kinds = ", ".join(kind.words for kind in TASK_KINDS.values() if key in kind.keys)
                raise drawing.refusal(f"{key} has no effect on {self.words}, only on {kinds}; take it out")
        if drawing.spec.balance == "label" and not self.has_labels:
            raise drawing.refusal(f"{self.name} has no labels to balance; take `balance` out")

    @property
    def words(self) -> str:
        """The type's name in messages."""
        return self.name.replace("_", " ")

    def _has_gold(self, item: ScoredItem) -> bool:
        return not math.isnan(item.score)

    def _hidden(self, item: ScoredItem) -> bool:
        """Return whether an item's gold is one that stands for secret gold."""
        return item.score == -1 or math.isnan(item.score)

    def _usable(self, items: Sequence[ScoredItem], left_out: Counter[str]) -> Iterator[ScoredItem]:
        """Yield the items with all texts and gold; items that read the same appear once."""
        keys = set[str]()
        for item in items:
            key = identity("human-item-v1", item.language, item.output_language, dict(item.fields))
            if not item.whole:
                left_out["without a text that shows"] += 1
            elif not self._has_gold(item):
                left_out["without gold"] += 1
            elif key in keys:
                left_out["with the texts of another"] += 1
            else:
                keys.add(key)
                yield item

    def _drawn(self, drawing: TaskDrawing, items: Sequence[ScoredItem]) -> list[DrawnItem]:
        """Draw among the items in one pair of languages."""
        return [DrawnItem(item) for item in drawing.pick(items)]

    def _points(self, drawing: TaskDrawing, gold_scale: tuple[float, float]) -> tuple[int, ...]:
        low, high = drawing.spec.scale or gold_scale
        if low != int(low) or high != int(high) or not 1 <= high - low < MOST_POINTS:
            raise drawing.refusal(
                f"people answer in whole points, {MOST_POINTS} at most, but gold_scale is {low:g} to {high:g}; write"
                " `scale`, such as [1, 5]"
            )
        return tuple(range(int(low), int(high) + 1))

    def _refuse_off_scale(self, drawing: TaskDrawing, scale: Sequence[int], declared: Sequence[float]) -> None:
        """Raise StudyError for gold that is constant, or off people's scale or its own (`declared`; empty if equal)."""
        scores = [item.score for item in drawing.scored]
        if len(set(scores)) == 1:
            raise drawing.refusal(
                f"all {len(scores)} drawn items have the same gold score ({scores[0]:g}), so no ranking can be"
                " computed; draw more items, or take the task out"
            )
        low, high = (declared or scale)[0], (declared or scale)[-1]
        if low <= min(scores) <= max(scores) <= high:
            return
        off = f"gold scores go from {min(scores):g} to {max(scores):g}, but"
        if declared:
            raise drawing.refusal(f"{off} the data set's gold_scale is {low:g} to {high:g}; correct gold_scale")
        least, most = math.floor(min(scores)), math.ceil(max(scores))
        advice = f"write `scale: [{least}, {most}]` in this task, or " if most - least < MOST_POINTS else ""
        raise drawing.refusal(
            f"{off} people answer from {low:g} to {high:g}; {advice}declare the gold's scale as `gold_scale` of"
            f" {drawing.spec.dataset!r} under `datasets`"
        )


class SummaryKind(TaskKind):
    """Summaries of a text, each scored beside people's."""

    fields = ("human_summaries", "summary")


class LabelledKind(TaskKind):
    """Items with labels: pairs that are alike or not, and the base of types with other labels."""

    metric, form, has_labels = "cosine_ap", "same", True
    keys: ClassVar[tuple[str, ...]] = ()

    def facts(self, drawing: TaskDrawing, source: TaskSource) -> dict[str, Any]:
        """Raise StudyError if all drawn items have the same labels, so that raters cannot be told apart."""
        labels = {frozenset(item.labels) for item in drawing.scored}
        if len(labels) < 2:
            only = ", ".join(sorted(next(iter(labels)))) or "none of them"
            raise drawing.refusal(
                f"all {len(drawing.items)} drawn items have the label {only!r}, so raters cannot be told apart; write"
                " `balance: label`, or draw more items"
            )
        return {}

    def _has_gold(self, item: ScoredItem) -> bool:
        return bool(item.labels)

    def _hidden(self, item: ScoredItem) -> bool:
        return item.labels in ((), (HIDDEN,))


class ClassKind(LabelledKind):
    """Texts with one label each, which have words."""

    metric, form, keys, fields = "accuracy", "label", ("labels",), ("text",)
    general_answers: ClassVar[tuple[str, ...]] = (CANNOT_TELL,)  #: on buttons beside the labels'

    def facts(self, drawing: TaskDrawing, source: TaskSource) -> dict[str, Any]:
        """Return all labels of the data set in order, and words for labels that are not words.

        Raises StudyError for more labels or longer words than Argilla shows, for numbers without words, and for labels
        that people cannot tell apart.
        """
        super().facts(drawing, source)
        labels, of_spec = order_of(sorted(all_labels(source.dataset))), drawing.spec.labels
        most = MOST_LABELS + 1 - len(self.general_answers)
        if len(labels) < 2:
            raise drawing.refusal(f"its data have only the label {', '.join(labels) or 'none'}; take the task out")
        if len(labels) > most:
            raise drawing.refusal(
                f"{len(labels)} labels are more than the {most} that Argilla shows; take the task out, or use a data"
                " set with fewer labels"
            )
        if unknown := [label for label in of_spec if label not in labels]:
            raise drawing.refusal(f"its data have no label {unknown[0]!r}; the labels are {', '.join(labels[:20])}")
        words = {**label_words(source.dataset), **of_spec}
        if bare := [label for label in labels if is_number(label) and label not in words]:
            raise drawing.refusal(
                f"the label {bare[0]!r} is a number, which tells people nothing; write words for the labels, such as"
                f" labels: {{{bare[0]!r}: complaint}}"
            )
        wordings = {label: words.get(label, label) for label in labels}
        self._refuse_alike(drawing, wordings, source.general)
        return {"labels": labels, "label_words": {name: text for name, text in wordings.items() if text != name}}

    def _refuse_alike(self, drawing: TaskDrawing, wordings: Mapping[str, str], general: Mapping[str, Any]) -> None:
        """Raise StudyError for words that are too long, or equal to another label's or to a general answer's."""
        read = {
            _read(words): f"the answer {words!r}"
            for name in self.general_answers
            for words in (general[name].values() if isinstance(general[name], Mapping) else ())
        }
        for label, words in wordings.items():
            if len(words) > LONGEST:
                raise drawing.refusal(
                    f"the words for the label {label[:40]!r} have {len(words)} characters, but a button takes at most"
                    f" {LONGEST}; write shorter words under `labels`"
                )
            first = read.setdefault(_read(words), f"the label {label!r}")
            if first != f"the label {label!r}":
                raise drawing.refusal(
                    f"raters cannot tell {first} and the label {label!r} apart; write other words for it, such as"
                    f" labels: {{{label!r}: ...}}"
                )


class ClassesKind(ClassKind):
    """Texts with several labels each, or none."""

    form, general_answers = "labels", (CANNOT_TELL, NONE)

    def _has_gold(self, item: ScoredItem) -> bool:
        return True


class ClusterKind(LabelledKind):
    """Texts of one set, to be put into groups."""

    metric, form, fields = "v_measure", "cluster", ("text",)

    def facts(self, drawing: TaskDrawing, source: TaskSource) -> dict[str, Any]:
        """Return the number of clusters that raters are told. Raises StudyError if languages differ in it."""
        super().facts(drawing, source)
        if source.batch is not None and len(drawing.items) > source.batch:
            raise drawing.refusal(
                f"a worker groups the texts of one batch, and {len(drawing.items)} texts are more than sample.batch"
                f" {source.batch}; raise sample.batch"
            )
        labels = defaultdict[str, set[str]](set)
        for item in drawing.scored:
            labels[item.language] |= set(item.labels)
        numbers = {language: len(values) for language, values in labels.items()}
        if len(set(numbers.values())) > 1:
            listed = ", ".join(f"{language_name(language)} {number}" for language, number in numbers.items())
            raise drawing.refusal(
                f"its languages differ in their number of clusters ({listed}); make a data set of each language"
            )
        (number,) = set(numbers.values())
        if number > MOST_LABELS:
            raise drawing.refusal(
                f"{number} clusters are more than the {MOST_LABELS} that Argilla shows; draw fewer items"
            )
        return {"clusters_told": number}

    def _drawn(self, drawing: TaskDrawing, items: Sequence[ScoredItem]) -> list[DrawnItem]:
        """Draw the texts of one set: the first with enough, else the largest."""
        sets = defaultdict[str, list[ScoredItem]](list)
        for item in items:
            sets[item.drawn_with].append(item)
        order = sorted(sets, key=lambda name: drawing.rank("set", name))
        enough = (name for name in order if len(sets[name]) >= drawing.spec.items)
        chosen = sets[next(enough, max(order, key=lambda name: len(sets[name])))]
        if rest := len(items) - len(chosen):
            drawing.left_out["in other sets of texts"] += rest
        return super()._drawn(drawing, chosen)


class SearchKind(TaskKind):
    """Queries with passages, some of them right."""

    metric, fields = "map_at_1000", ("query",)
    keys: ClassVar[tuple[str, ...]] = ("candidates", "relevance")

    def form_for(self, relevance: str) -> str:
        """Return the form that the study wants."""
        return relevance

    def fields_with(self, *, per_candidate: bool) -> tuple[str, ...]:
        """Return the query, and one passage or all."""
        return (*self.fields, "passage" if per_candidate else "candidates")

    def facts(self, drawing: TaskDrawing, source: TaskSource) -> dict[str, Any]:
        """Return the scale of grades. Raises StudyError if languages differ in their number of candidates."""
        numbers = {len(item.shown) for item in drawing.items}
        if len(numbers) > 1:
            raise drawing.refusal(
                f"some languages have {max(numbers)} candidates for each item, others {min(numbers)}; write candidates:"
                f" {min(numbers)}, or make a data set of each language"
            )
        graded = {"scale": GRADES} if self.form_for(drawing.spec.relevance) == "graded" else {}
        return {"candidates": max(numbers), **graded}

    def _has_gold(self, item: ScoredItem) -> bool:
        return bool(item.relevant)

    def _hidden(self, item: ScoredItem) -> bool:
        return False

    def _drawn(self, drawing: TaskDrawing, items: Sequence[ScoredItem]) -> list[DrawnItem]:
        """Draw queries with as many candidates as the task asks for, or as there are."""
        usable = list[ScoredItem]()
        for item in items:
            distinct = _distinct(item)
            if len(distinct) < len(item.candidates):
                n_dropped = len(item.candidates) - len(distinct)
                drawing.left_out["candidates without a text of their own"] += n_dropped
            relevant = item.relevant & set(distinct)
            if not relevant:
                drawing.left_out["without a right candidate that has a text"] += 1
            elif len(relevant) == len(distinct):
                drawing.left_out["with right candidates alone"] += 1
            else:
                usable.append(replace(item, candidates=distinct, relevant=relevant))
        counts = sorted((len(item.candidates) for item in usable), reverse=True)
        if not counts:
            return []
        number = max(2, min(drawing.spec.candidates, counts[min(drawing.spec.items, len(counts)) - 1]))
        enough = [item for item in usable if len(item.candidates) >= number]
        if len(enough) < len(usable):
            drawing.left_out[f"with fewer than {number} candidates"] += len(usable) - len(enough)
        return [self._with_shown(drawing, item, number) for item in drawing.pick(enough)]

    def _with_shown(self, drawing: TaskDrawing, item: ScoredItem, number: int) -> DrawnItem:
        """Return a query with its candidates, up to half of them right."""
        order = sorted(item.candidates, key=lambda name: drawing.rank(item.item, name))
        right = [name for name in order if name in item.relevant]
        rest = [name for name in order if name not in item.relevant]
        n_right = min(len(right), max(1, number // 2, number - len(rest)))
        chosen = [*right[:n_right], *rest[: number - n_right]]
        name = drawing.spec.name
        return DrawnItem(
            item, tuple(sorted(chosen, key=lambda text: identity("human-order-v1", name, item.item, text)))
        )


class RetrievalKind(SearchKind):
    """Queries with passages of a corpus."""

    metric = "ndcg_at_10"


class BitextKind(SearchKind):
    """Sentences with candidates for their translation: any row can be drawn, and candidates are drawn for it."""

    metric = "accuracy"  # of a choice among candidates; mteb has F1 of one among all rows
    form, keys, fields = "choice", ("candidates",), ("sentence1",)

    def form_for(self, relevance: str) -> str:
        """Return the choice of one."""
        return self.form

    def _drawn(self, drawing: TaskDrawing, items: Sequence[ScoredItem]) -> list[DrawnItem]:
        return super()._drawn(drawing, [self._with_candidates(drawing, item, items) for item in drawing.pick(items)])

    def _with_candidates(self, drawing: TaskDrawing, item: ScoredItem, items: Sequence[ScoredItem]) -> ScoredItem:
        """Return an item with its translation and other rows, drawn by its id."""
        if len(items) <= _MANY:
            places = sorted(range(len(items)), key=lambda index: drawing.rank("other", item.item, items[index].item))
        else:
            places = [drawing.rank(item.item, str(turn)) % len(items) for turn in range(100)]
        rows = [items[index] for index in places if items[index].subset == item.subset]
        rest = [row for row in rows if row.item != item.item][: 3 * drawing.spec.candidates]
        more = {name: text for row in rest for name, text in row.candidates.items()}
        return replace(item, candidates={**item.candidates, **more})


def _distinct(item: ScoredItem) -> dict[str, str]:
    """Return the candidates with readable texts, each text once; right candidates win over equal texts."""
    by_text: dict[str, str] = {}
    for name in sorted(item.candidates, key=lambda name: name not in item.relevant):
        if shows(item.candidates[name]):
            by_text.setdefault(str(item.candidates[name]), name)
    names = set(by_text.values())
    return {name: text for name, text in item.candidates.items() if name in names}


def order_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels in the order shown: numbers by size, others alphabetically."""
    if all(is_number(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    return tuple(sorted(labels, key=str.casefold))


def is_number(label: str) -> bool:
    """Return whether a label is a number and nothing else, such as 3, -1 or 0.5."""
    return bool(_NUMBER.fullmatch(label.strip()))


def _read(words: str) -> str:
    return " ".join(trim(words).casefold().split())


#: The types by name; a metric is mteb's own of the type, except for bitext (a test checks it).
TASK_KINDS: Mapping[str, TaskKind] = {
    kind.name: kind
    for kind in (
        TaskKind("sts"),
        TaskKind("str"),
        LabelledKind("pair_classification"),
        ClassKind("classification"),
        ClusterKind("clustering"),
        SearchKind("reranking"),
        RetrievalKind("retrieval"),
        SummaryKind("summarisation"),
        BitextKind("bitext_mining"),
        ClassesKind("multilabel_classification"),
    )
}
METRICS: Mapping[TaskType, str] = {kind.name: kind.metric for kind in TASK_KINDS.values()}
