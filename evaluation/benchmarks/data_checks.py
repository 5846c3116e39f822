"""Checks of a task's content: its gold, its texts, and mteb's descriptive statistics of it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.benchmarks.contents import (
    ROWS,
    TRAIN,
    ContentPart,
    Contents,
    Finding,
    found,
    rows_of,
    together,
    undefined,
)
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError, StudyError
from plumbline.reading import read_json
from plumbline.study.datasets import SEARCHES, TRAINED
from plumbline.study.evaluation import ModelSpec
from plumbline.words import count, count_words, shows

_LABELLED = (*TRAINED, "clustering", "pair_classification")
_UNFOUND = {False: "mteb leaves the query out silently", True: "the query counts as 0 for every model"}
_SCORED = ("sts", "str", "summarisation")


def check_gold(contents: Contents) -> Iterator[Finding]:
    """Yield all checks of labels, scores and judgements that a task of its type can have."""
    if contents.kind in _LABELLED:
        yield labels(contents)
        yield rare_labels(contents)
    if contents.kind in _SCORED:
        yield constant_gold(contents)
    if contents.kind in (*_LABELLED, "sts", "str"):
        yield conflicts(contents)
    if contents.kind in SEARCHES:
        yield from _searches(contents)


def labels(contents: Contents) -> Finding:
    """Check the number of labels in the part with the fewest; with several levels, those of the first."""
    counts = [(len(set(_labels(contents, part))), part) for part in contents.parts if len(part.gold)]
    if not counts:
        return found("labels", 0, "no labels")
    least, part = min(counts, key=lambda count: count[0])
    text = f"{count(least, 'label')} in split {part.split}{_subset(part)}"
    if not least:
        return found("labels", 0, text)
    most, number = Counter(_labels(contents, part)).most_common(1)[0]
    return found("labels", least, f"{text}; the most frequent, {most}, has {number / len(part.items):.0%} of the items")


def rare_labels(contents: Contents) -> Finding:
    """Check for scored labels that models cannot learn or show: with one item, or none in training."""
    rows, rare = [], 0
    trained = {
        part.subset: set(_labels(contents, part)) for part in contents.parts if part.split == TRAIN and len(part.gold)
    }
    for part in contents.with_gold:
        counts = Counter(_labels(contents, part))
        why = {label: "the only item of its label" for label, number in counts.items() if number == 1}
        if part.subset in trained:
            unseen = counts.keys() - trained[part.subset]
            why |= dict.fromkeys(unseen, "its label is not in the train split")
        rare += len(why)
        of_gold = [{str(label) for label in _several(contents, gold)} & why.keys() for gold in part.gold] if why else []
        places = [index for index, some in enumerate(of_gold) if some]
        rows.append(rows_of(part, places, [f"{min(of_gold[index])}: {why[min(of_gold[index])]}" for index in places]))
    return found("rare_labels", rare, count(rare, "label") if rare else "none", together(rows))


def constant_gold(contents: Contents) -> Finding:
    """Check the number of distinct gold scores in the part with the fewest."""
    counts = [(len({float(gold) for gold in part.gold}), part) for part in contents.with_gold]
    least, part = min(counts, key=lambda count: count[0])
    return found("constant_gold", least, f"{count(least, 'distinct score')} for {part.what}{_subset(part)}")


def conflicts(contents: Contents) -> Finding:
    """Check for items whose texts, ignoring case, have a different gold in any split of the same subset.

    mteb's cleaning removes them (`filter_unclear_label`).
    """
    seen: dict[tuple[str, tuple[str, ...]], set[Any]] = defaultdict(set)
    parts = [part for part in contents.parts if len(part.gold)]
    keys = {id(part): [(part.subset, tuple(text.strip().lower() for text in row)) for row in part.texts]
            for part in parts}  # fmt: skip
    for part in parts:
        for key, gold in zip(keys[id(part)], part.gold, strict=True):
            seen[key].add(_plain(gold))
    number, rows = 0, []
    for part in parts:
        places = [index for index, key in enumerate(keys[id(part)]) if len(seen[key]) > 1]
        number += len(places)
        repeated = ["; ".join(sorted(map(str, seen[keys[id(part)][index]]))) for index in places]
        rows.append(rows_of(part, places, repeated))
    size = sum(len(part.items) for part in parts)
    return found("conflicts", number / max(1, size), f"{number:,} of {size:,} items", together(rows))


def _searches(contents: Contents) -> Iterator[Finding]:
    """Check for queries without relevant passages, missing passages, and candidates that are all relevant."""
    lacking, missing, alone = list[dict[str, str]](), list[dict[str, str]](), list[dict[str, str]]()
    for search in contents.searches:
        at = {"subset": search.subset, "split": "test", "part": "queries", "text": ""}
        for query in search.queries:
            judged = search.relevant.get(query, {})
            relevant = {passage for passage, value in judged.items() if value > 0}
            if not relevant:
                lacking.append(at | {"item": query, "detail": _UNFOUND[bool(judged)]})
            for passage in sorted(judged.keys() - search.passages):
                missing.append(at | {"item": query, "detail": f"passage {passage} is not in the corpus"})
            ranked = set(search.candidates.get(query, ()))
            if ranked and ranked <= relevant:
                all_of_them = "the only candidate is" if len(ranked) == 1 else f"all {len(ranked)} candidates are"
                alone.append(at | {"item": query, "detail": f"{all_of_them} relevant"})
    size = sum(len(search.queries) for search in contents.searches)
    for check, findings in (("without_relevant", lacking), ("missing_passages", missing), ("without_others", alone)):
        frame = pd.DataFrame(findings, columns=list(ROWS))
        yield found(check, len(findings), f"{len(findings):,} found in {size:,} queries" if findings else "none", frame)


def _labels(contents: Contents, part: ContentPart) -> list[str]:
    return [str(label) for gold in part.gold for label in _several(contents, gold)]


def _several(contents: Contents, gold: Any) -> list[Any]:
    """Return an item's labels: one, or all of multilabel classification; with several levels the first."""
    if not isinstance(gold, (list, tuple)):
        return [gold]
    return list(gold) if contents.kind == "multilabel_classification" else list(gold[:1])


