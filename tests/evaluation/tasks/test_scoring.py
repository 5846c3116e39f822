"""Each task's score by mteb equals a direct computation on the same embeddings."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mteb.models.search_wrappers import SearchEncoderWrapper
from scipy.stats import spearmanr
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, v_measure_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from evaluation.models.encoder import Encoder
from evaluation.tasks import scoring
from evaluation.texts import Outputs, transformed
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from plumbline.errors import DataError
from plumbline.records import text_id
from tests.evaluation.conftest import FakeModel, cosine, sentence, vectors


def _score(dataset: Dataset, protocol: scoring.Protocol = "paper") -> float:
    return scoring.evaluate(dataset, Encoder(FakeModel(), "fake", "1"), protocol, 8)


@pytest.fixture
def pairs() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    first = [sentence(i) for i in range(30)]
    second = [text.rsplit(" ", 2)[0] if i % 3 else sentence(i + 90) for i, text in enumerate(first)]
    label = [int(rng.random() < (0.8 if i % 3 else 0.2)) for i in range(30)]
    return pd.DataFrame({"sentence1": first, "sentence2": second, "score": rng.uniform(0, 5, 30), "label": label})


@pytest.fixture
def sts(pairs: pd.DataFrame) -> TableDataset:
    return TableDataset("pairs", "sts", "en", "1", {"test": pairs.drop(columns="label")})


@pytest.fixture
def classification() -> TableDataset:
    rng = np.random.default_rng(2)
    names = ["zebra", "apple", "mango"]
    labels = rng.integers(0, 3, 90)
    texts = [f"{names[label] if rng.random() < 0.7 else names[0]} {sentence(i)}" for i, label in enumerate(labels)]
    frame = pd.DataFrame({"text": texts, "label": [names[label] for label in labels]})
    return TableDataset(
        "fruit", "classification", "en", "1", {"train": frame[:60], "test": frame[60:].reset_index(drop=True)}
    )


@pytest.fixture
def clustering(classification: TableDataset) -> TableDataset:
    return TableDataset(
        "fruit", "clustering", "en", "1", {"test": pd.concat(classification.splits.values(), ignore_index=True)}
    )


def test_sts_is_spearman_of_thecosine(sts: TableDataset) -> None:
    frame = sts.splits["test"]
    expected = spearmanr(frame["score"], list(map(cosine, frame["sentence1"], frame["sentence2"]))).statistic
    assert _score(sts) == pytest.approx(expected, abs=1e-9)


def test_pair_classification_is_average_precision_of_thecosine(pairs: pd.DataFrame) -> None:
    cosines = list(map(cosine, pairs["sentence1"], pairs["sentence2"]))
    expected = average_precision_score(pairs["label"], cosines)
    dataset = TableDataset("pairs", "pair_classification", "en", "1", {"test": pairs.drop(columns="score")})
    assert _score(dataset) == pytest.approx(expected, abs=1e-9)


def test_classification_is_logistic_regression_on_the_full_train_split(classification: TableDataset) -> None:
    train, test = classification.splits["train"], classification.splits["test"]
    # mteb shuffles the training rows with its seed before it trains; the order moves the last digits of the solver.
    order = list(range(len(train)))
    np.random.RandomState(42).shuffle(order)
    model = LogisticRegression(max_iter=100, random_state=42)
    model.fit(vectors(train["text"].iloc[order]), train["label"].iloc[order])
    expected = float((model.predict(vectors(test["text"])) == test["label"]).mean())
    assert 0.4 < expected < 1
    assert _score(classification) == expected


def test_protocol_of_mteb_trains_on_eight_a_label(classification: TableDataset) -> None:
    task = scoring.make_task(classification, "mteb")
    assert (task.samples_per_label, task.n_experiments) == (8, 10)
    assert _score(classification, "mteb") != _score(classification)


def test_clustering_is_v_measure_of_kmeans_over_all_rows(clustering: TableDataset) -> None:
    frame = clustering.splits["test"]
    labels = pd.factorize(frame["label"], sort=True)[0]
    kmeans = MiniBatchKMeans(n_clusters=3, batch_size=500, n_init="auto", random_state=42)
    expected = v_measure_score(labels, kmeans.fit(vectors(frame["text"])).labels_)
    assert 0 < expected < 1
    assert _score(clustering) == pytest.approx(expected, abs=1e-12)
    assert _score(clustering) == _score(clustering)


def test_clustering_by_mteb_refuses_a_sample_smaller_than_the_labels(clustering: TableDataset) -> None:
    # 4% of 90 rows are 3.6, so 3 rows: as many as labels, which k-means can do. Of 60 rows they are 2.
    fewer = TableDataset("fruit", "clustering", "en", "1", {"test": clustering.splits["test"][:60]})
    assert scoring.unusable(clustering, "mteb") == ""
    assert "here 2 of 60" in scoring.unusable(fewer, "mteb")
    assert scoring.unusable(fewer, "paper") == ""


def test_reranking_is_mean_average_precision() -> None:
    rows = pd.DataFrame(
        {
            "query": ["red cat runs", "blue dog eats"],
            "positive": [["red cat runs fast", "slow bird"], ["blue dog eats today"]],
            "negative": [["cat runs here", "green there"], ["dog eats", "blue dog eats"]],
        }
    )
    dataset = TableDataset("ranks", "reranking", "en", "1", {"test": rows})
    precisions = []
    for row in rows.to_dict(orient="records"):
        judged = [(text, 1) for text in row["positive"]] + [(text, 0) for text in row["negative"]]
        ranked = sorted(judged, key=lambda pair: -cosine(row["query"], pair[0]))
        # Average precision: at each relevant rank the share of relevant ones so far, averaged over the relevant ones.
        places = [rank for rank, (_, relevant) in enumerate(ranked, 1) if relevant]
        precisions.append(np.mean([found / rank for found, rank in enumerate(places, 1)]))
    assert precisions[1] == 1 / 2  # the query's own text is a negative and stands first, the positive second
    assert _score(dataset) == pytest.approx(np.mean(precisions), abs=5e-6)  # mteb rounds rankings to 5 places


def test_retrieval_is_ndcg_at_ten() -> None:
    corpus = {f"d{i}": sentence(i, 3) for i in range(40)}
    queries = pd.DataFrame({"id": ["a", "b"], "query": [corpus["d3"] + " cat", "blue dog"]})
    qrels = {"a": {"d3": 1, "d17": 2, "d30": 1}, "b": {"d5": 1}}
    dataset = TableDataset("search", "retrieval", "en", "1", {"test": queries}, corpus, qrels)
    values = []
    for query, text in zip(queries["id"], queries["query"], strict=True):
        ranked = sorted(corpus, key=lambda passage: -cosine(text, corpus[passage]))[:10]
        # DCG: relevance / log2(rank + 1), summed over the first ten; divided by the best order's.
        gain = sum(qrels[query].get(passage, 0) / math.log2(rank + 1) for rank, passage in enumerate(ranked, 1))
        best = sorted(qrels[query].values(), reverse=True)
        ideal = sum(relevance / math.log2(rank + 1) for rank, relevance in enumerate(best, 1))
        values.append(gain / ideal)
    assert 0 < np.mean(values) < 1
    assert _score(dataset) == pytest.approx(np.mean(values), abs=5e-6)


@pytest.mark.parametrize("protocol", ["paper", "mteb"])
def test_a_query_that_the_corpus_holds_is_not_its_own_result(protocol: scoring.Protocol) -> None:
    """BEIR's rule, as for Quora; a passage of another id with the query's text is a result."""
    corpus = {"a": "blue dog", "d1": "blue dog runs", "d2": "red cat", "b": "red cat here"}
    queries = pd.DataFrame({"id": ["a", "b"], "query": ["blue dog", "red cat here"]})
    dataset = TableDataset("quora", "retrieval", "en", "1", {"test": queries}, corpus, {"a": {"d1": 1}, "b": {"d2": 1}})
    assert scoring.evaluate(dataset, Encoder(FakeModel(), "fake", "1"), protocol, 8) == 1


def test_passages_are_ranked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """mteb ranks so many passages at a time; the best of all parts are those of the whole."""
    widths: list[int] = []

    class Watched(FakeModel):
        def similarity(self, first: Any, second: Any) -> Any:
            widths.append(len(second))
            return super().similarity(first, second)

    corpus = {f"d{i}": sentence(i, 3) for i in range(40)}
    queries = pd.DataFrame({"id": ["a", "b"], "query": ["red cat runs", "blue dog"]})
    dataset = TableDataset("parts", "retrieval", "en", "1", {"test": queries}, corpus, {"a": {"d3": 1}, "b": {"d5": 1}})
    whole = _score(dataset)
    assert inspect.signature(SearchEncoderWrapper).parameters["corpus_chunk_size"].default == 50_000
    monkeypatch.setattr("evaluation.tasks.mteb_classes.PASSAGES", 7)
    assert scoring.evaluate(dataset, Encoder(Watched(), "fake", "1"), "paper", 8) == whole > 0
    assert widths == [7, 7, 7, 7, 7, 5]


def _summaries(number: int) -> dict[str, list[object]]:
    return {
        "human_summaries": [sentence(number), sentence(number + 10)],
        "machine_summaries": [sentence(number, 3), sentence(number + 10, 2), sentence(number + 20)],
        "relevance": [3.0, 5.0, 1.0],
    }


def test_summarisation_is_spearman_of_the_nearest_human_summaryscosine() -> None:
    rows = [_summaries(number) for number in range(4)]
    dataset = TableDataset("news", "summarisation", "en", "1", {"test": pd.DataFrame(rows)})
    values = []
    for row in rows:
        nearest = [max(cosine(text, human) for human in row["human_summaries"]) for text in row["machine_summaries"]]
        values.append(spearmanr(row["relevance"], nearest).statistic)
    assert _score(dataset) == pytest.approx(np.mean(values), abs=1e-9)


@pytest.fixture
def bitext() -> TableDataset:
    """Sentences and what stands for their translations; the last three are not to be told apart by their first side."""
    first = [sentence(n) for n in range(17)] + ["red cat", "red cat runs", "blue dog"]
    second = [text.rsplit(" ", 2)[0] for text in first[:17]] + ["red cat", "red cat", "slow bird"]
    return TableDataset(
        "mined",
        "bitext_mining",
        "en-de",
        "1",
        {"test": pd.DataFrame(zip(first, second, strict=True)).set_axis(["sentence1", "sentence2"], axis=1)},
    )


def test_bitext_mining_is_weighted_f1_of_the_nearest_second_side(bitext: TableDataset) -> None:
    frame = bitext.splits["test"]
    found = [int(np.argmax([cosine(text, other) for other in frame["sentence2"]])) for text in frame["sentence1"]]
    expected = f1_score(range(20), found, average="weighted", zero_division=0)
    # F1 of a pair that is found and whose second side nobody else is taken for is 1; each pair weighs 1/20.
    assert 0.3 < expected < 1
    assert _score(bitext) == pytest.approx(expected, abs=1e-12)
    assert _score(bitext, "mteb") == _score(bitext)


def test_of_bitext_mining_the_first_side_changes(bitext: TableDataset) -> None:
    assert {(text.field, text.language) for text in bitext.texts()} == {("sentence1", "en")}
    gone = bitext.replaced(lambda text, cell: None if text.item == "0" else f"changed {cell}")
    assert gone.sizes() == {"": 19}
    model = FakeModel()
    scoring.evaluate(gone, Encoder(model, "fake", "1"), "paper", 8)
    assert {text.startswith("changed") for text in model.seen} == {True, False}
    assert list(gone.splits["test"]["sentence2"]) == list(bitext.splits["test"]["sentence2"][1:])


@pytest.fixture
def multilabel() -> TableDataset:
    rng = np.random.default_rng(4)
    names = ["zebra", "apple", "mango"]
    labels = [sorted(rng.choice(names, size=rng.integers(0, 3), replace=False)) for _ in range(80)]
    texts = [" ".join([*chosen, *chosen, sentence(n, 2)]) for n, chosen in enumerate(labels)]
    frame = pd.DataFrame({"text": texts, "label": pd.Series(labels, dtype=object)})
    splits = {"train": frame[:50], "test": frame[50:].reset_index(drop=True)}
    return TableDataset("fruits", "multilabel_classification", "en", "1", splits)


def test_multilabel_classification_is_the_share_of_texts_with_all_labels_right(multilabel: TableDataset) -> None:
    train, test = multilabel.splits["train"], multilabel.splits["test"]
    train = train[train["label"].map(len) > 0]  # mteb samples texts by their labels, so never those without one
    binarizer = MultiLabelBinarizer().fit(test["label"])
    model = KNeighborsClassifier(n_neighbors=5)
    model.fit(vectors(train["text"]), binarizer.transform(train["label"]))
    right = (model.predict(vectors(test["text"])) == binarizer.transform(test["label"])).all(axis=1)
    assert 0.3 < right.mean() < 1
    assert _score(multilabel) == pytest.approx(right.mean(), abs=1e-12)
    task = scoring.make_task(multilabel, "mteb")
    assert (task.samples_per_label, task.n_experiments, task.max_eval_samples) == (8, 10, 3000)


@pytest.fixture
def instructions() -> TableDataset:
    rows = []
    for n in range(4):
        positive = [f"red cat {n}", f"blue dog {n}", f"slow bird {n}"]
        rows.append(
            {
                "query": sentence(n),
                "instruction": "red cat here",
                "changed_instruction": "slow bird there" if n % 2 else "blue dog eats",
                "positive": positive,
                "negative": [sentence(n + 30), sentence(n + 40)],
                "changed": [True, bool(n % 2), False],
            }
        )
    return TableDataset("told", "instruction_reranking", "en", "1", {"test": pd.DataFrame(rows)})


def test_instruction_reranking_is_the_change_of_ranks_of_what_an_instruction_excludes(
    instructions: TableDataset,
) -> None:
    """p-MRR of FollowIR (Weller et al., 2024): from rank r to r', r' / r - 1 if it rose or stayed, else 1 - r / r'."""
    values = []
    for row in instructions.splits["test"].to_dict(orient="records"):
        passages = [*row["positive"], *row["negative"]]

        def rank(text: str, instruction: str, row: dict[str, Any] = row, passages: list[str] = passages) -> int:
            asked = f"{row['query']} {instruction}"
            return 1 + sorted(passages, key=lambda passage: -cosine(asked, passage)).index(text)

        changes = []
        for text, lost in zip(row["positive"], row["changed"], strict=True):
            before, after = rank(text, row["instruction"]), rank(text, row["changed_instruction"])
            # From rank 2 to 1: 1 / 2 - 1 = -0.5, which is wrong here; from 1 to 2: 1 - 1 / 2 = 0.5.
            if lost:
                changes.append(after / before - 1 if before >= after else 1 - before / after)
        values.append(np.mean(changes))
    assert len(set(values)) > 2
    assert _score(instructions) == pytest.approx(np.mean(values), abs=1e-5)


