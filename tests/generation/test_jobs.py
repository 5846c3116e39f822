from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from generation.jobs import Plan
from generation.production import generate
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.records import nfc, text_id
from plumbline.study.transformations import EIGHT, draw_from
from tests.generation.helpers import server, small_study, text

URL = "http://127.0.0.1:1/v1"
TARGETS = EIGHT["translation"].languages


# Of HTEB's eight: transformation, seed, the text's language, the drawn one, and the key of its output. These were
# computed when the eight stood in Python; no other form of saying the same may change one.
KEYS = (
    ("paraphrasing", 1337, "en", None, "047fa6c6adebd968c970fcd91b211a60"),
    ("paraphrasing", 1338, "de", None, "7425c96f4fc1a4ca0b63741f459c556b"),
    ("backtranslation", 1337, "en", "tr", "0b8df74f75cee22e5beb63b3b5c37d4f"),
    ("backtranslation", 1338, "de", "fr", "c1258a2a30353d917c964e53f83aa3b3"),
    ("style_change", 1337, "en", None, "b06f22171b2ce5b30f545e81e0ec70c4"),
    ("style_change", 1338, "de", None, "607379a056e920b5f0974e2bbda1e721"),
    ("expansion", 1337, "en", None, "b52dd004bca591a0620ef4d72a12fa41"),
    ("expansion", 1338, "de", None, "be895d4f4648a9ee3c69a08e05fde99c"),
    ("summarisation", 1337, "en", None, "aeec8fd8f5ab16780249573eb0af505c"),
    ("summarisation", 1338, "de", None, "b029ff18bc9f32291c9351d506c61c38"),
    ("summarised_expansion", 1337, "en", None, "7a5b937ecf4b11692f2a01dd8313efe9"),
    ("summarised_expansion", 1338, "de", None, "82d56286b01bcb9bbf79e72373209b93"),
    ("translation", 1337, "en", "ar", "1b3518ff1f4266071d432a662e7ed37a"),
    ("translation", 1338, "de", "ar", "fd1306e1de5aa58b8431ddc64feab5fc"),
    ("cross_translation", 1337, "en", "ar", "74064f5bd7a048abdf5d559fdc45d089"),
    ("cross_translation", 1338, "de", "ar", "a9754d04035d2470f787cca418ac0f4f"),
)


def key(tmp_path: Path, value: str = "Hello", dataset: str = "words", **changes: Any) -> str:
    transformation, seed = changes.pop("transformation", "paraphrasing"), changes.pop("seed", 1)
    study = small_study(tmp_path, transformations=list(EIGHT), generator=server(URL, **changes))
    return Plan(study).job(text(value, dataset), transformation, seed).key


@pytest.mark.parametrize(("name", "seed", "language", "drawn", "expected"), KEYS)
def test_outputs_of_htebs_eight_have_the_keys_that_they_always_had(
    tmp_path: Path, name: str, seed: int, language: str, drawn: str | None, expected: str
) -> None:
    plan = Plan(small_study(tmp_path, transformations=list(EIGHT), generator=server(URL)))
    job = plan.job(text("Where is my card?", language=language), name, seed)
    assert (job.language, job.key) == (drawn, expected)


@pytest.mark.parametrize(
    "change",
    [
        {"value": "Hello!"},
        {"seed": 2},
        {"transformation": "style_change"},
        {"model": "other"},
        {"revision": "2"},
        {"sampling": {"temperature": 0.5}},
        {"sampling": {"top_p": 0.5}},
        {"sampling": {"max_tokens": 5}},
    ],
    ids=str,
)
def test_what_changes_the_output_changes_the_key(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, **change) != key(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "http://elsewhere/v1"},
        {"settings": {"concurrency": 1, "api_key_env": "OTHER"}},
        {"dataset": "other"},
        {"sampling": {"temperature": 0}},
    ],
    ids=str,
)
def test_nothing_else_changes_the_key(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, **change) == key(tmp_path)


def test_the_prompt_changes_the_key(tmp_path: Path) -> None:
    plan, other = Plan(small_study(tmp_path)), Plan(small_study(tmp_path))
    other.prompt_hashes["paraphrasing"] = "another"
    keys = [one.job(text("Hello"), "paraphrasing", 1).key for one in (plan, other)]
    assert keys[0] != keys[1]