def _plain(gold: Any) -> Any:
    return tuple(sorted(map(str, gold))) if isinstance(gold, (list, tuple)) else gold


def _subset(part: ContentPart) -> str:
    return "" if part.subset in ("", "default") else f", subset {part.subset}"


_SHORT = 3  # characters
Key = tuple[str, ...]


def check_texts(contents: Contents) -> Iterator[Finding]:
    """Yield all checks that need only texts."""
    sizes = [(len(part.items), part) for part in contents.scored]
    least, part = min(sizes, key=lambda size: size[0])
    yield found("items", least, f"{least:,} {part.what}{_where(part)}")
    yield duplicates(contents)
    if contents.kind in TRAINED:
        yield leakage(contents)
    yield _marked(contents, "empty_texts", lambda text: not shows(text))
    yield _marked(contents, "short_texts", lambda text: len(text.strip()) <= _SHORT and shows(text))
    yield uneven_lengths(contents)


def duplicates(contents: Contents) -> Finding:
    """Check for items whose texts repeat those of an earlier item of their split, ignoring outer white space.

    mteb compares them in the same way (`mteb.data_cleaning.remove_duplicates`).
    """
    shares, rows = [], []
    for part in contents.parts:
        first: dict[Key, int] = {}
        again = [(index, at) for index, key in enumerate(_keys(part)) if (at := first.setdefault(key, index)) != index]
        shares.append((len(again) / max(1, len(part.items)), len(again), part))
        rows.append(rows_of(part, [index for index, _ in again], [f"same as item {part.items[at]}" for _, at in again]))
    share, number, part = max(shares, key=lambda share: share[:2])
    text = f"{number:,} of {len(part.items):,} {part.what}{_where(part)}" if number else "no item repeats another"
    return found("duplicates", share, text, together(rows))


def leakage(contents: Contents) -> Finding:
    """Check for scored items whose texts are in the train split of any subset, regardless of labels.

    mteb compares them in the same way (`mteb.data_cleaning.remove_train_leakage`).
    """
    train = [part for part in contents.parts if part.split == TRAIN]
    if not train:
        return undefined("leakage", "the task trains on the split that it scores")
    train_rows = {
        key: f"item {item} of the train split"
        for part in train
        for key, item in zip(_keys(part), part.items, strict=True)
    }
    number, rows = 0, []
    for part in contents.scored:
        leaked = [(index, train_rows[key]) for index, key in enumerate(_keys(part)) if key in train_rows]
        number += len(leaked)
        rows.append(rows_of(part, [index for index, _ in leaked], [f"same as {item}" for _, item in leaked]))
    size = sum(len(part.items) for part in contents.scored)
    return found("leakage", number / max(1, size), f"{number:,} of {size:,} scored items", together(rows))


