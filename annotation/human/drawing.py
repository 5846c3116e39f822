"""The items of a data set that people do, and their candidates: drawn by a seed, and balanced on request.

Gold guides the drawing and goes no further: raters get only texts and ids.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from generation.datasets.scored import ScoredItem
from plumbline.errors import StudyError
from plumbline.identity import identity
from plumbline.languages import language_name
from plumbline.study.human import MOST_POINTS, HumanTaskSpec
from plumbline.words import shows

SEARCHES = ("reranking", "retrieval")
CHOSEN_AMONG = (*SEARCHES, "bitext_mining")
LABELLED = ("classification", "clustering", "multilabel_classification", "pair_classification")
SCORED = ("sts", "str", "summarisation")
HIDDEN = "-1"  # the label of items with secret gold


@dataclass(frozen=True)
class DrawnItem:
    """An item that was drawn, with its candidates by id."""

    scored: ScoredItem
    candidates: tuple[str, ...] = ()  #: in the order of their ids
    shown: tuple[str, ...] = ()  #: in the order shown, which a hash decides

    def content(self) -> list[object]:
        """Everything that people and models get of the item, and its gold."""
        scored = self.scored
        texts = [[name, scored.candidates[name]] for name in self.candidates]
        gold = [list(scored.labels), None if math.isnan(scored.score) else scored.score, sorted(scored.relevant)]
        return [scored.subset, scored.item, scored.language, scored.output_language, dict(scored.fields), texts, gold]


@dataclass
class TaskDrawing:
    """The items of a task, and the items left out, counted by reason."""

    items: list[DrawnItem] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def draw(spec: HumanTaskSpec, task_type: str, items: Sequence[ScoredItem], seed: int) -> TaskDrawing:
    """Draw items for people: for each pair of languages, as many as the task asks for or the data set has.

    Raises StudyError if there are no items, or if balancing or clusters are impossible.
    """
    drawn = TaskDrawing()
    if spec.balance == "label" and task_type not in LABELLED:
        raise StudyError(f"subject.tasks: {spec.name!r}: {task_type} has no labels to balance; take `balance` out")
    _refuse_hidden(spec, task_type, items)
    by_languages = defaultdict[tuple[str, str], list[ScoredItem]](list)
    for item in _usable(items, spec, task_type, drawn.left_out):
        by_languages[item.language, item.output_language].append(item)
    for of_languages in by_languages.values():
        rows = _one_set(of_languages, spec, seed, drawn.left_out) if task_type == "clustering" else of_languages
        if task_type in CHOSEN_AMONG:
            drawn.items += _searched(spec, task_type, rows, seed, drawn.left_out)
        else:
            drawn.items += [DrawnItem(item) for item in _picked(spec, rows, seed)]
    _refuse_other_numbers(spec, drawn.items)
    if not drawn.items:
        why = "; ".join(f"{number} {reason}" for reason, number in drawn.left_out.items()) or "the data set has no rows"
        raise StudyError(f"subject.tasks: {spec.name!r}: no item can be shown to people ({why}); take the task out")
    return drawn


def _refuse_hidden(spec: HumanTaskSpec, task_type: str, items: Sequence[ScoredItem]) -> None:
    """Raise StudyError if all gold is -1 or missing, as in the test sets of contests, whose owners keep it secret."""
    if task_type in CHOSEN_AMONG or len(items) < 2:
        return
    hidden = [
        item.score == -1 or math.isnan(item.score) if task_type in SCORED else item.labels in ((), (HIDDEN,))
        for item in items
    ]
    if all(hidden):
        raise StudyError(
            f"subject.tasks: {spec.name!r}: none of its {len(items)} items has gold (all are -1 or empty), so nobody"
            " can be scored; take the task out, or use a split of the data with gold"
        )


def _usable(
    items: Sequence[ScoredItem], spec: HumanTaskSpec, task_type: str, left_out: Counter[str]
) -> list[ScoredItem]:
    """Return the items with all texts and gold; items that read the same appear once."""
    usable, seen = list[ScoredItem](), set[str]()
    for item in items:
        read = dict(item.fields)
        key = identity("human-item-v1", item.language, item.output_language, read)
        gold = (
            bool(item.relevant)
            if task_type in CHOSEN_AMONG
            else not math.isnan(item.score)
            if task_type in SCORED
            else bool(item.labels) or task_type == "multilabel_classification"
        )
        if not item.whole:
            left_out["without a text that shows"] += 1
        elif not gold:
            left_out["without gold"] += 1
        elif key in seen:
            left_out["with the texts of another"] += 1
        else:
            seen.add(key)
            usable.append(item)
    return usable


def _one_set(items: Sequence[ScoredItem], spec: HumanTaskSpec, seed: int, left_out: Counter[str]) -> list[ScoredItem]:
    """Return the texts of one set to be clustered: the first with enough, else the largest."""
    sets = defaultdict[str, list[ScoredItem]](list)
    for item in items:
        sets[item.drawn_with].append(item)
    order = sorted(sets, key=lambda name: _rank(seed, spec.name, "set", name))
    chosen = next((name for name in order if len(sets[name]) >= spec.items), max(order, key=lambda n: len(sets[n])))
    if others := len(items) - len(sets[chosen]):
        left_out["in other sets of texts"] += others
    return sets[chosen]


def _picked(spec: HumanTaskSpec, items: Sequence[ScoredItem], seed: int) -> list[ScoredItem]:
    """Return the wanted number of items, in the data set's order; groups are taken whole or not at all."""
    units = defaultdict[str, list[ScoredItem]](list)
    for item in items:
        units[item.drawn_with if item.drawn_with and not item.labels else item.item].append(item)
    order = sorted(units, key=lambda name: _rank(seed, spec.name, name))
    if spec.balance == "label":
        order = _in_turns(order, lambda name: ", ".join(sorted(units[name][0].labels)))
    taken = set[str]()
    for name in order:
        if len(taken) and len(taken) + len(units[name]) > spec.items:
            continue
        taken |= {item.item for item in units[name]}
        if len(taken) >= spec.items:
            break
    return [item for item in items if item.item in taken]


