"""Wordings in further languages: whole, unseen by studies that do not name them, and said to be unchecked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.questions.wordings import addressed_lines, with_own_words
from annotation.verdicts.preregistration import changes, fix_rules, rules_now
from plumbline.errors import StudyError
from plumbline.prompts import PROMPTS
from plumbline.study import Study
from plumbline.study.subject import VerdictUnit
from tests.annotation.campaigns import Make

RUBRICS = PROMPTS / "rubrics"
SIMILARITY: dict[str, Any] = {"rubric": "pteb", "transformations": ["paraphrasing"]}
TURKISH = yaml.safe_load((RUBRICS / "pteb" / "tr.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of prompts with PTEB's rubric under another name, and no wordings yet."""
    folder = tmp_path / "prompts" / "rubrics"
    (folder / "mine").mkdir(parents=True)
    shutil.copy(RUBRICS / "pteb.yaml", folder / "mine.yaml")
    monkeypatch.setattr("plumbline.prompts.prompt_folders", lambda: [tmp_path / "prompts"])
    return folder / "mine"


def asking(variant: Make, **changes: Any) -> Study:
    return variant(**SIMILARITY | changes)


def write(folder: Path, code: str, content: Any) -> None:
    (folder / f"{code}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")


def test_every_further_language_has_all_of_htebs_rubric(variant: Make) -> None:
    """Every wording in its own words: what stands twice in a language (points of two pools) stands twice in English."""
    further = ("ar", "ha", "ru", "sw", "tr", "ur")
    study = variant(wordings=list(further))
    rubric, plain = load_rubric(study), load_rubric(variant())
    assert set(plain.guidelines) == {"en", "de", "fr", "es"} and set(rubric.guidelines) == {*plain.guidelines, *further}
    worded = [words for words in _worded(rubric.model_dump()) if set(words) > set(plain.guidelines)]
    assert len(worded) == len(list(_worded(plain.model_dump())))
    for code in further:
        same = {(one["en"], one[code]) for one in worded}
        assert len({own for _, own in same}) == len(same) == len({english for english, _ in same})
        assert not any(one[code] in (one["en"], one["fr"]) for one in worded)
        assert "Discard" in rubric.guidelines[code] and all(digit in rubric.guidelines[code] for digit in "15")
    lines = addressed_lines(study, rubric, [(code, code) for code in further])
    assert [line.partition("): ")[2] for line in lines] == [
        "Arabic (ar), Hausa (ha), Russian (ru), Swahili (sw), Turkish (tr), Urdu (ur)"
    ]


def _worded(node: Any) -> Iterator[dict[str, str]]:
    if isinstance(node, dict) and isinstance(node.get("en"), str):
        yield node
    elif isinstance(node, dict | tuple | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _worded(part)


def test_wordings_are_among_the_rules(variant: Make) -> None:
    before = asking(variant)
    fix_rules(CampaignRecords(before))
    what = changes(rules_now(CampaignRecords(before)), rules_now(CampaignRecords(asking(variant, wordings=["tr"]))))
    assert "rubric.comment.tr is new" in what
    assert all(one.endswith(".tr is new") for one in what)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guidelines": None}, r"tr\.yaml: guidelines is missing or empty"),
        ({"guidelines": " "}, r"tr\.yaml: guidelines is missing or empty"),
        ({"pools": {}}, r"tr\.yaml: pools\.paraphrasing is missing; its parts are: title, asked"),
        ({"questions": {"similarity": {"title": "?"}}}, r"questions\.similarity\.points is missing"),
        ({"scale": [1]}, r"tr\.yaml: scale has no English wording in the rubric"),
        ({"fields": {"original": "a", "transformed": "b", "third": "c"}}, r"fields\.third has no English wording"),
        ({"checked_by": None}, r"tr\.yaml: must name its checker under checked_by"),
    ],
)
def test_a_wording_that_is_not_whole_is_refused(variant: Make, own: Path, change: Any, said: str) -> None:
    write(own, "tr", TURKISH | change)
    with pytest.raises(StudyError, match=said) as caught:
        load_rubric(asking(variant, rubric="mine", wordings=["tr"]))
    assert "\n" not in str(caught.value)


def test_a_shared_queue_is_titled_in_the_raters_language_unless_the_study_titles_it() -> None:
    """A queue's own name is a word of the study file, and a transformation's tells who made its texts."""
    raters: dict[str, Any] = {"asked": {"en": "Say it again."}}
    kind, rubric = VerdictUnit(name="zebu", axis="own", queue="herd", raters=raters), dict[str, Any](pools={})
    title = with_own_words(rubric, {"zebu": kind}, Path("study.yaml"))["pools"]["herd"]["title"]
    assert {"en", "de", "ar"} < set(title) and len(set(title.values())) == len(title)
    assert not [words for words in title.values() if "herd" in words.lower() or "zebu" in words.lower()]
    named = kind.model_copy(update={"raters": {**raters, "title": {"en": "Retellings"}}})
    assert with_own_words(rubric, {"zebu": named}, Path("study.yaml"))["pools"]["herd"]["title"] == {"en": "Retellings"}


CAMPAIGN = ("ar", "de", "es", "fr", "ha", "ru", "sw", "tr")  # PTEB, appendix B


def test_every_language_of_ptebs_campaign_has_all_of_its_rubric(variant: Make) -> None:
    plain = asking(variant)
    rubric = load_rubric(asking(variant, wordings=[*CAMPAIGN, "urd"]))
    assert set(rubric.guidelines) == {"en", "ur", *CAMPAIGN}
    assert load_rubric(plain).guidelines == {code: rubric.guidelines[code] for code in ("en", "de", "fr", "es")}
    texts = {code: rubric.guidelines_for("paraphrasing", code) for code in rubric.guidelines}
    assert len(set(texts.values())) == len(texts)
    assert rubric.language_for("en", "ur") == "ur"
    assert rubric.questions[0].points[3]["tr"] == "Bir ölçüde benzer, anlamın bir kısmı ortak"
