"""Questions and guidelines as data: whole, in every language they claim, and refused where they are not."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from annotation.argilla.client import Argilla
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import LIMIT, Rubric, load_rubric
from annotation.questions.wordings import addressed_lines, with_own_words
from annotation.verdicts.preregistration import changes, fix_rules, rules_now
from plumbline.errors import StudyError
from plumbline.prompts import PROMPTS
from plumbline.study import Study
from plumbline.study.campaign import Tolerance
from plumbline.study.subject import VerdictUnit
from tests.annotation.campaigns import Make, small

HTEB: dict[str, Any] = yaml.safe_load((PROMPTS / "rubrics" / "hteb.yaml").read_text(encoding="utf-8"))


def words(node: Any) -> list[dict[str, str]]:
    """Every wording of a rubric, by language."""
    if isinstance(node, dict):
        if "en" in node:
            return [node]
        return [found for part in node.values() for found in words(part)]
    return [found for part in node for found in words(part)] if isinstance(node, list) else []


@pytest.mark.parametrize("file", sorted((PROMPTS / "rubrics").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_wording_of_ours_is_there_in_every_language(file: Path) -> None:
    found = words(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert len(found) >= 10
    papers = file.stem in ("hteb", "pteb")
    assert {tuple(one) for one in found} == {("en", "de", "fr", "es") if papers else ("en", "de")}


def test_ptebs_points_are_the_papers_words(variant: Make) -> None:
    """PTEB, appendix D.1: five ranges; 0.0 to 1.0 is the lowest, so 0 and 1 share it."""
    rubric = load_rubric(variant(rubric="pteb", transformations=["paraphrasing"]))
    assert rubric.scale == (0, 1, 2, 3, 4, 5) and rubric.question_names() == ["similarity"]
    assert rubric.description("paraphrasing", rubric.questions[0], "en") == (
        "0 = Completely different meanings; 1 = Completely different meanings; 2 = Slightly related but mostly"
        " different; 3 = Somewhat similar with some shared meaning; 4 = Very similar with minor differences;"
        " 5 = Essentially the same meaning."
    )
    assert rubric.expected("paraphrasing", "positive") == {"similarity": 5}
    assert rubric.expected("paraphrasing", "negative") == {"similarity": 0}


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("questions", 0, "points", 3), None, "question 'quality' must describe both ends of its scale"),
        (("questions", 0, "points", 3), {"de": "drei"}, "the English wording, on which"),
        (("guidelines", "deu"), "Leitfaden", "languages are named by their code: 'deu' should be 'de'"),
        (("pools", "expansion", "questions", "beauty"), {}, "pools.expansion: the rubric has no question 'beauty'"),
        (("pools", "expansion", "expected", "positive"), {"quality": 9}, "expected.positive.quality: the answer 9"),
        (("scale",), [1, 3, 2], "the scale's points must ascend"),
        (("pools", "expansion", "questions", "quality", "hint", "en"), "x" * LIMIT, "longer than the 1000 characters"),
        (("pools", "expansion", "expected", "easy"), {"quality": 1}, "no control is called 'easy'"),
        (("colour",), "red", "unknown key 'colour'"),
        (("threshold",), 9, "threshold 9 is outside the scale 1 to 5"),
        (("questions", 0, "title", "en"), " ", "questions.0.title.en is empty; give it a wording"),
    ],
)
def test_a_rubric_that_is_not_whole_is_one_line(
    place: tuple[Any, ...], value: Any, said: str, demo: Study, tmp_path: Path
) -> None:
    changed = copy.deepcopy(HTEB)
    node = changed
    for key in place[:-1]:
        node = node[key]
    if value is None:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    (tmp_path / "hteb.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    with pytest.raises(StudyError, match=said) as refused:
        load_rubric(demo, tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scale": [*range(101)]}, "question 'similarity' has a scale without points, or with more than 20"),
        ({"scale": {"from": -1, "to": 1}}, "question 'similarity' has a scale without points"),
        ({"comment": {"en": "x" * 501}}, "has 501 characters; Argilla takes at most 500"),
        ({"guidelines": {"en": "x" * 10_000}}, r"the guidelines have 10\d+ characters; Argilla takes at most 10000"),
    ],
)
def test_what_argilla_would_not_take_is_refused_before_the_rules_are_fixed(
    change: dict[str, Any], said: str, variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = yaml.safe_load((PROMPTS / "rubrics" / "pteb.yaml").read_text(encoding="utf-8")) | change
    if "scale" in change:
        ends = [*change["scale"].values()] if isinstance(change["scale"], dict) else change["scale"]
        content["questions"][0]["points"] = {point: {"en": "a point"} for point in (ends[0], ends[-1])}
    content["pools"]["paraphrasing"]["expected"] = {}
    content.pop("threshold")
    (tmp_path / "pteb.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    own = {"acceptance": {"threshold": 1.0, "min_pairs": 1}}
    study = small(variant, "much", rubric="pteb", transformations=["paraphrasing"], **own)
    monkeypatch.setattr("annotation.campaign.records.load_rubric", lambda study: load_rubric(study, tmp_path))
    with pytest.raises(StudyError, match=f"Argilla cannot show rubric .*{said}"):
        publish(study, cast("Argilla", SimpleNamespace(connection=None)))  # one elsewhere, which nobody asks
    assert not CampaignRecords(study).rules


def hteb_with(scale: object, *points: int, **more: object) -> dict[str, Any]:
    """HTEB's rubric with another scale, of which these points have words."""
    changed = copy.deepcopy(HTEB) | {"scale": scale, "threshold": None} | more
    for question in changed["questions"]:
        question["points"] = {point: {"en": "a point"} for point in points}
    for pool in changed["pools"].values():
        pool["expected"], pool["questions"] = {}, {}
    return changed


