"""A study of which a verdict could never be reached is refused when it is read, with the numbers that would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign.rubric import load_rubric
from annotation.sampling.expected import ExpectedSample
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study, load_study
from plumbline.study.reach import known_texts, verdict_sizes

DEMO = yaml.safe_load((ROOT / "studies" / "demo.yaml").read_text(encoding="utf-8"))
TWO = [{"name": "pairs", "task": "sts", "path": "pairs.csv", "language": "en-de"}]
TASKS = [
    {"name": "pairs", "task": "sts", "path": "pairs.csv", "language": "en"},
    {"name": "intents", "task": "classification", "path": "requests.csv", "language": "en"},
    {"name": "others", "task": "sts", "path": "more.csv", "language": "de"},
]


def written(folder: Path, **parts: Any) -> Path:
    """The sample study with other parts, without judges, as a file."""
    content = {name: part for name, part in DEMO.items() if name not in ("judges", "training")} | parts
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def read(folder: Path, **parts: Any) -> Study:
    return load_study(written(folder, **parts))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        # The study of the issue: 20 pairs in German and English, 20 needed in each.
        (
            {"datasets": TWO, "sample": {"pairs": 20}},
            "min_pairs 20 is more than the 10 pairs .* split over 2 languages .de, en.*"
            r"write sample.pairs: 40 .or more., acceptance.min_pairs: 10 or acceptance.scope: transformation \(line",
        ),
        # 39 are 19 and 20.
        ({"datasets": TWO, "sample": {"pairs": 39}}, "than the 19 pairs .*sample.pairs: 40 "),
        # English has two tasks, German one: 60 pairs are 15, 15 and 30.
        (
            {"datasets": TASKS, "sample": {"pairs": 60}, "acceptance": {"scope": "task"}},
            r"than the 15 pairs .*2 languages .de, en. and their tasks.*pairs: 80 .*acceptance.scope: language \(line",
        ),
        (
            {"sample": {"pairs": 6}},
            r"min_pairs 20 is more than sample.pairs 6: .*sample.pairs: 20 .*min_pairs: 6 \(line .*$",
        ),
        # No more pairs than one for two languages: there is no number of pairs to lower to.
        (
            {"datasets": TWO, "sample": {"pairs": 1}},
            r"than the 0 pairs .*write sample.pairs: 40 \(or more\) \(line .*$",
        ),
        ({"raters": {"per_pair": 1}, "acceptance": {"min_raters": 1, "min_ac2": 0.4}}, "min_ac2` needs two ratings"),
        (
            {"raters": {"per_pair": 3, "people": ["ada"]}},
            r"min_raters: 2` .the default, .* raters whose answers count, 1, so .*`acceptance: \{min_raters: 1\}`",
        ),
        (
            {
                "subject": {"kind": "human", "tasks": [{"dataset": "pairs", "items": 10}]},
                "datasets": TWO,
                "acceptance": {"min_pairs": 12},
            },
            r"min_pairs 12 is more than the 10 items of 'pairs' .subject.tasks.*acceptance.min_pairs: 10 \(line .*$",
        ),
    ],
)
def test_a_verdict_that_cannot_be_reached_is_refused_with_what_would_do(
    tmp_path: Path, parts: dict[str, Any], says: str
) -> None:
    if "subject" in parts:
        file = tmp_path / "study.yaml"
        file.write_text(yaml.safe_dump({"name": "human", **parts}), encoding="utf-8")
    else:
        file = written(tmp_path, **parts)
    with pytest.raises(StudyError, match=says) as error:
        load_study(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "parts",
    [
        {"datasets": TWO, "sample": {"pairs": 40}},
        {"datasets": TWO, "sample": {"pairs": 20}, "acceptance": {"min_pairs": 10}},
        {"datasets": TWO, "sample": {"pairs": 20}, "acceptance": {"scope": "transformation"}},
        {"datasets": TASKS, "sample": {"pairs": 80}, "acceptance": {"scope": "task"}},
        # The two translations are rated as one: 10 pairs of each are 20.
        {"transformations": ["translation", "cross_translation"], "sample": {"pairs": 10}},
    ],
)
def test_the_numbers_that_are_advised_do(tmp_path: Path, parts: dict[str, Any]) -> None:
    study = read(tmp_path, **parts)
    sizes = verdict_sizes(study, known_texts(study))
    assert sizes and all(not one.lacks(study.acceptance) for one in sizes)


def test_shares_are_counted_by_hand(tmp_path: Path) -> None:
    """81 pairs: German 40, English 41, of which each of two tasks has 20 at least."""
    study = read(tmp_path, datasets=TASKS, transformations=["expansion"], sample={"pairs": 81})
    texts = known_texts(study)
    assert {one.key: one.pairs for one in verdict_sizes(study, texts)} == {("en",): 40, ("de",): 40}
    by_task = {("en", "sts"): 20, ("en", "classification"): 20, ("de", "sts"): 40}
    assert {one.key: one.pairs for one in verdict_sizes(study, texts, scope="task")} == by_task
    assert [one.pairs for one in verdict_sizes(study, texts, scope="transformation")] == [81]


@pytest.mark.parametrize("file", sorted((ROOT / "studies").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_studies_can_be_decided_as_mteb_knows_their_languages(file: Path) -> None:
    """hteb_multilingual has 42 languages, pteb_multilingual 25: what the file leaves to mteb counts too."""
    study = load_study(file)
    texts = known_texts(study)
    if file.stem != "human":
        expected = ExpectedSample.of(study, load_rubric(study))
        assert expected.unread == ""
        texts = expected.texts
    languages = {language for own in texts.values() for language, _ in own}
    assert len(languages) == {"hteb_multilingual": 42, "pteb_multilingual": 25}.get(file.stem, len(languages))
    sizes = verdict_sizes(study, texts)
    assert sizes and all(not one.lacks(study.acceptance) for one in sizes)