def _in_turns(names: Sequence[str], label: Callable[[str], str]) -> list[str]:
    """Return the names ordered so that labels alternate."""
    turns, placed = Counter[str](), list[tuple[int, int, str]]()
    for name in names:
        name_label = label(name)
        placed.append((turns[name_label], len(placed), name))
        turns[name_label] += 1
    return [name for *_, name in sorted(placed)]


def _searched(
    spec: HumanTaskSpec, task_type: str, scored: Sequence[ScoredItem], seed: int, left_out: Counter[str]
) -> list[DrawnItem]:
    """Return queries with as many candidates as the task asks for, or as there are."""
    items = list(scored)
    if task_type == "bitext_mining":  # any row can be taken; candidates are drawn for the rows taken
        items = [_with_candidates(spec, item, scored, seed) for item in _picked(spec, scored, seed)]
    usable = list[ScoredItem]()
    for item in items:
        distinct = _apart(item)
        if len(distinct) < len(item.candidates):
            left_out["candidates without a text of their own"] += len(item.candidates) - len(distinct)
        relevant = item.relevant & set(distinct)
        if not relevant:
            left_out["without a right candidate that has a text"] += 1
        elif len(relevant) == len(distinct):
            left_out["with right candidates alone"] += 1
        else:
            usable.append(replace(item, candidates=distinct, relevant=relevant))
    counts = sorted((len(item.candidates) for item in usable), reverse=True)
    if not counts:
        return []
    number = max(2, min(spec.candidates, counts[min(spec.items, len(counts)) - 1]))
    enough = [item for item in usable if len(item.candidates) >= number]
    if len(enough) < len(usable):
        left_out[f"with fewer than {number} candidates"] += len(usable) - len(enough)
    return [_chosen(spec, item, number, seed) for item in _picked(spec, enough, seed)]


def _refuse_other_numbers(spec: HumanTaskSpec, items: Sequence[DrawnItem]) -> None:
    """Raise StudyError if languages differ in their number of candidates: all raters get the same number."""
    numbers = {len(item.candidates) for item in items}
    if len(numbers) > 1:
        raise StudyError(
            f"subject.tasks: {spec.name!r}: some languages have {max(numbers)} candidates for each item, others"
            f" {min(numbers)}; write candidates: {min(numbers)}, or make a data set of each language"
        )


