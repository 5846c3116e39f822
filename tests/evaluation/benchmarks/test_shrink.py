"""`plumbline shrink`: what is drawn, what is pooled, and what comes out for mteb and for a study."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from evaluation.benchmarks import smaller
from evaluation.benchmarks.contents import contents_of
from evaluation.benchmarks.smaller import holding
from evaluation.models.encoder import ModelHost
from evaluation.tasks import scoring
from generation.datasets.loading import iter_datasets, load_dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import in_memory
from plumbline.study import Study, load_study
from plumbline.study.datasets import DatasetSpec
from tests.commands import here
from tests.evaluation.conftest import ngrams_of
from tests.mteb_site import site

TOPICS = [[f"{first}{word}{first}" for word in "aeiou"] for first in ("st", "br", "kl", "m")]
MODELS = [{"name": f"m{size}", "kind": "lexical"} for size in (2, 3, 4)]


@pytest.fixture(scope="module", autouse=True)
def _models() -> Iterator[None]:
    with ngrams_of({f"m{size}": (size, size) for size in (2, 3, 4)}):
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """80 documents of four topics, and 20 queries over 60 passages."""
    folder, rng = tmp_path_factory.mktemp("shrink"), np.random.default_rng(2)
    every = [word for topic in TOPICS for word in topic]
    texts = [" ".join([*rng.choice(TOPICS[i % 4], 3), *rng.choice(every, 4), str(i)]) for i in range(80)]
    pd.DataFrame({"text": texts, "label": [f"l{i % 4}" for i in range(80)]}).to_csv(folder / "sets.csv", index=False)
    (folder / "search" / "qrels").mkdir(parents=True)
    passages = {f"d{i}": text for i, text in enumerate(texts[:60])}
    rows = {"corpus": passages, "queries": {f"q{i}": " ".join(texts[3 * i].split()[:3]) for i in range(20)}}
    for name, own in rows.items():
        lines = [json.dumps({"_id": key, "text": text}) for key, text in own.items()]
        (folder / "search" / f"{name}.jsonl").write_text("\n".join(lines))
    judged = [f"q{i}\td{3 * i}\t1" for i in range(20)]
    (folder / "search" / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    data = {
        "name": "shrunk",
        "datasets": [
            {"name": "sets", "task": "clustering", "path": "sets.csv", "language": "en"},
            {"name": "search", "task": "retrieval", "path": "search", "language": "en"},
        ],
        "transformations": ["paraphrasing"],
        "generator": {"kind": "recorded", "model": "writer", "path": "outputs.jsonl"},
        "evaluation": {"models": MODELS},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(data))
    made = load_study(folder / "study.yaml", folder / "exports")
    assert here("evaluate", *named(made), "--include-rejected").returncode == 0
    return made


def named(study: Study) -> tuple[str, ...]:
    return "--study", str(study.file), "--exports", str(study.folder.parent)


def shrink(study: Study, *words: str) -> tuple[int, str, str]:
    done = here("shrink", *named(study), *words)
    return done.returncode, done.stdout, done.stderr.replace("\r", "\n").strip().rpartition("\n")[2]


def dataset(study: Study, name: str) -> Any:
    return next(one for one in iter_datasets(study) if one.name == name)


@pytest.mark.parametrize(
    ("task", "words", "left"),
    [
        ("sets", ("--documents", "40"), {"documents": 40, "labels": 4}),
        ("search", ("--queries", "12", "--depth", "2"), {"queries": 12}),
    ],
)
def test_what_comes_out_scores_alike_in_a_study_and_in_the_check(
    study: Study, tmp_path: Path, task: str, words: tuple[str, ...], left: dict[str, int]
) -> None:
    status, out, err = shrink(study, "--task", task, *words, "--out", str(tmp_path / "small"))
    assert status == 0, err
    small = tmp_path / "small"
    about = json.loads((small / "about.json").read_text())
    assert about["answer"] == out.splitlines()[0] and left.items() <= about["smaller"].items()
    assert about["seed"] == 1337 and out.startswith(
        "Agreement between the rankings of 3 models on the smaller and the whole data set: tau "
    )
    lines = yaml.safe_load((small / "dataset.yaml").read_text())["datasets"]
    own = yaml.safe_load(study.file.read_text()) | {"datasets": [{**lines[0], "path": str(small / lines[0]["path"])}]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    (loaded,) = iter_datasets(load_study(tmp_path / "own.yaml"))
    scores = pd.read_csv(small / "scores.csv").set_index("model")["smaller"]

    for spec in study.evaluation.models:
        model = ModelHost.of(study).load(spec)
        assert scoring.evaluate(loaded, model, "paper", 32) == pytest.approx(scores[spec.name], abs=1e-9)
        model.close()


@pytest.mark.parametrize("judged", [{"d0": 1}, {"d0": 0, "d1": 1}])
def test_queries_with_ids_of_passages_score_alike_in_a_study(
    study: Study, tmp_path: Path, judged: dict[str, int]
) -> None:
    """By mteb such a passage is a result, unless the task ignores it; by a study it never is."""
    task = site().tasks["ArguAna"]
    (parts,) = task.loaded.task.dataset.values()
    part = parts[task.loaded.split]
    queries = in_memory({"id": ["d0", "query-d0"], "text": ["passage 0", "passage 1"]})
    search = {**part, "queries": queries, "relevant_docs": {"d0": judged, "query-d0": {"d2": 1}}, "top_ranked": None}
    small = replace(task, loaded=task.loaded.with_data({"default": {task.loaded.split: search}}))
    small.loaded.task.ignore_identical_ids = False
    holds = holding(ModelHost.of(study), small, {"m2": 0.5}, [], seed=1)
    smaller.write(tmp_path, smaller.Smaller(small, {}, {}, []), holds, {})
    lines = yaml.safe_load((tmp_path / "dataset.yaml").read_text())["datasets"]
    loaded = load_dataset(DatasetSpec.model_validate(lines[0]), tmp_path)
    model = ModelHost.of(study).load(study.evaluation.models[0])
    assert scoring.evaluate(loaded, model, "paper", 32) == pytest.approx(holds.scores["smaller"].item())
    model.close()


def test_documents_are_drawn_by_label_or_not_without_replacement_and_by_seed(study: Study) -> None:
    sets = dataset(study, "sets")
    made = smaller.draw_documents(sets, 20, stratified=True, seed=1)
    (part,) = contents_of(made.dataset).scored
    assert len(set(part.texts)) == 20 and set(part.texts) <= set(contents_of(sets).scored[0].texts)
    assert sorted(np.unique([str(gold) for gold in part.gold], return_counts=True)[1]) == [5, 5, 5, 5]
    for stratified in (True, False):
        texts = [
            list(smaller.draw_documents(sets, 20, stratified=stratified, seed=seed).dataset.texts())
            for seed in (1, 1, 2)
        ]
        assert texts[0] == texts[1] != texts[2]
    assert "regardless of labels" in smaller.draw_documents(sets, 20, stratified=False, seed=1).how[0]
    nested = site().tasks["BiorxivClusteringS2S"]
    assert smaller.draw_documents(nested, 6, stratified=False, seed=1).counts["documents"] == 6


def test_a_pool_holds_what_is_judged_and_what_models_rank_first_and_nothing_else(study: Study) -> None:
    search = dataset(study, "search")
    queries = smaller.draw_queries(search, 5, seed=3)
    assert queries == sorted(queries, key=lambda one: int(one[1:])) and len(set(queries)) == 5
    asked = smaller.with_queries(search, queries)
    assert [text.item for text in asked.texts()] == queries and asked.corpus == search.corpus
    rankings = {"one": {query: ["d1", "d2", "d4"] for query in queries}, "two": {queries[0]: ["d5", "d1"]}}
    made = smaller.pool(search, queries, rankings, 2)
    judged = {f"d{3 * int(query[1:])}" for query in queries}
    assert isinstance(made.dataset, TableDataset)
    assert set(made.dataset.corpus) == judged | {"d1", "d2", "d5"}  # d4 stands third
    assert made.dataset.qrels == {query: search.qrels[query] for query in queries}
    assert not made.dataset.passages and made.counts == {"queries": 5, "passages": len(made.dataset.corpus)}
    of_mteb = smaller.pool(site().tasks["ArguAna"], ["q1", "q2"], {"one": {"q1": ["d5"]}}, 10).dataset
    assert set(contents_of(of_mteb).searches[0].passages) == {"d1", "d2", "d5"}


def test_ranks_that_hold_and_ranks_that_turn(study: Study) -> None:
    sets = dataset(study, "sets")
    small = smaller.draw_documents(sets, 40, stratified=True, seed=1).dataset
    made = holding(ModelHost.of(study), small, {f"m{size}": 0.5 for size in (2, 3, 4)}, ["m2"], seed=1)
    assert np.isnan(made.tau.value) and made.tau.reason == "tau is undefined: all scores of one side are equal"
    own = made.scores.set_index("model")["smaller"]
    again = holding(ModelHost.of(study), small, {name: -value for name, value in own.items()}, [], seed=1)
    assert again.tau.value == pytest.approx(-1) and again.rho.value == pytest.approx(-1)
    assert list(made.scores["in_pool"]) == [True, False, False]
    assert holding(ModelHost.of(study), small, {}, [], seed=1).tau.reason == "tau needs at least 2 models, not 0"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "sets"), "--documents 3: 'sets' has 80 documents and"),
        (("--task", "sets", "--documents", "80"), "choose a number below that of documents"),
        (
            ("--task", "search", "--documents", "9"),
            "--documents works only for clustering, but 'search' is retrieval; use --q",
        ),
        (
            ("--task", "sets", "--documents", "9", "--depth", "2"),
            "--depth works only for retrieval, but 'sets' is clustering",
        ),
        (("--task", "sets", "--documents", "79"), "cannot be drawn by label (The train_size = 1 should be greater"),
        (("--task", "search", "--pool", "bm25"), "pip install 'mteb[bm25s]'"),
    ],
)
def test_what_cannot_be_made_smaller_is_one_line(
    study: Study, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr("evaluation.benchmarks.smaller._NEEDS", ("a_module_that_nobody_has",))
    status, _, err = shrink(study, *words)
    assert status == 2 and said in err and not Path("sets-small").exists()


def test_bm25_ranks_through_mteb(study: Study, tmp_path: Path) -> None:
    words = ("--task", "search", "--pool", "bm25", "--depth", "1", "--out", str(tmp_path / "small"))
    status, _, err = shrink(study, *words)
    assert status == 0, err
    assert "BM25S" not in err  # its own progress bars, beside ours
    assert json.loads((tmp_path / "small" / "about.json").read_text())["pooled_by"] == ["bm25"]
