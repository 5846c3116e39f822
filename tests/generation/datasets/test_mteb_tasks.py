from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from generation.datasets.mteb_loading import task_of
from generation.datasets.mteb_tasks import MtebTask
from generation.jobs import Plan
from plumbline.prompts import prompts_of
from plumbline.records import Text
from plumbline.study import ROOT, Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.transformations import EIGHT
from tests.mteb_site import (
    CANDIDATES,
    PAIRS,
    REFUSED,
    REQUESTS,
    SETS,
    SPRINT,
    STUDIES,
    SUMMARIES,
    relatedness,
    site,
    specs,
)


def places(name: str, *fields: str) -> list[tuple[str, str]]:
    """Item and text of every place of a data set's fields, in order."""
    return [(text.item, text.text) for text in site().tasks[name].texts() if not fields or text.field in fields]


def texts(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(str(number), value) for number, value in enumerate(values)]


def languages(name: str) -> set[tuple[str, str, str]]:
    """Subset, field and language of a data set's texts."""
    return {(text.item.split("/")[0], text.field, text.language) for text in site().tasks[name].texts()}


def test_texts_of_pairs_are_those_of_the_scored_split() -> None:
    assert places("STSBenchmark", "sentence1") == texts([row["sentence1"] for row in PAIRS])
    assert places("STSBenchmark", "sentence2") == texts([row["sentence2"] for row in PAIRS])
    assert len(places("STSBenchmark")) == 24
    # Twitter's, Sprint's: all pairs in one row, under mteb's old names of the columns.
    assert places("SprintDuplicateQuestions") == texts(SPRINT["sent1"]) + texts(SPRINT["sent2"])


def test_texts_of_classification_are_those_of_both_splits() -> None:
    found = list(site().tasks["Banking77Classification"].texts())
    assert [(text.split, text.text) for text in found] == [
        *(("train", row["text"]) for row in REQUESTS[:12]),
        *(("test", row["text"]) for row in REQUESTS[12:]),
    ]


def test_texts_of_clustering_stand_in_sets_or_in_rows() -> None:
    assert places("BiorxivClusteringS2S") == [
        (f"{row}/sentences/{place}", text)
        for row, one in enumerate(SETS)
        for place, text in enumerate(one["sentences"])
    ]
    for name in ("PlscClusteringS2S.v2", "PlscClusteringS2S.v2 in sets"):
        assert sorted(places(name)) == sorted(texts([f"praca {i}" for i in range(40)]))


def test_texts_of_reranking_and_retrieval_are_queries_and_passages_where_asked_for() -> None:
    assert places("AskUbuntuDupQuestions") == [(f"q{n}", row["query"]) for n, row in enumerate(CANDIDATES)]
    assert places("SciDocsRR") == [(f"q{n}", f"asked {n}") for n in range(3)]
    assert places("ArguAna with passages", "query") == places("ArguAna") == [(f"q{n}", f"asked {n}") for n in range(4)]
    # Every second passage has a title: title and body are one text.
    passages = [(f"d{n}", f"T{n} passage {n}" if n % 2 else f"passage {n}") for n in range(6)]
    assert places("ArguAna with passages", "passage") == passages


def test_passages_of_a_query_are_its_candidates_or_what_the_corpus_has() -> None:
    first = next(site().tasks["AskUbuntuDupQuestions"].searches())
    assert (first.item, first.languages) == ("q0", ("en", "en"))
    assert list(first.passages.values()) == [*CANDIDATES[0]["positive"], *CANDIDATES[0]["negative"]]
    assert {first.passages[name] for name in first.relevant} == set(CANDIDATES[0]["positive"])
    task = site().tasks["ArguAna"]
    part = task.loaded.task.dataset["default"][task.loaded.split]
    texts = {f"T{n} passage {n}" if n % 2 else f"passage {n}" for n in range(6)}
    for query, found in zip(part["queries"]["id"], task.searches(), strict=True):
        relevant = [name for name, value in part["relevant_docs"][query].items() if value > 0]
        assert found.item == query and len(found.relevant) == len(relevant)
        assert set(found.passages.values()) == texts  # six passages are all looked at
    assert not list(site().tasks["STS17"].searches())


