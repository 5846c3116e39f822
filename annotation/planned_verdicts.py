"""The verdicts of a study before it has pairs: on how many each will rest, and what each and all of them cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.crowd import platform
from annotation.rubric import Rubric
from annotation.sampling.controls import beside, number_of_batches
from annotation.statistics.summaries import Design
from annotation.subjects import read_items
from annotation.verdicts.tables import display
from generation.datasets.loading import texts_in
from plumbline.cli import columns
from plumbline.errors import PlumblineError
from plumbline.languages import language_name
from plumbline.study import Study
from plumbline.study.campaign import RuleSpec
from plumbline.study.crowd import PaySpec
from plumbline.study.datasets import MtebDataset
from plumbline.study.reach import Text, Texts, VerdictSize, known_texts, refuse_unreachable, verdict_sizes
from plumbline.study.subject import ItemGroup

_NAMED = 8  # names in a cell; of more their number is said


@dataclass(frozen=True)
class Price:
    """What a whole study asks of its raters."""

    pairs: int  # that are shown, controls and repeats among them; each by every rater of the pair
    ratings: int
    hours: float
    dollars: float


@dataclass(frozen=True)
class VerdictPrice:
    """Verdicts that rest on equally many pairs and cost the same."""

    names: tuple[str, ...]  #: what is judged, as people read it; what shares its pairs stands together
    places: tuple[str, ...]  #: in these languages, and tasks, each apart; none where all are judged together
    verdicts: int
    pairs: int  #: of each verdict
    dollars: float  #: for these pairs


def judged_texts(study: Study, rubric: Rubric) -> tuple[Texts, str]:
    """(The languages and tasks of what is judged, why only the study's file could tell them; empty where data did).

    Raises StudyError where a verdict could never be reached.
    """
    why_not = ""
    try:
        texts = _read_texts(study, rubric)
    except PlumblineError as error:
        texts, why_not = known_texts(study), str(error)
    refuse_unreachable(study, texts, f"{study.file}: ")
    return texts, why_not


def _read_texts(study: Study, rubric: Rubric) -> Texts:
    """By the data sets, or the file of texts."""
    base, mteb = study.file.parent, any(isinstance(dataset, MtebDataset) for dataset in study.datasets)
    if study.judging.transforms:
        every = set[Text]().union(*(texts_in(dataset, base) for dataset in study.datasets))
        return dict.fromkeys(study.kinds, tuple(every))
    if study.judging.takes_all or study.judging.does_tasks or mteb:
        return known_texts(study)
    by_group: dict[str, set[Text]] = {}
    for item in read_items(study, rubric)[0]:
        by_group.setdefault(item.group, set()).add((item.language, item.task_type))
    return by_group


def least_pairs(study: Study, texts: Texts, pairs: int, rule: RuleSpec) -> int:
    """The pairs of the smallest verdict that a rule judges, where so many pairs of each transformation count."""
    sizes = verdict_sizes(study, texts, _drawn(study, pairs))
    return min(size.pairs for size in sizes if not rule.pools or size.pool in rule.pools)


def pay_of(study: Study) -> PaySpec:
    """What the study's raters are paid."""
    return study.crowd.pay if study.crowd else PaySpec()


def price(study: Study, rubric: Rubric, design: Design, size: tuple[int, int]) -> Price:
    """The cost of a study with `size` (pairs of each transformation, raters of each pair), without a platform's fees.

    Paid as `crowd.pay` says, or by its defaults (HTEB, Ethical Considerations) where the study asks no crowd; where
    people turn out to need longer, a bonus makes up the difference. Each batch of a queue brings the controls
    whose answers are known and the repeats, paid like its pairs; a queue in several languages has a few more. A rating
    is one answer to one of the questions that must be answered about the pair.
    """
    pairs, raters = size
    shown = Counter(dict.fromkeys(study.kinds, pairs))
    queues: dict[str, list[str]] = {}
    for name, kind in study.kinds.items():
        queues.setdefault((isinstance(kind, ItemGroup) and kind.queue) or kind.pool, []).append(name)
    for members in queues.values():
        each = beside(study, rubric, study.kinds[members[0]].pool)
        shown[members[0]] += number_of_batches(study, pairs * len(members)) * each
    names, spec = list(shown.elements()), pay_of(study)
    hours = raters * platform.assumed_hours(names, spec)
    ratings = raters * sum(number * len(design.needed(design.pool_of(name))) for name, number in shown.items())
    return Price(len(names), ratings, hours, raters * platform.reward(names, spec) / 100)


def verdict_prices(study: Study, texts: Texts, size: tuple[int, int]) -> list[VerdictPrice]:
    """The verdicts of a study of `size` (pairs of each transformation that count, raters), those that are alike as one.

    The price is that of the pairs that count, by all their raters, without controls, repeats and fees.
    """
    alike: dict[tuple[int, float], list[VerdictSize]] = {}
    for verdict in verdict_sizes(study, texts, _drawn(study, size[0])):
        names = [name for name in verdict.members for _ in range(verdict.pairs // len(verdict.members))]
        alike.setdefault((verdict.pairs, size[1] * platform.reward(names, pay_of(study)) / 100), []).append(verdict)
    return [
        VerdictPrice(
            names=tuple(
                dict.fromkeys(
                    " and ".join(display(name, pooled=False) for name in verdict.members) for verdict in group
                )
            ),
            places=tuple(dict.fromkeys(_place(verdict) for verdict in group if verdict.place)),
            verdicts=sum(len(verdict.members) for verdict in group),
            pairs=pairs,
            dollars=dollars,
        )
        for (pairs, dollars), group in alike.items()
    ]


def verdict_lines(study: Study, texts: Texts, size: tuple[int, int]) -> list[str]:
    """What is judged apart, on how many pairs each, and for how much: a line for each kind of verdict."""
    item, rows = study.called.item, verdict_prices(study, texts, size)
    number = sum(row.verdicts for row in rows)
    table = columns(
        ["Verdicts on", "in", "Number", f"{item}s each".capitalize(), "Dollars each"],
        [
            [
                some(row.names),
                some(row.places) or "all together",
                str(row.verdicts),
                str(row.pairs),
                f"{row.dollars:,.0f}",
            ]
            for row in rows
        ],
    )
    about = f"{number:,} verdicts by acceptance.scope {study.acceptance.scope}" if number > 1 else "One verdict"
    return [f"{about}, at {size[0]:,} {item}s of each {study.called.judged} and {size[1]} raters:", table]


def some(names: Sequence[str]) -> str:
    """Names, of many their number."""
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)}, from {names[0]} to {names[-1]}"


def _drawn(study: Study, counting: int) -> int:
    """How many pairs are drawn of which so many count."""
    return 2 * counting if study.raters.suggestions == "half" else counting


def _place(size: VerdictSize) -> str:
    language, *task = size.place
    return " ".join([language_name(language) if language else "one language", *task]).strip()