def _with_candidates(spec: HumanTaskSpec, item: ScoredItem, items: Sequence[ScoredItem], seed: int) -> ScoredItem:
    """Return a bitext item with candidates: its translation and other rows, drawn by its id."""
    places = sorted(
        range(len(items)), key=lambda index: _rank(seed, spec.name, "other", item.item, items[index].item)
    ) if len(items) <= _MANY else _some(len(items), seed, spec.name, item.item)  # fmt: skip
    others = [items[index] for index in places if items[index].subset == item.subset and items[index].item != item.item]
    more = {name: text for row in others[: 3 * spec.candidates] for name, text in row.candidates.items()}
    return replace(item, candidates={**item.candidates, **more})


_MANY = 500  # up to so many rows are all ranked for each text; from more rows, some are drawn


def _some(number: int, seed: int, *what: str) -> list[int]:
    return [_rank(seed, *what, str(turn)) % number for turn in range(100)]


def _apart(item: ScoredItem) -> dict[str, str]:
    """Return the candidates with readable texts, each text once; right candidates win over equal texts."""
    order = sorted(item.candidates, key=lambda name: name not in item.relevant)
    by_text: dict[str, str] = {}
    for name in order:
        if shows(item.candidates[name]):
            by_text.setdefault(str(item.candidates[name]), name)
    names = set(by_text.values())
    return {name: text for name, text in item.candidates.items() if name in names}


def _chosen(spec: HumanTaskSpec, item: ScoredItem, number: int, seed: int) -> DrawnItem:
    """Return a query with its candidates, up to half of them right."""
    order = sorted(item.candidates, key=lambda name: _rank(seed, spec.name, item.item, name))
    right = [name for name in order if name in item.relevant]
    others = [name for name in order if name not in item.relevant]
    n_right = min(len(right), max(1, number // 2, number - len(others)))
    taken = [*right[:n_right], *others[: number - n_right]]
    shown = sorted(taken, key=lambda name: identity("human-order-v1", spec.name, item.item, name))
    return DrawnItem(item, tuple(sorted(taken)), tuple(shown))


def clusters_of(spec: HumanTaskSpec, items: Sequence[DrawnItem]) -> int:
    """Return the number of clusters that raters are told.

    Raises StudyError if it differs between languages.
    """
    labels = defaultdict[str, set[str]](set)
    for item in items:
        labels[item.scored.language] |= set(item.scored.labels)
    numbers = {language: len(values) for language, values in labels.items()}
    if len(set(numbers.values())) > 1:
        listed = ", ".join(f"{language_name(language)} {number}" for language, number in numbers.items())
        raise StudyError(
            f"subject.tasks: {spec.name!r}: its languages differ in their number of clusters ({listed}); make a data"
            " set of each language"
        )
    return next(iter(numbers.values()))


def refuse_other_scale(
    spec: HumanTaskSpec, scale: Sequence[int], declared: Sequence[float], items: Sequence[ScoredItem]
) -> None:
    """Raise StudyError if gold lies outside people's scale or its own, or does not vary.

    `declared` are the ends of gold's own scale if it differs from people's; otherwise empty.
    """
    scores = [item.score for item in items if not math.isnan(item.score)]
    if len(set(scores)) == 1:
        raise StudyError(
            f"subject.tasks: {spec.name!r}: all {len(scores)} drawn items have the same gold score ({scores[0]:g}), so"
            " no ranking can be computed; draw more items, or take the task out"
        )
    low, high = (declared or scale)[0], (declared or scale)[-1]
    if not scores or low <= min(scores) <= max(scores) <= high:
        return
    where = f"subject.tasks: {spec.name!r}: gold scores go from {min(scores):g} to {max(scores):g}, but"
    if declared:
        raise StudyError(f"{where} the data set's gold_scale is {low:g} to {high:g}; correct gold_scale")
    least, most = math.floor(min(scores)), math.ceil(max(scores))
    advice = f"write `scale: [{least}, {most}]` in this task, or " if most - least < MOST_POINTS else ""
    raise StudyError(
        f"{where} people answer from {low:g} to {high:g}; {advice}declare the gold's scale as `gold_scale` of"
        f" {spec.dataset!r} under `datasets`"
    )


def _rank(seed: int, *what: str) -> int:
    """Return a number to sort by, which depends only on the seed and the names."""
    return int(identity("human-rank-v1", seed, *what)[:16], 16)