def test_texts_of_summarisation_are_the_summaries_alone() -> None:
    found = [text for _, text in places("SummEval")]
    assert sorted(found) == sorted(
        text for row in SUMMARIES for name in ("human_summaries", "machine_summaries") for text in row[name]
    )


def test_languages_are_those_of_the_subset_and_of_pairs_by_side() -> None:
    assert languages("STS17") == {
        ("en-de", "sentence1", "en"),
        ("en-de", "sentence2", "de"),
        ("ar-ar", "sentence1", "ar"),
        ("ar-ar", "sentence2", "ar"),
    }
    assert {language for _, _, language in languages("PlscClusteringS2S.v2")} == {"pl"}
    # Algerian Arabic is Arabic; a subset that mteb does not have takes its language from the study.
    assert {(subset, language) for subset, _, language in languages("SemRel2024")} == {("arq", "ar"), ("esp", "es")}
    fields = {(field, language) for _, field, language in languages("SciDocsRR with passages")}
    assert fields == {("query", "en"), ("passage", "de")}


def test_a_study_may_name_another_repository_and_the_names_of_its_columns() -> None:
    assert places("SemRel2024", "sentence1")[5:] == [
        (f"esp/{n}", row["sentence1"]) for n, row in enumerate(relatedness("esp"))
    ]
    task = site().tasks["SemRel2024"]
    assert task.task == "str"
    assert task.revision == "SemRel/SemRel2024@ef5c383d1b87eb8feccde3dfb7f95e42b1b050dd"
    assert list(task.loaded.task.dataset["esp"]["test"]["score"]) == [row["label"] for row in relatedness("esp")]


def test_a_task_is_read_by_configurations_or_by_a_column() -> None:
    both = [text.text for name in ("STS17", "STS17 by column") for text in site().tasks[name].texts()]
    assert both[:34] == both[34:]
    assert both[:24] == [row["sentence1"] for row in PAIRS] + [row["sentence2"] for row in PAIRS]


def test_every_place_has_a_name_of_its_own() -> None:
    for name, task in site().tasks.items():
        found = [(text.split, text.item, text.field) for text in task.texts()]
        assert found and len(found) == len(set(found)), name


def made(text: Text, _: str) -> str:
    return f"{text.field} {text.item}"


def content(task: MtebTask) -> Any:
    """All that mteb's object holds, as plain values."""

    def plain(part: Any) -> Any:
        return (
            {k: plain(v) for k, v in part.items()}
            if isinstance(part, dict)
            else getattr(part, "to_dict", lambda: part)()
        )

    return {
        subset: {split: plain(part) for split, part in parts.items()}
        for subset, parts in task.loaded.task.dataset.items()
    }


