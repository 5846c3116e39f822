"""What a run would encode, and for how long by what earlier runs measured: `python -m evaluation.run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.records import SCORES, EvaluationRecords, earlier
from evaluation.units import Model, ScoreUnit
from plumbline import cli
from plumbline.rates import in_words, read_rates
from plumbline.records import Score


def forecast(records: EvaluationRecords, units: Sequence[ScoreUnit], chosen: Iterable[Model]) -> str:
    """A table of what is left, a row for each model: scores, distinct texts that they need, characters of these.

    What a model encodes differs a little: what it has encoded already is not encoded again, and a text is encoded once
    for each prompt that it stands under. Below stands how long that takes by the rates of earlier runs; nothing is
    assumed of models without one.
    """
    study, scored = records.study, {row.unit_id for row in earlier(records, SCORES)}
    scored |= {str(row["unit_id"]) for _, row in records.new_scores.lines(Score)}
    sizes: dict[tuple[int, ...], tuple[int, int]] = {}  # most models lack the same units
    rows, texts_left = [], {}
    for model in chosen:
        lacking = [
            index
            for index, unit in enumerate(units)
            if unit.decision.status != "left_out" and unit.unit_id(study.evaluation.protocol, model) not in scored
        ]
        if tuple(lacking) not in sizes:
            sizes[tuple(lacking)] = _sizes([units[index] for index in lacking])
        texts, characters = sizes[tuple(lacking)]
        rows.append([model.name, *(f"{number:,}" for number in (len(lacking), texts, characters))])
        if characters:
            texts_left[model.name] = model.model_id, characters
    table = cli.columns(["model", "scores left", "texts, about", "characters"], rows)
    rates = [rate for rate in read_rates(study.folder) if rate.work == "encoding"]
    return f"{table}\n\n{in_words(rates, texts_left) if texts_left else 'nothing is left to do'}"


def _sizes(units: Sequence[ScoreUnit]) -> tuple[int, int]:
    """Distinct texts that units need, passages that are searched among them, and how many characters these have."""
    hashes = np.empty((0, 2), np.int64)
    for unit in units:
        data = unit.data()
        texts = [text.text for text in data.texts()]
        texts += [text for passages in data.passages_of() for text in (*passages.relevant, *passages.others)]
        hashes = _distinct(np.concatenate([hashes, _hashed(texts)]))
    return len(hashes), int(hashes[:, 1].sum())


def _hashed(texts: Iterable[str]) -> NDArray[np.int64]:
    """A hash and the length of each distinct text."""
    return np.array([(hash(text), len(text)) for text in set(texts)], np.int64).reshape(-1, 2)


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return numbers[np.unique(numbers[:, 0], return_index=True)[1]]
