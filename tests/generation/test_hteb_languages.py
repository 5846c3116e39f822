"""The languages of the outputs that HTEB's authors publish: how their program draws them, and which a study takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from annotation.sampling.sample import draw_sample
from generation.hteb import PublishedText, follows_rule, read_texts
from generation.jobs import Plan
from generation.production import generate, read_transformed
from plumbline.errors import DataError, TextUnansweredError
from plumbline.study.transformations import EIGHT
from tests.generation.helpers import LETTERS
from tests.generation.helpers import text as a_text
from tests.generation.hteb_folder import (
    ARABIC,
    ENGLISH,
    FOLDER,
    GENERATOR,
    RUN,
    SPANISH,
    STSB,
    THEIR_LANGUAGES,
    a_file,
    a_study,
    drawn,
    publish,
    rows,
    served,
    taken,
)

TARGETS = EIGHT["translation"].languages


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
        r"into 'tr' with seed 1337, only into 'ar': HTEB's program draws its own languages \(see settings.languages\)"
    )
    with pytest.raises(TextUnansweredError, match=says):
        served(study, ENGLISH, "translation", 1337, language="tr")


def test_the_way_of_a_backtranslation_has_to_agree(tmp_path: Path) -> None:
    publish(tmp_path, rows("apple"), rows("a pome"), transformation="backtranslation")
    pivot = drawn(transformation="backtranslation")
    study = a_study(tmp_path)
    assert served(study, "apple", "backtranslation", language=pivot) == "a pome"
    other = next(language for language in TARGETS if language != pivot)
    with pytest.raises(TextUnansweredError, match=f"through '{other}' with seed 1, only through '{pivot}'"):
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
    ours = EIGHT["translation"].drawn(text=ARABIC, source="ar", **known)
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