def test_instructions_do_not_change_with_queries(instructions: TableDataset) -> None:
    assert {text.field for text in instructions.texts()} == {"query"}
    model = FakeModel()
    scoring.evaluate(instructions.replaced(lambda _, cell: "asked"), Encoder(model, "fake", "1"), "paper", 8)
    assert {"asked red cat here", "asked slow bird there", "asked blue dog eats"} <= set(model.seen)
    with_passages = dataclasses.replace(instructions, passages=True)
    copy = with_passages.replaced(lambda text, cell: None if cell == "red cat 1" else cell.upper())
    assert copy.splits["test"]["positive"].iloc[1] == ["BLUE DOG 1", "SLOW BIRD 1"]
    assert copy.splits["test"]["changed"].iloc[1] == [True, False]
    assert -1 <= _score(copy) <= 1


def test_relatedness_is_scored_as_similarity_is(sts: TableDataset) -> None:
    related = TableDataset("pairs", "str", "en", "1", sts.splits)
    assert _score(related) == _score(sts)


@pytest.mark.parametrize("name", ["sts", "classification", "clustering", "bitext", "multilabel", "instructions"])
@pytest.mark.parametrize("protocol", ["paper", "mteb"])
def test_an_identical_copy_scores_as_the_original(
    name: str, protocol: scoring.Protocol, request: pytest.FixtureRequest
) -> None:
    dataset: Dataset = request.getfixturevalue(name)
    same = Outputs({text.text_id: text.text for text in dataset.texts()})
    assert _score(transformed(dataset, same), protocol) == _score(dataset, protocol)