def on_scale(study: Study, folder: Path, points: list[int], threshold: float | None = None) -> None:
    content = hteb_with(points, *points, threshold=threshold)
    (folder / "hteb.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    load_rubric(study, folder)


def test_rules_of_another_scale_are_asked_for(variant: Make, tmp_path: Path) -> None:
    """On 0 to 3 a mean of 3 would be accepted of nothing: nobody said that it should be 3."""
    points = [0, 1, 2, 3]
    unsaid = variant(acceptance={"min_pairs": 5})
    with pytest.raises(StudyError, match="'hteb' has the scale 0 to 3, .* acceptance.threshold .*; add it"):
        on_scale(unsaid, tmp_path, points)
    with pytest.raises(StudyError, match="the scale 0 to 3, .*threshold \\(the least mean to accept; .* own is 2\\)"):
        on_scale(unsaid, tmp_path, points, threshold=2)
    on_scale(variant(acceptance={"threshold": 3.0}), tmp_path, points)


def test_limits_of_quality_are_a_quarter_of_each_questions_scale() -> None:
    papers = Rubric.model_validate(HTEB).quality
    assert papers.of("quality") == papers.of("fluency") == Tolerance(within=1, apart=1.0, low=2.0)
    slider = {"name": "close", "title": {"en": "How close?"}, "scale": {"from": 0, "to": 100, "step": 1}}
    slider["points"] = {0: {"en": "not at all"}, 100: {"en": "the same"}}
    both = Rubric.model_validate({**HTEB, "questions": [*HTEB["questions"], slider]}).quality
    assert both.of("quality") == Tolerance() and both.of("close") == Tolerance(25, 25.0, 25.0)
    assert both.each("within") == [1, 25]
    strict = Rubric.model_validate({**HTEB, "questions": [*HTEB["questions"], {**slider, "tolerance": 10}]}).quality
    assert strict.of("close") == Tolerance(10, 25.0, 25.0)


def test_on_one_to_five_and_in_the_papers_rubrics_the_threshold_is_theirs(variant: Make, tmp_path: Path) -> None:
    unsaid, said = variant(acceptance={"min_pairs": 5}), variant(acceptance={"min_pairs": 5, "threshold": 3.0})
    on_scale(unsaid, tmp_path, [1, 2, 3, 4, 5])
    assert load_rubric(unsaid).threshold == load_rubric(variant(rubric="pteb", acceptance={})).threshold == 3.0
    assert CampaignRecords(unsaid).rule_id == CampaignRecords(said).rule_id


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