def uneven_lengths(contents: Contents) -> Finding:
    """Check the longest text divided by the mean length, in characters, in the part where it is greatest."""
    worst, text, rows = 0.0, "no texts", []
    for part in contents.parts:
        lengths = np.array([sum(map(len, row)) for row in part.texts], dtype=np.float64)
        mean = float(lengths.mean()) if len(lengths) else 0.0
        if not mean:
            continue
        far = np.flatnonzero(lengths > 50 * mean)
        rows.append(rows_of(part, far.tolist(), [f"{lengths[index]:.0f} characters" for index in far]))
        if lengths.max() / mean > worst:
            worst = float(lengths.max()) / mean
            text = f"longest of {part.what}{_where(part)}: {lengths.max():,.0f} characters; their mean: {mean:,.1f}"
    return found("uneven_lengths", worst or math.nan, text, together(rows))


def _marked(contents: Contents, check: str, wrong: Callable[[str], bool]) -> Finding:
    """Return the finding on items that have a wrong text."""
    number, rows = 0, []
    for part in contents.parts:
        places = [index for index, texts in enumerate(part.texts) if any(map(wrong, texts))]
        number += len(places)
        rows.append(rows_of(part, places, [""] * len(places)))
    return found(check, number, count(number, "item") if number else "none", together(rows))


def _keys(part: ContentPart) -> Iterator[Key]:
    """Return the keys by which items are compared."""
    return (tuple(text.strip() for text in texts) for texts in part.texts)


def _where(part: ContentPart) -> str:
    """Return the split and subset of a part, as far as it has names."""
    subset = "" if part.subset in ("", "default") else f", subset {part.subset}"
    return f" (split {part.split}{subset})"


_ENOUGH = 10**6  # libraries write far larger numbers if they know no limit
ANY = sys.maxsize  # for models that read texts of any length