def without(value: Any, texts: dict[str, str]) -> Any:
    """The same values with each text named by its place."""
    if isinstance(value, dict):
        return {key: without(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [without(item, texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", [name for name in specs() if "passages" not in name])
def test_a_copy_holds_the_outputs_and_nothing_else_has_changed(name: str) -> None:
    task = site().tasks[name]
    before, random = content(task), task.loaded.task.rng_state.getstate()
    copy = task.replaced(made)
    assert [text.text for text in copy.texts()] == [made(text, "") for text in task.texts()]
    # Every text that was served is another, so text by text the copy is the original.
    assert content(copy) == without(before, _by_text(task))
    assert content(task) == before
    assert task.loaded.task.rng_state.getstate() == random
    assert copy.loaded.task.metadata.name == task.loaded.task.metadata.name
    assert copy.loaded.task is not task.loaded.task
    assert _features(copy) == _features(task)


def _features(task: MtebTask) -> list[Any]:
    parts = [part for parts in task.loaded.task.dataset.values() for part in parts.values()]
    return [part.features if hasattr(part, "features") else part["queries"].features for part in parts]


def _by_text(task: MtebTask) -> dict[str, str]:
    return {text.text: made(text, "") for text in task.texts()}


def test_a_copy_of_passages_has_outputs_for_texts_and_no_titles() -> None:
    task = site().tasks["ArguAna with passages"]
    corpus = content(task.replaced(made))["default"]["test"]["corpus"]
    assert corpus == {"id": [f"d{n}" for n in range(6)], "title": [""] * 6, "text": [f"passage d{n}" for n in range(6)]}


def dropped(name: str, *items: str) -> Any:
    return content(site().tasks[name].replaced(lambda text, cell: None if text.item in items else cell))


def test_a_row_is_dropped_with_its_pair_or_label() -> None:
    pairs = dropped("STSBenchmark", "3")["default"]["test"]
    assert pairs["sentence2"] == [row["sentence2"] for row in PAIRS[:3] + PAIRS[4:]]
    assert pairs["score"] == [row["score"] for row in PAIRS[:3] + PAIRS[4:]]
    sets = dropped("BiorxivClusteringS2S", "0/sentences/2", "0/sentences/5")["default"]["test"]
    assert sets["labels"] == [[0, 1, 1, 0], SETS[1]["labels"]]
    summaries = dropped("SummEval", "1/machine_summaries/1")["default"]["test"]
    assert summaries["relevance"] == [[1.0, 2.5, 4.0], [1.0, 4.0], [1.0, 2.5, 4.0]]


def test_a_query_is_dropped_with_its_judgements_and_candidates() -> None:
    part = dropped("SciDocsRR", "q1")["default"]["test"]
    assert part["queries"]["id"] == ["q0", "q2"]
    assert set(part["relevant_docs"]) == set(part["top_ranked"]) == {"q0", "q2"}


def test_a_passage_is_dropped_everywhere_and_takes_its_query_along() -> None:
    part = dropped("SciDocsRR with passages", "d1")["default"]["test"]
    assert part["corpus"]["id"] == ["d0", "d2", "d3", "d4"]
    assert part["queries"]["id"] == ["q0", "q2"]
    assert part["relevant_docs"] == {"q0": {"d0": 1}, "q2": {"d2": 1}}
    assert part["top_ranked"]["q0"] == ["d0", "d2", "d3", "d4"]


def test_old_candidates_are_judged_and_ranked() -> None:
    part = content(site().tasks["AskUbuntuDupQuestions"])["default"]["test"]
    assert part["corpus"]["text"][:3] == ["same 0", "also same 0", "other 0"]
    assert list(part["relevant_docs"]["q0"].values()) == [1, 1, 0]
    assert part["top_ranked"]["q0"] == list(part["relevant_docs"]["q0"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("task", "StudyError: data set 'STSBenchmrk': mteb has no task 'STSBenchmrk'; did you mean 'STSBenchmark'?"),
        ("type", "InstructIR has mteb's type InstructionRetrieval, which Plumbline cannot transform and score"),
        ("wrong task", "STSBenchmark has mteb's type STS, so its `task` is 'sts', not 'clustering'"),
        ("collection", "CQADupstackRetrieval is a collection of tasks; name them one by one: CQADupstackAndroid"),
        ("pair of languages", "language 'en-de' is a pair, but classification has single texts"),
        ("subset", "STS17 has no subset 'en-dee'; did you mean 'en-de'?"),
        ("subset of the data", "the data have no subset 'en-tr'; list existing ones in `subsets`"),
        ("split", "subset 'default' of the data has no split 'dev'; known: test, train"),
        ("split of retrieval", "ArguAna has no split 'dev'; known: test"),
        ("column", "the data have no column 'gold'; known: sentence1, sentence2, score"),
        ("revision", f"Revision '{'0' * 40}' doesn't exist for dataset 'mteb/stsbenchmark-sts' on the Hub."),
        ("repository", "Dataset 'mteb/none' doesn't exist on the Hub or cannot be accessed."),
        ("layout", "the data have no column 'sentence1'; known: query-id, corpus-id, score"),
        ("sides", "BUCC': its two sides are lists of different lengths; use a later version of the task"),
        (
            "languages of pairs",
            "which text of subset 'de' is in which of deu-Latn, eng-Latn; give `language: {de: ...}`",
        ),
        ("languages of queries and passages", "which text of subset 'acm_Arab-eng_Latn' is in which"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name: str, says: str) -> None:
    line = site().refused[name]
    assert says in line
    assert "\n" not in line
    assert line.startswith("StudyError: data set ")
    assert set(site().refused) == set(REFUSED)


def test_without_the_hub_another_revision_is_not_taken_for_the_one_that_was_asked_for() -> None:
    """The library `datasets` would give the newest copy that it has."""
    assert site().offline.startswith(
        "ServiceError: data set 'STSBenchmark': mteb/stsbenchmark-sts cannot be loaded from the hub: Couldn't"
    )


def study(name: str) -> Study:
    return load_study(ROOT / "studies" / f"{name}.yaml")


@pytest.mark.parametrize("name", STUDIES)
def test_the_papers_data_sets_are_tasks_of_mteb(name: str) -> None:
    assert study(name).datasets
    for spec in study(name).datasets:
        assert spec.mteb
        task, kind, split, languages = task_of(spec)
        assert spec.revision
        assert list(languages) == list(task.hf_subsets)
        assert split in task.metadata.eval_splits
        assert (kind == "str") == (spec.mteb == "SemRel24STS")


def test_the_papers_have_their_data_sets_languages_models_and_seeds() -> None:
    english, several = study("hteb_english"), study("hteb_multilingual")
    assert (len(english.datasets), len(several.datasets)) == (19, 13)
    codes = {code for spec in several.datasets for pair in task_of(spec)[3].values() for code in pair}  # type: ignore[arg-type]
    assert len(codes) == 42  # HTEB, appendix F
    names = [{model.name for model in made.evaluation.models} for made in (english, several)]
    assert [len(names[0]), len(names[1]), len(names[0] & names[1]), len(names[0] | names[1])] == [11, 9, 4, 16]
    assert english.seeds == several.seeds == (1337, 1338, 1339)
    pteb = [study("pteb"), study("pteb_multilingual")]
    assert len({spec.mteb for made in pteb for spec in made.datasets}) == 20  # type: ignore[union-attr]
    codes = {code for made in pteb for spec in made.datasets for pair in task_of(spec)[3].values() for code in pair}  # type: ignore[arg-type]
    assert len(codes) == 25  # PTEB, section 3.2.6
    assert all(made.seeds == tuple(range(1337, 1343)) for made in pteb)
    assert len(study("hteb_generators").candidates) == 15


def test_ptebs_prompts_are_its_own_and_the_multilingual_one_only_adds_to_the_default() -> None:
    (default,), (several,) = (Plan(study(name)).prompts["paraphrasing"] for name in ("pteb", "pteb_multilingual"))
    (hteb,) = Plan(study("hteb_english")).prompts["paraphrasing"]
    before, _, rest = several.text.partition(" Answer in the same language as the input text.")
    assert before == default.text.removesuffix("\n\n{text}") != hteb.text
    assert rest == " Do not translate to English or any other language.\n\n{text}"
    variations = (  # PTEB, appendix D.4
        "Paraphrase the text below so that the meaning stays the same. Return only one rewritten version of the text."
        " Do not add explanations, reasoning steps, or multiple options.",
        "Rewrite the given text in different words but preserve its meaning. Output exactly one paraphrase. Do not"
        " include commentary, reasoning, or alternative suggestions.",
        "Provide a single paraphrased version of the following text. The meaning must remain unchanged. Do not include"
        " any notes, thoughts, or more than one response.",
    )
    for number, words in enumerate(variations, 1):
        (varied,) = prompts_of(EIGHT["paraphrasing"], f"pteb_variation_{number}")
        assert varied.text == f"{words}\n\n{{text}}"
        assert f"D.4 (variation {number})" in varied.source and "CC BY 4.0" in varied.source


def test_where_the_papers_revisions_are_mtebs_own() -> None:
    """HTEB's authors pin their own; these four alone are those of mteb's registry."""
    same = []
    for spec in (*study("hteb_english").datasets, *study("hteb_multilingual").datasets):
        assert spec.mteb
        own = task_of(DatasetSpec.model_validate({"mteb": spec.mteb, "split": spec.split}))[0].metadata.dataset
        if (spec.path or own["path"], spec.revision) == (own["path"], own["revision"]):
            same.append(spec.name)
    assert same == ["IsiZuluNewsClassification.v2", "SentimentAnalysisHindi.v2", "RTE3", "TwitterHjerneRetrieval"]


@pytest.mark.parametrize("name", STUDIES)
def test_the_papers_models_are_in_mtebs_registry_with_their_revisions(name: str) -> None:
    import mteb

    assert study(name).evaluation.models
    for model in study(name).evaluation.models:
        assert mteb.get_model_meta(model.name).revision == model.revision
