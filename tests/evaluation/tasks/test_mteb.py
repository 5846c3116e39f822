"""Tasks of mteb, and copies of them, are scored as tables of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluation.models.encoder import Encoder
from evaluation.tasks import scoring
from evaluation.tasks.protocols import Protocol
from evaluation.texts import Originals, Outputs, transformed
from generation.datasets.mteb_tasks import MtebTask
from tests.evaluation.conftest import FakeModel, cosine
from tests.evaluation.tasks.same_rows import score_of
from tests.mteb_site import (
    ARABIC,
    CANDIDATES,
    EMOTIONS,
    PAIRS,
    PARALLEL,
    REQUESTS,
    SETS,
    SIDES,
    SPRINT,
    SUMMARIES,
    instruction_tables,
    site,
    specs,
)


def _score(dataset: Any, protocol: Protocol = "paper") -> float:
    return scoring.evaluate(dataset, Encoder(FakeModel(), "fake", "1"), protocol, 8)


def test_pairs() -> None:
    assert _score(site().tasks["STSBenchmark"]) == score_of("sts", PAIRS)
    pairs = {"sentence1": SPRINT["sent1"], "sentence2": SPRINT["sent2"], "label": SPRINT["labels"]}
    assert _score(site().tasks["SprintDuplicateQuestions"]) == score_of("pair_classification", pairs)


def test_subsets_are_averaged() -> None:
    expected = (score_of("sts", PAIRS) + score_of("sts", ARABIC)) / 2
    assert expected != pytest.approx(score_of("sts", PAIRS + ARABIC))
    for name in ("STS17", "STS17 by column"):
        assert _score(site().tasks[name]) == pytest.approx(expected, abs=1e-9)


def test_classification_trains_on_the_whole_split() -> None:
    expected = score_of("classification", REQUESTS[12:], REQUESTS[:12])
    assert _score(site().tasks["Banking77Classification"]) == expected
    by_mteb = scoring.make_task(site().tasks["Banking77Classification"], "mteb")
    assert (by_mteb.samples_per_label, by_mteb.n_experiments) == (8, 10)
    assert by_mteb.evaluator_model is not type(by_mteb).evaluator_model


def test_clustering_is_of_each_set_or_of_all_rows() -> None:
    of_sets = [score_of("clustering", {"text": row["sentences"], "label": row["labels"]}) for row in SETS]
    assert _score(site().tasks["BiorxivClusteringS2S"]) == pytest.approx(np.mean(of_sets), abs=1e-12)
    rows = site().tasks["PlscClusteringS2S.v2"]
    texts = [text.text for text in rows.texts()]
    labels = [int(text.rsplit(" ", 1)[1]) % 2 for text in texts]
    assert _score(rows) == score_of("clustering", {"text": texts, "label": labels})
    assert type(scoring.make_task(rows, "mteb")) is type(rows.loaded.task)


def test_queries() -> None:
    assert _score(site().tasks["AskUbuntuDupQuestions"]) == score_of("reranking", CANDIDATES)
    # mteb's ArguAna ignores a query's own document; here no document has a query's id.
    passages = {f"d{n}": f"T{n} passage {n}" if n % 2 else f"passage {n}" for n in range(6)}
    queries = {"id": [f"q{n}" for n in range(4)], "query": [f"asked {n}" for n in range(4)]}
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(4)}
    expected = score_of("retrieval", queries, corpus=passages, qrels=qrels)
    assert _score(site().tasks["ArguAna"]) == expected


def test_summaries_are_ranked_by_the_nearest_human_one() -> None:
    expected = score_of("summarisation", SUMMARIES)
    assert _score(site().tasks["SummEval"]) == pytest.approx(expected, abs=1e-12)
    # mteb's task has an evaluator that averages p-values into it.
    assert _score(site().tasks["SummEval"], "mteb") != pytest.approx(expected, abs=1e-3)


def test_sides_of_bitexts_are_tables_or_columns() -> None:
    assert _score(site().tasks["BUCC.v2"]) == score_of("bitext_mining", SIDES)
    name = "IN22GenBitextMining"
    of_subsets = [
        score_of("bitext_mining", [{"sentence1": row[one], "sentence2": row[two]} for row in PARALLEL])
        for one, two in (("hin_Deva", "eng_Latn"), ("ben_Beng", "tam_Taml"))
    ]
    assert _score(site().tasks[name]) == pytest.approx(np.mean(of_subsets), abs=1e-12)
    found = {(text.item.split("/")[0], text.field, text.language) for text in site().tasks[name].texts()}
    assert found == {("hin_Deva-eng_Latn", "sentence1", "hi"), ("ben_Beng-tam_Taml", "sentence1", "bn")}


def test_multilabel_classification_trains_on_the_whole_split() -> None:
    expected = score_of("multilabel_classification", EMOTIONS[16:], EMOTIONS[:16])
    assert _score(site().tasks["CEDRClassification"]) == expected > 0


def _followed(tables: dict[str, Any]) -> float:
    """p-MRR: from rank r to r' a passage counts r' / r - 1 if it rose or stayed, else 1 - r / r'."""
    asked = {row["_id"]: row["text"] for row in tables["queries"]["queries"]}
    told = {row["query-id"]: row["instruction"] for row in tables["instruction"]["instruction"]}
    passages = {row["_id"]: row["text"] for row in tables["corpus"]["corpus"]}

    def rank(query: str, passage: str) -> int:
        text = f"{asked[query]} {told[query]}"
        return 1 + sorted(passages, key=lambda one: -cosine(text, passages[one])).index(passage)

    values = []
    for row in tables["qrel_diff"]["qrel_diff"]:
        ranks = [[rank(f"{row['query-id']}-{v}", one) for v in ("og", "changed")] for one in row["corpus-ids"]]
        values.append(np.mean([new / old - 1 if old >= new else 1 - old / new for old, new in ranks]))
    return float(np.mean(values))