def test_a_copy_holds_the_outputs_in_both_splits_and_leaves_the_original(classification: TableDataset) -> None:
    before = {split: frame.copy() for split, frame in classification.splits.items()}
    outputs = Outputs({text.text_id: text.text.upper() for text in classification.texts()})
    copy = transformed(classification, outputs)
    assert isinstance(copy, TableDataset)
    for split, frame in before.items():
        assert list(copy.splits[split]["text"]) == [text.upper() for text in frame["text"]]
        assert list(copy.splits[split]["label"]) == list(frame["label"])
        pd.testing.assert_frame_equal(classification.splits[split], frame)
    assert copy.name == classification.name


def test_outputs_are_found_by_composed_form() -> None:
    frame = pd.DataFrame({"sentence1": ["caf\u0065\u0301"], "sentence2": ["tea"], "score": [1.0]})
    dataset = TableDataset("forms", "sts", "fr", "1", {"test": frame})
    outputs = Outputs({text_id("caf\u00e9", "fr"): "bar", text_id("tea", "fr"): "the"})
    copy = transformed(dataset, outputs)
    assert list(copy.splits["test"]["sentence1"]) == ["bar"]


def test_a_text_without_output_is_not_left_as_it_is(sts: TableDataset) -> None:
    made = {text.text_id: "new" for text in sts.texts()}
    first, second, *_ = made
    made[first] = ""
    del made[second]
    ids = {text.text_id for text in sts.texts()}
    assert Outputs(made).missing(ids) == f"no output for 2 of {len(ids)} texts: run `plumbline generate` again"
    with pytest.raises(DataError, match="no output for"):
        transformed(sts, Outputs(made))


