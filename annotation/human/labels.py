"""Labels that people choose among: what stands on their buttons, and what nobody could tell apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.human.asking import NONE
from generation.datasets.dataset import Dataset
from generation.datasets.scored import Scored, all_labels, label_words
from plumbline.errors import StudyError
from plumbline.study.human import CANNOT_TELL, HumanTaskSpec
from plumbline.words import trim

NAMED = ("classification", "multilabel_classification")  # types whose labels have words
MOST_LABELS = 499  # that Argilla takes, beside the one of those who cannot tell
LONGEST = 500  # characters on a button, that Argilla takes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def labels_of(
    spec: HumanTaskSpec, dataset: Dataset, general: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """All labels of the data set, in order, and the words of those that are no words themselves.

    `general` has the words of the answers beside them. Raises StudyError for what Argilla does not show, for numbers
    without words, and for what people could not tell apart.
    """
    labels = order_of(sorted(all_labels(dataset)))
    where, several = f"human.tasks: {spec.name!r}", dataset.task == "multilabel_classification"
    if len(labels) < 2:
        raise StudyError(f"{where}: its data have the label {', '.join(labels) or 'none'} alone; take the task out")
    most = MOST_LABELS - several  # which has a button for none of them
    if len(labels) > most:
        raise StudyError(
            f"{where}: {len(labels)} labels are more than the {most} that Argilla shows; take the task out, or"
            " ask on a data set of fewer"
        )
    if strange := [label for label in spec.labels if label not in labels]:
        raise StudyError(f"{where}: no label {strange[0]!r}; its labels are {', '.join(labels[:20])}")
    words = {label: said for label, said in {**label_words(dataset), **spec.labels}.items() if label in labels}
    if bare := [label for label in labels if is_number(label) and label not in words]:
        raise StudyError(
            f"{where}: the label {bare[0]!r} is a number, which says nothing to people; write their words, such as"
            f" labels: {{{bare[0]!r}: complaint}}"
        )
    said = {label: words.get(label, label) for label in labels}
    _refuse_alike(where, said, [CANNOT_TELL, *([NONE] if several else [])], general)
    return labels, {label: one for label, one in said.items() if one != label}


def _refuse_alike(where: str, said: Mapping[str, str], beside: Sequence[str], general: Mapping[str, Any]) -> None:
    """Raise StudyError for words that are too long, or the same as other labels' or as those of an answer beside."""
    taken = {_read(words): f"the answer {words!r}" for name in beside for words in _wordings(general[name])}
    for label, words in said.items():
        if len(words) > LONGEST:
            raise StudyError(
                f"{where}: the label {label[:40]!r}... has {len(words)} characters, and a button takes {LONGEST}; write"
                " shorter words under `labels`"
            )
        first = taken.setdefault(_read(words), f"the label {label!r}")
        if first != f"the label {label!r}":
            raise StudyError(
                f"{where}: raters cannot tell {first} and the label {label!r} apart; write other words for it, such as"
                f" labels: {{{label!r}: ...}}"
            )


def _wordings(words: Any) -> Iterator[str]:
    yield from words.values() if isinstance(words, Mapping) else ()


def _read(words: str) -> str:
    return " ".join(trim(words).casefold().split())


def refuse_one_label(spec: HumanTaskSpec, found: Sequence[Scored]) -> None:
    """Raise StudyError where all drawn items have the same labels: there is nothing to tell apart."""
    labels = {frozenset(one.labels) for one in found}
    if len(labels) < 2:
        only = ", ".join(sorted(next(iter(labels)))) or "none of them"
        raise StudyError(
            f"human.tasks: {spec.name!r}: all {len(found)} drawn items have the label {only!r}, so that nothing can be"
            " told apart; write `balance: label`, or more items"
        )


def order_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels in the order in which they are shown: numbers by size, others by their letters."""
    if all(is_number(one) for one in labels):
        return tuple(sorted(labels, key=lambda one: (float(one), one)))
    return tuple(sorted(labels, key=str.casefold))


def is_number(label: str) -> bool:
    """Whether a label is a number and nothing else, such as 3, -1 or 0.5."""
    return bool(_NUMBER.fullmatch(label.strip()))
