"""The folders that HTEB's authors publish, written here as their program (v1.1) writes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.sample import draw_sample
from generation.exceptions import DataError, TextUnansweredError
from generation.generators.published_records import (
    PublishedFile,
    PublishedText,
    follows_rule,
    read_texts,
    recorded_language,
)
from generation.generators.recorded import Recorded
from generation.jobs import Job, Plan
from generation.run import generate, read_transformed
from generation.study import Study
from generation.transformations import TARGETS, TRANSFORMATIONS
from tests.generation.helpers import LETTERS, small_study
from tests.generation.helpers import text as a_text

MODEL = "cyankiwi/gemma-4-31B-it-AWQ-4bit"
FOLDER = "cyankiwi~2Fgemma-4-31B-it-AWQ-4bit"
GENERATOR = {"kind": "recorded", "model": MODEL, "path": FOLDER}
THEIR_LANGUAGES = GENERATOR | {"languages": "recorded"}
ENGLISH = "Where can I find my new bank card, please?"
SPANISH = "¿Dónde puedo encontrar mi nueva tarjeta del banco, por favor?"
ARABIC = "أين يمكنني أن أجد بطاقتي المصرفية الجديدة من فضلك؟"

# Of this data set it is known that the program translates it into Arabic with seeds 1337 to 1339.
STSB = {"dataset": "stsbenchmark-sts", "transformation": "translation"}
RUN = {"transformation": "translation", "draws_by_dataset": True}

Records = Sequence[dict[str, Any]]


def publish(
    folder: Path,
    originals: Records,
    changed: Records,
    *,
    dataset: str = "words",
    transformation: str = "paraphrasing",
    seed: int = 1,
    name: str = "0" * 64,
    **metadata: Any,
) -> Path:
    """Write one file and its metadata; returns the file."""
    place = folder / FOLDER / dataset / transformation / str(seed)
    place.mkdir(parents=True, exist_ok=True)
    kind = pa.array([*originals, *changed]).type
    columns = [pa.array(originals, kind), pa.array(changed, kind)]
    path = place / f"data_{name}.parquet"
    pq.write_table(pa.Table.from_arrays(columns, ["original", f"{transformation}_seed_{seed}"]), path)
    known = {
        "generator_model": MODEL,
        "transformation": transformation,
        "dataset": dataset,
        "seed_transform": seed,
        "generation_datetime": "2026-09-15T11:32:54Z",
        "max_retries": 3,
    }
    (place / f"metadata_{name}.JSON").write_text(json.dumps(known | metadata))
    return path


def rows(*texts: str, language: str = "eng") -> list[dict[str, Any]]:
    return [{"text": text, "label": 1, "language": language, "_hteb_split": "test"} for text in texts]


def a_study(folder: Path, **changes: Any) -> Study:
    return small_study(folder, **({"texts": ("apple", "bread"), "generator": GENERATOR} | changes))


def served(study: Study, text: str, transformation: str = "paraphrasing", seed: int = 1, **changes: Any) -> str:
    """The output that a job gets."""
    job = {"key": "", "text_id": "", "source_language": "en", "language": None, **changes}
    published = Recorded.of(study).published
    assert published is not None
    outcome = published.outcome(Job(text=text, transformation=transformation, seed=seed, **job))
    return asyncio.run(outcome).output


def a_file(**changes: Any) -> PublishedFile:
    default = {
        "path": Path("file"),
        "dataset": "words",
        "transformation": "cross_translation",
        "seed": 1,
        "draws_by_dataset": False,
        "transforms_passages": True,
        "wants_passages": True,
    }
    return PublishedFile(**(default | changes))


def drawn(number: int = 0, label: str = "eng", output: str = "", *, by_rule: bool = True, **changes: Any) -> str:
    found = PublishedText("text", output, number, label)
    return recorded_language(a_file(**changes), found, "en", by_rule=by_rule)


def taken(study: Study, text: str, transformation: str, *, seed: int = 1, **changes: Any) -> str | None:
    """The language that a text gets in any command."""
    return Plan(study).job(a_text(text, **changes), transformation, seed).language


def test_a_run_takes_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple", "bread", "cake"), rows('"a pome"', "", "a tart"))
    study = a_study(tmp_path, transformations=["paraphrasing", "expansion"])
    assert generate(study) == {"ok": 1, "failed": 1, "unanswered": 2}
    good, bad = read_transformed(study, "paraphrasing", 1)
    assert (good.text, good.output, good.raw, good.status) == ("apple", "a pome", '"a pome"', "ok")
    # Their program saves what it gave up on as empty: the generator's failure, and an error type.
    assert (bad.output, bad.status, bad.reason, bad.first_flags) == ("", "failed", "empty after 1 attempt", ("empty",))
    reasons = {row.reason for row in read_transformed(study, "expansion", 1)}
    assert reasons == {"nothing recorded for expansion with seed 1 (the folder has none of data set words)"}
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


def test_one_target_of_a_data_set_is_drawn_as_their_program_draws_it() -> None:
    known = STSB | {"draws_by_dataset": True}
    assert [drawn(number, seed=seed, **known) for seed in (1337, 1338, 1339) for number in (0, 9)] == ["ar"] * 6
    assert drawn(seed=1337, label="ara", **known) != "ar"  # never the source language ...
    assert drawn(seed=1337, label="eng-ara", **known) != "ar"  # ... nor the other side's


def test_targets_of_texts_are_the_previous_seeds_moved_by_one() -> None:
    """That, too, is known of their program; it shows in translations of older files for all texts at once."""
    for name in ("cross_translation", "backtranslation"):
        later = [drawn(number, transformation=name, seed=1338) for number in range(50)]
        assert later == [drawn(number + 1, transformation=name, seed=1337) for number in range(50)]
        assert set(later) == set(TARGETS)  # English texts never go through English
    older = {drawn(number, transformation="translation", seed=1337) for number in range(50)}
    assert older == {drawn(0, transformation="cross_translation", seed=1337)}


@pytest.mark.parametrize(
    ("outputs", "follows"),
    [
        ((), True),
        ((ARABIC, ARABIC, SPANISH), True),
        ((ARABIC, SPANISH), True),
        ((ARABIC, SPANISH, SPANISH), False),
        ((ENGLISH, "OK", ENGLISH, ARABIC), True),  # English cannot have been drawn for English texts
        ((ENGLISH, "OK", ENGLISH, SPANISH), False),
    ],
)
def test_most_translations_of_a_file_tell_whether_it_goes_by_the_rule(outputs: Sequence[str], follows: bool) -> None:
    file = a_file(**STSB, draws_by_dataset=True, seed=1337)
    texts = [PublishedText("text", output, number, "eng") for number, output in enumerate(outputs)]
    assert follows_rule(file, texts, "en") == follows
    assert follows_rule(a_file(transformation="backtranslation"), texts, "en")


def test_what_a_translation_is_in_counts_only_in_a_file_of_another_rule() -> None:
    known = STSB | {"draws_by_dataset": True, "seed": 1337}
    outputs = (ARABIC, SPANISH, ENGLISH, "OK")
    assert [drawn(output=output, **known) for output in outputs] == ["ar"] * 4
    assert [drawn(output=output, by_rule=False, **known) for output in outputs] == ["ar", "es", "ar", "ar"]


def test_an_output_is_served_for_its_language_alone(tmp_path: Path) -> None:
    publish(tmp_path, rows(ENGLISH), rows(ARABIC), translation_language_selection="dataset", seed=1337, **STSB)
    study = a_study(tmp_path, datasets=[{"name": "STSB", "mteb": "STSBenchmark", "language": "en"}])
    assert served(study, ENGLISH, "translation", 1337, language="ar") == ARABIC
    says = (
        r"into 'tr' with seed 1337, but into 'ar': HTEB's program draws its own languages \(see generator.languages\)"
    )
    with pytest.raises(TextUnansweredError, match=says):
        served(study, ENGLISH, "translation", 1337, language="tr")


def test_the_way_of_a_backtranslation_has_to_agree(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), transformation="backtranslation")
    pivot = drawn(transformation="backtranslation")
    study = a_study(tmp_path)
    assert served(study, "apple", "backtranslation", language=pivot) == "a pome"
    other = next(language for language in TARGETS if language != pivot)
    with pytest.raises(TextUnansweredError, match=f"through '{other}' with seed 1, but through '{pivot}'"):
        served(study, "apple", "backtranslation", language=other)


def test_the_sides_of_a_pair_have_their_own_languages(tmp_path: Path) -> None:
    records = [{"sentence1": f"a{n}", "sentence2": f"b{n}", "language": "de-tr"} for n in range(30)]
    for name in ("cross_translation", "translation"):
        path = publish(tmp_path, records, records, transformation=name)
        labels = [text.label for text in read_texts(a_file(path=path, transformation=name))]
        assert labels == (["de-tr"] * 60 if name == "translation" else ["de"] * 30 + ["tr"] * 30)


def test_a_study_of_their_languages_takes_all_of_their_outputs(tmp_path: Path) -> None:
    names = ("paraphrasing", "backtranslation", "translation", "cross_translation")
    for name in names:
        rule = {"translation_language_selection": "dataset"} if name == "translation" else {}
        publish(tmp_path, rows(*LETTERS), rows(*(f"{name} of {word}" for word in LETTERS)), transformation=name, **rule)
    changes = {"texts": LETTERS, "transformations": list(names)}
    drawn_by_us = a_study(tmp_path / "drawn", **changes, generator=GENERATOR | {"path": f"../{FOLDER}"})
    assert generate(drawn_by_us)["unanswered"] > 10  # our draws agree with theirs by chance alone

    study = a_study(tmp_path, **changes, generator=THEIR_LANGUAGES)
    assert generate(study) == {"ok": 40}  # 4 transformations of 10 texts
    for name in names[1:]:
        file = {"transformation": name, "draws_by_dataset": name == "translation"}
        made = [(row.language, row.output) for row in read_transformed(study, name, 1)]
        assert made == [(drawn(number, **file), f"{name} of {word}") for number, word in enumerate(LETTERS)]
    again = a_study(tmp_path, **changes, generator=THEIR_LANGUAGES)
    assert generate(again) == {"reused": 40}
    # People rate only what the study wants now: outputs of which a later command finds the same keys.
    assert {pair.transformation for pair in draw_sample(again)} == set(names)


def test_an_output_is_judged_by_the_language_that_it_was_to_be_in(tmp_path: Path) -> None:
    texts = tuple(f"Where can I find my new {thing}?" for thing in ("bank card", "cheque book", "account number"))
    changed = rows(ARABIC, ARABIC, SPANISH)
    publish(tmp_path, rows(*texts), changed, translation_language_selection="dataset", seed=1337, **STSB)
    named = {"name": "stsbenchmark-sts", "task": "clustering", "path": "words.csv", "language": "en"}
    changes = {"transformations": ["translation"], "seeds": [1337], "datasets": [named], "texts": texts}
    study = a_study(tmp_path, **changes, generator=THEIR_LANGUAGES)
    assert generate(study) == {"ok": 3}
    made = [(row.language, row.flags) for row in read_transformed(study, "translation", 1337)]
    assert made == [("ar", ()), ("ar", ()), ("ar", ("wrong_language",))]


def test_our_draw_stands_where_nothing_is_recorded(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), transformation="cross_translation")
    study = a_study(tmp_path, transformations=["cross_translation"], generator=THEIR_LANGUAGES)
    ours = a_study(tmp_path / "ours", transformations=["cross_translation"])
    for seed in (1, 2):  # of seed 2 there is nothing at all
        assert taken(study, "bread", "cross_translation", seed=seed) == taken(
            ours, "bread", "cross_translation", seed=seed
        )
    assert generate(study) == {"ok": 1, "unanswered": 1}


@pytest.mark.parametrize(("outputs", "first"), [(("a", "b"), 0), (("", "b"), 1), (("a", " "), 0), ((" ", ""), 0)])
def test_of_equal_texts_the_first_with_an_output_has_the_language(
    tmp_path: Path, outputs: tuple[str, str], first: int
) -> None:
    seed = next(seed for seed in range(99) if drawn(0, seed=seed) != drawn(1, seed=seed))
    publish(tmp_path, rows("apple", " apple"), rows(*outputs), transformation="cross_translation", seed=seed)
    study = a_study(tmp_path, transformations=["cross_translation"], generator=THEIR_LANGUAGES)
    language = taken(study, "apple", "cross_translation", seed=seed)
    assert language == drawn(first, seed=seed)
    assert taken(study, "apple", "cross_translation", seed=seed, dataset="others") == language
    assert served(study, "apple", "cross_translation", seed, language=language) == outputs[first].strip()


def test_a_run_has_the_language_of_its_own_data_set(tmp_path: Path) -> None:
    """Two data sets with one text, which the program translates into two languages."""
    by_name = {name: drawn(dataset=name, **RUN) for name in ("a", "b", "c", "d", "e", "f")}
    one = "a"
    other = next(name for name, language in by_name.items() if language != by_name[one])
    none = "words"
    for name in (one, other):
        rule = {"dataset": name, "transformation": "translation", "translation_language_selection": "dataset"}
        publish(tmp_path, rows("apple"), rows(f"of {name}"), **rule)
    named = [{"name": name, "task": "clustering", "path": "words.csv", "language": "en"} for name in (one, other, none)]
    changes = {"datasets": named, "transformations": ["translation"]}
    study = a_study(tmp_path, **changes, generator=THEIR_LANGUAGES)
    for name in (one, other):
        assert taken(study, "apple", "translation", dataset=name) == by_name[name]
        assert served(study, "apple", "translation", language=by_name[name]) == f"of {name}"
    ours = a_study(tmp_path / "ours", **changes)
    assert taken(study, "apple", "translation", dataset=none) == taken(ours, "apple", "translation", dataset=none)


def test_no_text_is_translated_into_its_own_language(tmp_path: Path) -> None:
    """Their program draws Arabic for dialects of Arabic."""
    publish(tmp_path, rows(ARABIC, language="ary"), rows(ARABIC), translation_language_selection="d", seed=1337, **STSB)
    named = [{"name": "STSB", "mteb": "STSBenchmark", "language": "ar"}]
    study = a_study(tmp_path, datasets=named, transformations=["translation"], generator=THEIR_LANGUAGES)
    known = {"seed": 1337, "dataset": "STSB"}
    assert taken(study, ARABIC, "translation", language="en", **known) == "ar"
    ours = TRANSFORMATIONS["translation"].language(text=ARABIC, source="ar", **known)
    assert taken(study, ARABIC, "translation", language="ar", **known) == ours != "ar"


def test_languages_are_read_once_and_only_where_one_is_drawn(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome")).write_bytes(b"damaged")
    path = publish(tmp_path, rows("apple", "bread"), rows("a", "b"), transformation="cross_translation")
    study = a_study(tmp_path, transformations=["paraphrasing", "cross_translation"], generator=THEIR_LANGUAGES)
    plan = Plan(study)
    assert plan.job(a_text("apple"), "paraphrasing", 1).language is None
    assert plan.job(a_text("apple"), "cross_translation", 1).language == drawn(0)
    path.write_bytes(b"damaged")
    assert plan.job(a_text("bread"), "cross_translation", 1).language == drawn(1)
    with pytest.raises(DataError, match="copy it again"):
        taken(study, "bread", "cross_translation")


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
    with pytest.raises(DataError, match="several files of the same date; keep one"):
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
        (
            lambda path: next(path.parent.glob("*.JSON")).write_text('{"transform_corpus": []}'),
            "damaged .transform_corpus",
        ),
        (lambda path: next(path.parent.glob("*.JSON")).write_text('{"generator_model": "x/y"}'), "of generator 'x/y'"),
        (lambda path: pq.write_table(pa.table({"original": ["a"]}), path), "has the columns original; HTEB's program"),
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
            "no text is known among the fields of its records: x",
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
    with pytest.raises(DataError, match=f"holds generators' folders; name one in generator.path: {FOLDER}"):
        Recorded.of(above)