def test_the_drawn_language_changes_the_key(tmp_path: Path) -> None:
    plan = Plan(small_study(tmp_path, transformations=["translation"]))
    jobs = [plan.job(text("Hello", dataset=f"d{number}"), "translation", 1) for number in range(40)]
    assert len({job.key for job in jobs}) == len({job.language for job in jobs}) == 5


def test_a_text_draw_is_one_job_in_whatever_dataset(tmp_path: Path) -> None:
    for name in ("backtranslation", "cross_translation"):
        assert key(tmp_path, dataset="a", transformation=name) == key(tmp_path, dataset="b", transformation=name)


def test_equal_texts_are_transformed_once_in_the_order_of_the_texts(tmp_path: Path) -> None:
    texts = [text("b"), text("a"), text("b", dataset="other"), text("caf\u00e9"), text("cafe\u0301")]
    jobs = list(Plan(small_study(tmp_path)).jobs(texts, "paraphrasing", 1))
    assert [job.text for job in jobs] == ["b", "a", "caf\u00e9"]


RECORDED = {"kind": "recorded", "model": "m", "path": "outputs.jsonl", "settings": {"languages": "recorded"}}


def record(folder: Path, *languages: str, said: str = "apple") -> None:
    """Write recordings of one text's cross-translation, one a language."""
    row = {"text": said, "transformation": "cross_translation", "intermediate": None, "output": "a pome"}
    lines = [json.dumps({**row, "language": language}) for language in languages]
    (folder / "outputs.jsonl").write_text("\n".join(lines))


def test_a_study_may_take_the_languages_of_its_recordings(tmp_path: Path) -> None:
    study = small_study(tmp_path, texts=("apple",), transformations=["cross_translation"], generator=RECORDED)
    keys = set()
    for language in TARGETS:
        record(tmp_path, language)
        assert generate(study)["ok"] == 1
        jobs = [Plan(study).job(text("apple", "any"), "cross_translation", seed) for seed in (1, 1, 2)]
        assert {job.language for job in jobs} == {language}
        keys |= {job.key for job in jobs}
    assert len(keys) == len(TARGETS) * 2


def test_recorded_languages_are_of_one_text_and_not_its_own(tmp_path: Path) -> None:
    recorded = small_study(tmp_path, transformations=["cross_translation"], generator=RECORDED)
    drawn = small_study(
        tmp_path, transformations=["cross_translation"], generator=RECORDED | {"settings": {"languages": "drawn"}}
    )
    record(tmp_path, "de")
    for one in (text("bread"), text("apple", language="de")):
        jobs = [Plan(study).job(one, "cross_translation", 1) for study in (recorded, drawn)]
        assert jobs[0] == jobs[1]  # our draw, and the same key: how a language was found is no part of it
    record(tmp_path, "de", "tr")
    with pytest.raises(
        StudyError, match="has outputs of cross_translation for one text with two languages, 'de' and 'tr'; remove one"
    ):
        Plan(recorded).job(text("apple"), "cross_translation", 1)


def test_only_jobs_that_have_a_language_need_recordings(tmp_path: Path) -> None:
    plan = Plan(small_study(tmp_path, transformations=["paraphrasing", "cross_translation"], generator=RECORDED))
    assert plan.job(text("apple"), "paraphrasing", 1).language is None
    with pytest.raises(DataError, match="no recorded outputs at"):
        plan.job(text("apple"), "cross_translation", 1)


@given(one=st.text(), other=st.text())
def test_identities_are_equal_exactly_for_equal_texts_in_nfc(one: str, other: str) -> None:
    assert (text_id(one, "en") == text_id(other, "en")) == (nfc(one) == nfc(other))
    assert text_id(one, "en") != text_id(one, "de")


@given(st.text())
def test_whatever_is_hashed_is_plain_json(one: str) -> None:
    whole = json.dumps(["v1", one, {"b": 1, "a": one}, one], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if any(0xD800 <= ord(sign) < 0xE000 for sign in one):
        return  # half of a pair of surrogates, which no file holds
    assert identity("v1", one, {"b": 1, "a": one}, one) == hashlib.sha256(whole.encode()).hexdigest()[:32]
    digest = hashlib.sha256(json.dumps(["draw-v1", one, 7], ensure_ascii=False).encode()).digest()
    pool = [f"{number}" for number in range(1000)]
    assert draw_from(pool, one, 7) == pool[int.from_bytes(digest[:8], "big") % 1000]
