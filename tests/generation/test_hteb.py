"""The folders that HTEB's authors publish, written here as their program (v1.1) writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generation.generators import RecordedOutputs
from generation.hteb import read_texts
from generation.production import generate, read_transformed
from plumbline.errors import DataError
from tests.generation.helpers import small_study
from tests.generation.hteb_folder import FOLDER, GENERATOR, Records, a_file, a_study, publish, rows, served


def test_a_run_takes_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple", "bread", "cake"), rows('"a pome"', "", "a tart"))
    study = a_study(tmp_path, transformations=["paraphrasing", "expansion"])
    assert generate(study) == {"ok": 1, "failed": 1, "unanswered": 2}
    good, bad = read_transformed(study, "paraphrasing", 1)
    assert (good.text, good.output, good.raw, good.status) == ("apple", "a pome", '"a pome"', "ok")
    # Their program saves what it gave up on as empty: the generator's failure, and an error type.
    assert (bad.output, bad.status, bad.reason, bad.first_flags) == ("", "failed", "empty after 1 attempt", ("empty",))
    reasons = {row.reason for row in read_transformed(study, "expansion", 1)}
    assert reasons == {"no recording for expansion with seed 1 (the folder has no file of data set words)"}
    publish(tmp_path, rows("apple", "bread"), rows("a long apple", "a long bread"), transformation="expansion")
    assert generate(study) == {"ok": 2, "reused": 2}


PAIRS = ({"sentence1": "a", "sentence2": "b", "score": 1.0}, {"sentence1": "c", "sentence2": " ", "score": 1.0})
RANKED = ({"query": "a", "positive": ["b"], "negative": ["c", "d"]}, {"query": "e", "positive": ["f"], "negative": []})
CORPUS = (
    {"_hteb_part": "corpus", "_id": "d", "title": "a", "text": "b", "query-id": None},
    {"_hteb_part": "queries", "_id": "q", "title": None, "text": "c", "query-id": None},
    {"_hteb_part": "qrels", "_id": None, "title": None, "text": None, "query-id": "q"},
)


@pytest.mark.parametrize(
    ("records", "changes", "texts"),
    [
        (rows("a", "b"), {}, "a0 b1"),
        (PAIRS, {}, "a0 c1 b2"),  # all first sentences before all second; a blank one has no number
        ([{"sent1": ["a", "b"], "sent2": ["c", "d"], "labels": [0, 1]}], {}, "a0 b1 c2 d3"),
        ([{"sentences": ["a", "b"], "labels": ["x", "y"]}, {"sentences": ["c"], "labels": ["x"]}], {}, "a0 b1 c2"),
        ([{"human_summaries": ["a", "b"], "machine_summaries": ["c"], "text": "the source"}], {}, "a0 b1 c2"),
        (RANKED, {}, "a0 b1 c2 d3 e4 f5"),
        (RANKED, {"wants_passages": False}, "a0 e4"),
        (RANKED, {"transforms_passages": False}, "a0 e1"),
        (CORPUS, {}, "a0 b1 c2"),
        (CORPUS, {"wants_passages": False}, "c2"),
        (CORPUS, {"transforms_passages": False}, "c0"),
    ],
)
def test_texts_are_found_and_numbered_as_their_program_does(
    tmp_path: Path, records: Records, changes: dict[str, Any], texts: str
) -> None:
    def upper(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [upper(key, item) for item in value]
        return value.upper() if isinstance(value, str) and not key.startswith("_") else value

    changed = [{key: upper(key, value) for key, value in record.items()} for record in records]
    path = publish(tmp_path, records, changed)
    found = list(read_texts(a_file(path=path, transformation="paraphrasing", **changes)))
    assert " ".join(f"{text.text}{text.number}" for text in found) == texts
    assert [text.output for text in found] == [text.text.upper() for text in found]


def test_a_list_that_lost_its_texts_has_no_outputs(tmp_path: Path) -> None:
    path = publish(
        tmp_path, [{"sentences": ["a", "b"]}, {"sentences": ["c"]}], [{"sentences": []}, {"sentences": ["C"]}]
    )
    found = list(read_texts(a_file(path=path, transformation="paraphrasing")))
    assert [(text.text, text.output) for text in found] == [("a", ""), ("b", ""), ("c", "C")]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("banking77", "Banking77Classification"),
        ("MassiveIntentClassification", "MassiveIntentClassification"),
        ("BiorxivClusteringS2S", "BiorxivClusteringS2S"),
        ("twittersemeval2015-pairclassification", "TwitterSemEval2015"),
        ("askubuntudupquestions-reranking", "AskUbuntuDupQuestions"),
        ("arguana", "ArguAna"),
        ("semrel2024", "SemRel24STS"),
        ("biosses-sts", "BIOSSES"),
        ("stsbenchmark-sts", "STSBenchmark"),
        ("summeval", "SummEval"),
        ("IsiZuluNewsClassification.v2", "IsiZuluNewsClassification.v2"),
        ("rte3", "RTE3"),
        ("Ko-StrategyQA", "Ko-StrategyQA"),
        ("sts17-crosslingual-sts", "STS17"),
    ],
)
def test_their_names_of_data_sets_are_ours(tmp_path: Path, theirs: str, ours: str) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), dataset=theirs)
    for wrong in ("BiorxivClusteringP2P", "words-sts", "banking77-reranking"):
        publish(tmp_path, rows("apple"), rows("wrong"), dataset=wrong)
    assert served(a_study(tmp_path, datasets=[{"mteb": ours}]), "apple") == "a pome"


@pytest.mark.parametrize("theirs", ["summarise", "Summarize", "summarization", "summarisation"])
def test_their_names_of_transformations_are_ours(tmp_path: Path, theirs: str) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), transformation=theirs)
    publish(tmp_path, rows("apple"), rows("an apple"), transformation="summarized-expansion")
    study = a_study(tmp_path)
    assert served(study, "apple", "summarisation") == "a pome"
    assert served(study, "apple", "summarised_expansion") == "an apple"


def test_equal_texts_get_the_first_output_that_there_is(tmp_path: Path) -> None:
    publish(tmp_path, rows("cafe\u0301 ", "caf\u00e9", "caf\u00e9"), rows("", "a bar", "a pub"))
    assert served(a_study(tmp_path), "caf\u00e9") == "a bar"


def test_the_newest_file_counts(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("new"), name="a")
    publish(tmp_path, rows("apple"), rows("old"), name="b", generation_datetime="2026-01-01T00:00:00Z")
    publish(tmp_path, rows("apple"), rows("undated"), name="c", generation_datetime=None)
    assert served(a_study(tmp_path), "apple") == "new"
    publish(tmp_path, rows("apple"), rows("newer"), name="d")
    with pytest.raises(DataError, match="several files with the same date; keep one"):
        served(a_study(tmp_path), "apple")


def test_what_the_study_does_not_want_is_not_read(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"))
    for other in ({"seed": 2}, {"dataset": "others"}, {"transformation": "expansion"}):
        publish(tmp_path, rows("apple"), rows("a pome"), **other).write_bytes(b"damaged")
    assert generate(a_study(tmp_path)) == {"ok": 1, "unanswered": 1}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "data_.* is damaged .*; copy it again"),
        (lambda path: next(path.parent.glob("*.JSON")).unlink(), "has no metadata_.*JSON beside it; copy both"),
        (
            lambda path: next(path.parent.glob("*.JSON")).write_text("{"),
            r"metadata_.*JSON is damaged \(.*; copy it again",
        ),
        (lambda path: next(path.parent.glob("*.JSON")).write_text('{"generator_model": "x/y"}'), "by generator 'x/y'"),
        (
            lambda path: pq.write_table(pa.table({"original": ["a"], "paraphrasing_seed_2": ["b"]}), path),
            "one that ends in '_seed_1'",
        ),
        (
            lambda path: pq.write_table(pa.table({"original": [1], "paraphrasing_seed_1": [2]}), path),
            "column 'original' holds int64, not records",
        ),
        (
            lambda path: pq.write_table(pa.table({"original": [{"x": "a"}], "p_seed_1": [{"x": "a"}]}), path),
            "its records have no known text field; they have x",
        ),
    ],
)
def test_files_that_cannot_be_used_are_one_line(tmp_path: Path, damage: Any, says: str) -> None:
    damage(publish(tmp_path, rows("apple") * 50, rows("a pome") * 50))
    with pytest.raises(DataError, match=says) as error:
        generate(a_study(tmp_path))
    assert "\n" not in str(error.value)


def test_the_folder_above_and_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), dataset="WORDS")
    publish(tmp_path, rows("apple"), rows("a pome"), dataset="Words")
    with pytest.raises(DataError, match="WORDS and Words could both be 'words'"):
        served(a_study(tmp_path), "apple")
    above = small_study(tmp_path, generator=GENERATOR | {"path": "."})
    with pytest.raises(DataError, match=f"holds several generators; name one in generator.path: {FOLDER}"):
        RecordedOutputs.of(above)