@dataclass(frozen=True)
class Reader:
    """A model and the number of tokens of a text that it reads, including prompts and marks at both ends.

    Without a tokenizer words are counted: a text has at least as many tokens, so no text is wrongly called too long.
    """

    model: str
    tokens: int
    tokenizer: Any = None

    @property
    def counted(self) -> str:
        """The method of counting tokens."""
        return "its own tokenizer" if self.tokenizer is not None else "words; there may be more tokens"

    def cut(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return which texts it does not read to the end."""
        cuts = np.zeros(len(texts), np.bool_)
        # A text has at most as many tokens as bytes, plus two marks.
        long_texts = [index for index, text in enumerate(texts) if 4 * len(text) + 2 > self.tokens]
        if self.tokenizer is None:
            cuts[long_texts] = [count_words(texts[index]) > self.tokens for index in long_texts]
        else:
            long_texts = [index for index in long_texts if len(texts[index].encode()) + 2 > self.tokens]
            encodings = self.tokenizer.encode_batch_fast([texts[index] for index in long_texts])
            cuts[long_texts] = [len(encoding.ids) > self.tokens for encoding in encodings]
        return cuts


def too_long(contents: Contents, readers: Sequence[Reader]) -> Finding:
    """Check the share of texts that are too long for the model that cuts most of them."""
    if not readers:
        return undefined("long_texts", "the token limits of the study's models are unknown")
    texts = [text for part in contents.parts for row in part.texts for text in row]
    counts = [(reader.cut(texts), reader) for reader in readers]
    cut, reader = max(counts, key=lambda count: (int(count[0].sum()), -count[1].tokens))
    number, rows, start = int(cut.sum()), [], 0
    for part in contents.parts:
        width = len(part.texts[0]) if part.texts else 1
        of_part = cut[start : start + len(part.items) * width].reshape(-1, width).any(axis=1)
        start += len(part.items) * width
        places = np.flatnonzero(of_part).tolist()
        rows.append(rows_of(part, places, [f"{reader.model} reads only {reader.tokens} tokens"] * len(places)))
    if reader.tokens == ANY:
        return found("long_texts", 0, "the study's models read texts of any length")
    summary = (
        f"{number:,} of {len(texts):,} texts have more than the {reader.tokens:,} tokens that {reader.model} reads"
    )
    return found("long_texts", number / max(1, len(texts)), f"{summary} (counted by {reader.counted})", together(rows))


def readers_of(specs: Sequence[ModelSpec], base: Path) -> Iterator[Reader]:
    """Yield the models whose token limit is known without loading them: from files, or mteb's registry."""
    for spec in specs:
        if spec.kind == "sentence_transformers":
            tokens, tokenizer = _of_files(spec, base)
        elif spec.kind == "mteb":
            tokens, tokenizer = _registered(spec), None
        elif spec.kind == "openai":
            continue
        else:  # these models have no limit
            tokens, tokenizer = ANY, None
        if tokens:
            yield Reader(spec.name, int(tokens), tokenizer)


def _of_files(spec: ModelSpec, base: Path) -> tuple[int | None, Any]:
    """Return the token limit and tokenizer in sentence-transformers' files, of the first module."""
    from tokenizers import Tokenizer  # noqa: PLC0415 (comes with transformers)

    modules = _json(spec, base, "modules.json")
    inside = str(modules[0].get("path") or "") if isinstance(modules, list) and modules else ""
    inside = f"{inside}/" if inside else ""
    config = _json(spec, base, f"{inside}sentence_bert_config.json") or {}
    tokens = config.get("max_seq_length") or (_json(spec, base, f"{inside}tokenizer_config.json") or {}).get(
        "model_max_length"
    )
    path = _file(spec, base, f"{inside}tokenizer.json")
    tokenizer = None
    if path is not None:
        with contextlib.suppress(Exception):  # it raises bare exceptions for unreadable files
            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_truncation()
            tokenizer.no_padding()
    return (int(tokens) if isinstance(tokens, (int, float)) and tokens < _ENOUGH else None), tokenizer


def _json(spec: ModelSpec, base: Path, name: str) -> Any:
    path = _file(spec, base, name)
    if path is None:
        return None
    try:
        return read_json(path)
    except DataError:
        return None


def _file(spec: ModelSpec, base: Path, name: str) -> Path | None:
    """Return a model's file, in its folder or in the hub's cache on this machine, or None."""
    if not spec.from_hub:
        try:
            path = Path(spec.location(base)) / name
        except StudyError:
            return None
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

    cached = try_to_load_from_cache(spec.name, name, revision=spec.revision or None)
    return Path(cached) if isinstance(cached, str) else None


def _registered(spec: ModelSpec) -> int | None:
    from mteb.models.model_implementations import MODEL_REGISTRY  # noqa: PLC0415 (takes seconds)

    meta = MODEL_REGISTRY.get(spec.name)
    tokens = meta.max_tokens if meta is not None else None
    return int(tokens) if tokens and 0 < tokens < _ENOUGH else None


@contextlib.contextmanager
def hidden_bars(module: str) -> Iterator[None]:
    """Hide the progress bars of a module of mteb: commands have their own."""
    shown: Any = importlib.import_module(module)
    bar = shown.tqdm
    shown.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        shown.tqdm = bar


Statistics = dict[str, dict[str, Any]]


def statistics_of(contents: Contents) -> Statistics:
    """Return mteb's descriptive statistics by subset and split (mteb's names).

    Parts without items, or with one labelled pair, have none. mteb's public `calculate_descriptive_statistics` returns
    published statistics if there are any, and otherwise writes into the installed package; so this computes each
    split's.
    """
    from generation.datasets.mteb_loading import quiet  # noqa: PLC0415

    statistics: Statistics = {}
    least = 2 if contents.kind == "pair_classification" else 1  # mteb reads one pair as a list of pairs
    with quiet(), hidden_bars("mteb._content_hashes"):
        for subset in contents.task.dataset:
            for ours, name in contents.splits.items():
                parts = [part for part in contents.parts if (part.subset, part.split) == (subset, ours)]
                if all(len(part.items) >= least for part in parts):
                    whole = contents.task._calculate_descriptive_statistics_from_split(name, hf_subset=subset)
                    statistics.setdefault(subset, {})[name] = dict(whole)
    return statistics


def check_statistics(dataset: Dataset, contents: Contents, statistics: Statistics) -> Finding | None:
    """Check that the data are as large as mteb published; None for tasks that mteb lacks.

    Only numbers of items are compared, as transformed texts have other lengths.
    """
    if not isinstance(dataset, MtebTask):
        return None
    published = contents.task.metadata.descriptive_stats or {}
    far, text, known_splits = 0.0, "", 0
    for subset, splits in statistics.items():
        for name, parts in splits.items():
            whole = published.get(name) or {}
            part = (whole.get("hf_subset_descriptive_stats") or {}).get(subset)
            theirs = part or (whole if list(statistics) == ["default"] else {})
            if "num_samples" not in theirs:
                continue
            known_splits += 1
            away = abs(parts["num_samples"] / theirs["num_samples"] - 1) if theirs["num_samples"] else math.inf
            if away > far:
                far = away
                text = f"{parts['num_samples']:,} samples; mteb published {theirs['num_samples']:,} (split {name})"
    if not known_splits:
        return undefined("statistics", "mteb has published no statistics of these splits")
    return found("statistics", far, text or "as many samples as mteb published")