def _one_label(dataset: TableDataset, label: Any) -> TableDataset:
    splits = {}
    for split, frame in dataset.splits.items():
        splits[split] = frame.assign(label=pd.Series([label] * len(frame), frame.index, object))
    return TableDataset(dataset.name, dataset.task, "en", "1", splits)


@pytest.mark.parametrize("name", ["classification", "clustering", "multilabel"])
def test_one_label_is_unusable(name: str, request: pytest.FixtureRequest) -> None:
    dataset: TableDataset = request.getfixturevalue(name)
    assert scoring.unusable(dataset, "paper") == ""
    label = next(label for label in dataset.splits["test"]["label"] if label)
    assert "needs two labels" in scoring.unusable(_one_label(dataset, label), "paper")
    if name == "multilabel":
        assert scoring.unusable(_one_label(dataset, []), "paper") == "no scored text has a label"


def test_the_metadata_says_type_metric_and_language(sts: TableDataset) -> None:
    task = scoring.make_task(sts, "paper")
    metadata = task.metadata
    assert (metadata.name, metadata.type, metadata.main_score) == ("pairs", "STS", "cosine_spearman")
    assert metadata.eval_langs == ["eng-Latn"] and task.languages == ["eng"]


@pytest.mark.parametrize("name", ["classification", "bitext", "multilabel", "instructions"])
def test_silence(
    name: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    dataset: TableDataset = request.getfixturevalue(name)
    if name == "multilabel":  # a label that no scored row has
        train = dataset.splits["train"]
        rare = pd.Series([["kiwi"], *train["label"][1:]], train.index, object)
        dataset = dataclasses.replace(dataset, splits={**dataset.splits, "train": train.assign(label=rare)})
    _score(dataset)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [str(warning.message) for warning in recwarn] == []