def test_instructions_change_ranks() -> None:
    expected = _followed(instruction_tables())
    assert abs(expected) > 0.01
    for name in ("Core17InstructionRetrieval", "mFollowIR with passages"):
        assert _score(site().tasks[name]) == pytest.approx(expected, abs=1e-5)


def test_queries_change_and_instructions_do_not_and_both_versions_go_together() -> None:
    dataset = site().tasks["Core17InstructionRetrieval"]
    model = FakeModel()
    changed = dataset.replaced(lambda text, cell: f"new {cell}")
    scoring.evaluate(changed, Encoder(model, "fake", "1"), "paper", 8)
    assert {"new asked q0-og told d0", "new asked q1-changed told d2"} <= set(model.seen)
    left = dataset.replaced(lambda text, cell: None if text.item == "q0-og" else cell)
    assert left.sizes() == {"default": 2}
    tables = instruction_tables()
    tables["qrel_diff"]["qrel_diff"].pop(0)
    assert _score(left) == pytest.approx(_followed(tables), abs=1e-5)
    # A passage goes, and with it the query of which it was all that changed.
    followed = (
        site().tasks["mFollowIR with passages"].replaced(lambda text, cell: None if text.item == "rus/d0" else cell)
    )
    assert followed.sizes() == {"rus": 2}
    part = followed.loaded.task.dataset["rus"]["test"]
    assert (part["changed"], set(part["top_ranked"])) == ({"q1": ["d1", "d3"]}, {"q1-og", "q1-changed"})
    assert -1 <= _score(followed) <= 1


@pytest.mark.parametrize("protocol", ["paper", "mteb"])
@pytest.mark.parametrize("name", [name for name in specs() if not name.startswith(("STS17 by", "Plsc"))])
def test_a_copy_with_the_same_texts_scores_as_the_original(name: str, protocol: Protocol) -> None:
    dataset = site().tasks[name]
    same = Outputs({text.text_id: text.text for text in dataset.texts()})
    assert _score(transformed(dataset, same), protocol) == _score(dataset, protocol)


def test_only_queries_change_unless_passages_are_asked_for() -> None:
    for name in ("SciDocsRR", "SciDocsRR with passages"):
        dataset = site().tasks[name]
        outputs = Outputs({text.text_id: f"changed {text.text}" for text in dataset.texts()})
        model = FakeModel()
        scoring.evaluate(transformed(dataset, outputs), Encoder(model, "fake", "1"), "paper", 8)
        assert ("changed passage 0" in model.seen) == ("passages" in name) != ("passage 0" in model.seen)
        assert "changed asked 0" in model.seen and "asked 0" not in model.seen


def test_failed_outputs_drop_their_items() -> None:
    dataset = site().tasks["STS17"]
    failed = frozenset(text.text_id for text in dataset.texts() if text.item in ("en-de/0", "ar-ar/1"))
    made = {text.text_id: text.text for text in dataset.texts() if text.text_id not in failed}
    outputs = Outputs(made, failed)
    left = transformed(dataset, outputs)
    assert isinstance(left, MtebTask)
    assert (left.sizes(), Originals.of(dataset).items_of(outputs.failed)) == ({"en-de": 11, "ar-ar": 4}, 2)
    expected = (score_of("sts", PAIRS[1:]) + score_of("sts", ARABIC[:1] + ARABIC[2:])) / 2
    assert _score(left) == pytest.approx(expected, abs=1e-9)


def test_a_subset_that_failures_leave_empty_is_unusable() -> None:
    dataset = site().tasks["STS17"]
    arabic = frozenset(text.text_id for text in dataset.texts() if text.item.startswith("ar-ar"))
    left = transformed(dataset, Outputs({text.text_id: "x" for text in dataset.texts()}, arabic))
    assert scoring.unusable(left, "paper") == "there is nothing to score in subset 'ar-ar'"
    one = [text for text in site().tasks["Banking77Classification"].texts() if int(text.text.split()[1]) % 3]
    left = site().tasks["Banking77Classification"].replaced(lambda text, cell: None if text in one else cell)
    assert (
        scoring.unusable(left, "paper")
        == "all rows of split 'train' have the label '0': classification needs two labels"
    )


def test_silence(capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    names = ("SummEval", "Banking77Classification", "ArguAna", "BUCC.v2", "IN22GenBitextMining", "CEDRClassification")
    for name in (*names, "Core17InstructionRetrieval"):
        dataset = site().tasks[name]
        failed = frozenset([next(dataset.texts()).text_id])
        outputs = Outputs({text.text_id: text.text for text in dataset.texts()}, failed)
        _score(transformed(dataset, outputs), "mteb")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [str(warning.message) for warning in recwarn] == []
