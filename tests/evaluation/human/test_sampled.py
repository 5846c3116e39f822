"""A model's score on a sampled task is mteb's own on a data set of the same items and candidates, made by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from evaluation.human.models import score
from evaluation.human.sampled import ABSENT, NO_ORDER, NOTHING_TO_FIND, SampledDataset, by_unit, gold_of, sampled
from evaluation.models.encoder import Encoder
from evaluation.tasks import scoring
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import passage_names
from generation.datasets.scored import scored_items
from tests.evaluation.conftest import FakeModel, sentence, vectors
from tests.evaluation.human.sampling import items_of, task_of
from tests.evaluation.tasks.same_rows import score_of
from tests.mteb_site import CANDIDATES, EMOTIONS, PAIRS, REQUESTS, SETS, SIDES, SUMMARIES, site


def _encoder() -> Encoder:
    return Encoder(FakeModel(), "fake", "1")


def _one(
    dataset: Dataset, names: Sequence[str], subset: str = "", candidates: Mapping[str, Sequence[str]] | None = None
) -> SampledDataset:
    (one,) = sampled(dataset, task_of(dataset), items_of(names, subset, candidates))
    return one


def assert_agrees(one: SampledDataset, expected: float) -> None:
    found = score(one, _encoder(), "paper", 8)
    assert not math.isnan(expected)
    assert found.score == pytest.approx(expected, abs=1e-9)
    assert found.items.reason == ""
    (part,) = found.items.parts
    assert len(part.predictions) == len(one.units)
    assert found.items.measure is not None
    assert part.score(found.items.measure) == pytest.approx(expected, abs=1e-4)


ROWS = [7, 2, 11, 4]


def test_pairs() -> None:
    table = TableDataset("own", "sts", "en", "1", {"test": pd.DataFrame(PAIRS)})
    expected = score_of("sts", [PAIRS[row] for row in ROWS])
    names = list(map(str, ROWS))
    for dataset in (table, site().tasks["STSBenchmark"]):
        assert_agrees(_one(dataset, names), expected)
    assert_agrees(_one(site().tasks["STS17"], [f"en-de/{name}" for name in names], "en-de"), expected)
    gold = gold_of(_one(site().tasks["STS17"], [f"en-de/{name}" for name in names], "en-de"))
    assert list(gold["value"]) == [1.0, 2.0, 5.0, 4.0]  # number % 6
    assert list(gold["item"]) == ["en-de/7", "en-de/2", "en-de/11", "en-de/4"]
    rows = [
        {"sentence1": "how is c", "sentence2": "why c", "label": 1},
        {"sentence1": "how is b", "sentence2": "why b", "label": 0},
    ]
    assert_agrees(_one(site().tasks["SprintDuplicateQuestions"], ["2", "1"]), score_of("pair_classification", rows))


def test_classification_keeps_its_train_split() -> None:
    one = _one(site().tasks["Banking77Classification"], ["4", "0", "3"])
    assert_agrees(one, score_of("classification", [REQUESTS[12 + row] for row in (4, 0, 3)], REQUESTS[:12]))
    assert list(gold_of(one)["label"]) == ["1", "0", "0"]  # rows 16, 12 and 15, of labels number % 3


def test_several_labels() -> None:
    one = _one(site().tasks["CEDRClassification"], ["5", "1", "2", "6"])
    rows = [EMOTIONS[16 + row] for row in (5, 1, 2, 6)]
    assert_agrees(one, score_of("multilabel_classification", rows, EMOTIONS[:16]))
    assert gold_of(one)["label"].iloc[0] == '["1", "2"]'  # row 21: 21 % 2 and 2 + 21 % 3


def test_clusters_are_of_all_items_at_once() -> None:
    one = _one(
        site().tasks["BiorxivClusteringS2S"], ["1/sentences/3", "1/sentences/0", "0/sentences/2", "0/sentences/5"]
    )
    texts = [SETS[1]["sentences"][3], SETS[1]["sentences"][0], SETS[0]["sentences"][2], SETS[0]["sentences"][5]]
    assert_agrees(one, score_of("clustering", {"text": texts, "label": ["1", "0", "0", "1"]}))
    assert list(gold_of(one)["label"]) == ["1", "0", "0", "1"]
    words = [sentence(n) for n in range(12)]
    table = TableDataset(
        "own", "clustering", "en", "1", {"test": pd.DataFrame({"text": words, "label": [n % 3 for n in range(12)]})}
    )
    chosen = [10, 3, 8, 2, 5, 0]
    expected = score_of("clustering", {"text": [words[n] for n in chosen], "label": [n % 3 for n in chosen]})
    assert_agrees(_one(table, list(map(str, chosen))), expected)


def test_of_levels_of_labels_the_first_is_sought() -> None:
    whole = site().tasks["PlscClusteringS2S.v2"]
    ((subset, parts),) = whole.loaded.task.dataset.items()
    part = parts["test"]
    levels = [[f"l{row % 2}", f"m{row % 4}"] for row in range(len(part))]
    made = part.remove_columns("labels").add_column("labels", levels)
    deep = dataclasses.replace(whole, loaded=whole.loaded.with_data({subset: type(parts)({"test": made})}))
    rows = [9, 2, 30, 5, 4, 17]
    one = _one(deep, list(map(str, rows)))
    texts = [part["sentences"][row] for row in rows]
    assert_agrees(one, score_of("clustering", {"text": texts, "label": [f"l{row % 2}" for row in rows]}))
    assert list(gold_of(one)["label"]) == [f"l{row % 2}" for row in rows]
    assert {label for item in scored_items(deep) for label in item.labels} == {"l0", "l1"}


def _asked() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "query": [sentence(n) for n in range(4)],
            "positive": [[sentence(n + 10), sentence(n + 20)] for n in range(4)],
            "negative": [[sentence(n + 30), sentence(n + 40), sentence(n + 50)] for n in range(4)],
        }
    )


def test_reranking_ranks_the_candidates_that_people_saw() -> None:
    frame = _asked()
    names = {str(n): passage_names(f"q{n}", [*frame["positive"][n], *frame["negative"][n]]) for n in range(4)}
    shown = {"3": [names["3"][n] for n in (0, 2, 4)], "1": [names["1"][n] for n in (1, 3, 2)], "2": names["2"][2:]}
    one = _one(TableDataset("own", "reranking", "en", "1", {"test": frame}), ["3", "2", "1"], candidates=shown)
    rows = [
        {"query": frame["query"][3], "positive": frame["positive"][3][:1], "negative": frame["negative"][3][::2]},
        {"query": frame["query"][1], "positive": frame["positive"][1][1:], "negative": frame["negative"][1][:2]},
    ]
    assert_agrees(one, score_of("reranking", rows))
    assert (one.items, one.left_out) == (("3", "1"), {NOTHING_TO_FIND: 1})
    gold = gold_of(one)
    right = dict(zip(gold["candidate"], gold["value"], strict=True))
    assert right == dict(zip([*shown["3"], *shown["1"]], [1, 0, 0, 1, 0, 0], strict=True))


def test_retrieval_ranks_the_candidates_that_people_saw() -> None:
    frame = _asked()
    corpus = {f"d{n}": sentence(n + 10) for n in range(9)}
    qrels = {"a": {"d1": 2, "d2": 1}, "b": {"d3": 1}, "c": {"d4": 1}}
    queries = pd.DataFrame({"id": ["a", "b", "c"], "query": list(frame["query"][:3])})
    whole = TableDataset("own", "retrieval", "en", "1", {"test": queries}, corpus, qrels)
    shown = {"c": ["d8", "d4", "d0"], "a": ["d1", "d2", "d7", "d6"]}
    one = _one(whole, ["c", "a"], candidates=shown)
    judged = {query: {name: qrels[query].get(name, 0) for name in own} for query, own in shown.items()}
    expected = score_of(
        "retrieval", queries.iloc[[2, 0]].reset_index(drop=True), corpus=corpus, qrels=judged, candidates=shown
    )
    assert_agrees(one, expected)
    assert score(one, _encoder(), "paper", 8).score != pytest.approx(
        scoring.evaluate(whole, _encoder(), "paper", 8), abs=1e-3
    )
    found = {name: _gain(frame["query"][row], shown[name], corpus, qrels[name]) for row, name in ((2, "c"), (0, "a"))}
    assert expected == pytest.approx(np.mean(list(found.values())), abs=1e-5)
    assert score(one, _encoder(), "paper", 8).items.parts[0].predictions == pytest.approx(
        [found["c"], found["a"]], abs=1e-5
    )


def _gain(query: str, shown: Sequence[str], corpus: Mapping[str, str], judged: Mapping[str, int]) -> float:
    """NDCG of the candidates in the order of their cosines."""
    made = vectors([query, *(corpus[name] for name in shown)]).astype(float)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    gains = np.array([judged.get(name, 0) for name in shown])
    weights = 1 / np.log2(np.arange(2, len(shown) + 2))
    return float(gains[np.argsort(-(made[1:] @ made[0]))] @ weights / (np.sort(gains)[::-1] @ weights))


def test_searches_of_mteb() -> None:
    one = _one(
        site().tasks["AskUbuntuDupQuestions"],
        ["q2", "q0"],
        candidates={
            query: passage_names(query, [*CANDIDATES[row]["positive"], *CANDIDATES[row]["negative"]])[1:]
            for query, row in (("q2", 2), ("q0", 0))
        },
    )
    rows = [{**CANDIDATES[row], "positive": CANDIDATES[row]["positive"][1:]} for row in (2, 0)]
    assert_agrees(one, score_of("reranking", rows))
    shown = {"q1": ["d5", "d1", "d0"], "q3": ["d2", "d3"]}
    one = _one(site().tasks["ArguAna"], ["q3", "q1"], candidates=shown)
    corpus = {f"d{n}": f"T{n} passage {n}" if n % 2 else f"passage {n}" for n in range(6)}
    qrels = {query: {name: int(name[1] == query[1]) for name in own} for query, own in shown.items()}
    queries = pd.DataFrame({"id": ["q3", "q1"], "query": ["asked 3", "asked 1"]})
    assert_agrees(one, score_of("retrieval", queries, corpus=corpus, qrels=qrels, candidates=shown))


def test_summaries_of_a_text_are_ranked() -> None:
    places = ((2, 2), (0, 1), (2, 0), (0, 0), (1, 1), (1, 0), (2, 1), (0, 2))
    names = [f"{row}/machine_summaries/{place}" for row, place in places]
    one = _one(site().tasks["SummEval"], names)
    rows = [
        {
            "human_summaries": SUMMARIES[row]["human_summaries"],
            "machine_summaries": [SUMMARIES[row]["machine_summaries"][place] for place in own],
            "relevance": [SUMMARIES[row]["relevance"][place] for place in own],
        }
        for row, own in ((2, (2, 0, 1)), (0, (1, 0, 2)))
    ]
    assert_agrees(one, score_of("summarisation", rows))
    assert (one.units, one.left_out) == (("2", "0"), {NO_ORDER: 1})
    gold = gold_of(one)
    assert list(gold["candidate"]) == [names[n] for n in (0, 2, 6, 1, 3, 7)]
    assert list(gold["value"]) == [4.0, 1.0, 2.5, 2.5, 1.0, 4.0]
    answers = pd.DataFrame({"task": "mine", "item": [names[4], names[6]], "candidate": "", "value": [1.0, 2.0]})
    assert by_unit(one, answers)[["item", "candidate", "value"]].to_numpy().tolist() == [["2", names[6], 2.0]]


def test_bitext_is_matched_among_candidates() -> None:
    sides = pd.DataFrame(
        {"sentence1": [sentence(n) for n in range(8)], "sentence2": [sentence(n + 1) for n in range(8)]}
    )
    table = TableDataset("own", "bitext_mining", "de-en", "1", {"test": sides})
    rows = [str(row) for row in range(8)]
    among_all = _one(table, rows, candidates=dict.fromkeys(rows, rows))
    ((measures,),) = scoring.evaluate_task(table, _encoder(), "paper", 8).scores.values()
    assert score(among_all, _encoder(), "paper", 8).score == measures["accuracy"] < 1
    whole = site().tasks["BUCC.v2"]
    shown = {
        "de-en/3": ["de-en/3", "de-en/1"],
        "de-en/0": ["de-en/5", "de-en/0", "de-en/2"],
        "de-en/5": ["de-en/4", "de-en/5"],
        "de-en/1": ["de-en/2", "de-en/3"],
    }
    one = _one(whole, list(shown), "de-en", candidates=shown)
    right = []
    for name, candidates in list(shown.items())[:3]:
        texts = [SIDES[int(name[-1])]["sentence1"], *(SIDES[int(other[-1])]["sentence2"] for other in candidates)]
        made = vectors(texts).astype(float)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        right.append(float(candidates[int(np.argmax(made[1:] @ made[0]))] == name))
    found = score(one, _encoder(), "paper", 8)
    assert list(found.items.parts[0].predictions) == right
    assert found.score == pytest.approx(float(np.mean(right)))
    assert one.left_out == {ABSENT: 1}
    assert list(gold_of(one)["label"]) == ["de-en/3", "de-en/0", "de-en/5"]


def test_a_data_set_has_a_sample_for_each_language() -> None:
    first = items_of(["0", "1", "2"])
    others = [one.model_copy(update={"language": "de", "item": str(3 + row)}) for row, one in enumerate(first)]
    table = TableDataset("own", "sts", "en", "1", {"test": pd.DataFrame(PAIRS)})
    both = sampled(table, task_of(table), [first[0], others[0], *first[1:], *others[1:]])
    assert [(one.language, one.items) for one in both] == [("en", ("0", "1", "2")), ("de", ("3", "4", "5"))]
    assert both[1].name == "mine (de)"
