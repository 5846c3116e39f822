"""The methods section and the page say what is true of a study: for each rule, with and without each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.judges.powered import JudgesOutcome, Judging
from annotation.records import Decision, Look, Origin, Review, RuleSet, Supply, Verdict
from annotation.report.material import CampaignMaterial
from annotation.report.methods import methods, methods_blocks
from annotation.report.page import page_facts
from annotation.statistics.summaries import Design
from annotation.verdicts.preregistration import rules_now
from annotation.verdicts.systems import compared
from generation.jobs import generator_hash
from plumbline.exhibits.templates import blocks
from plumbline.records import Pair
from plumbline.study import ROOT, Study, load_study
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.engines import ServerSpec
from tests.annotation.judgements import START, pair, ratings

FOLDER = Path(__file__).parent / "golden"
GOLDEN = FOLDER / "methods.md"
PAGE_GOLDEN = FOLDER / "page.md"
RULE = {"question": "quality", "at_least": 3}
OUR_ENGINE = ServerSpec(model="m", revision="r1", base_url="http://127.0.0.1:1/v1")


def material(study: Study, pairs: Sequence[Pair], rated: pd.DataFrame, **parts: Any) -> CampaignMaterial:
    """What was read of a study whose ratings all count, unless `parts` says otherwise."""
    given: dict[str, Any] = {
        "study": study,
        "rubric": load_rubric(study),
        "pairs": pairs,
        "ratings": rated,
        "counting": rated,
        "control_ratings": rated.iloc[:0],
        "manifest": {},
        "read_at": START,
        **dict.fromkeys(("controls", "supply", "verdicts", "groups", "signs", "decisions", "rules", "looks"), ()),
        **dict.fromkeys(("waves", "crowd"), ()),
    }
    return CampaignMaterial(**(given | parts))


def small(study: Study, **parts: Any) -> CampaignMaterial:
    pairs = [pair(0), pair(1), pair(0, "expansion")]
    return material(study, pairs, ratings(pairs, [3, 4, 5], [4, 4, 4]), **parts)


def by_rule(**rule: Any) -> Callable[[Study], CampaignMaterial]:
    return lambda demo: small(demo.model_copy(update={"acceptance": AcceptanceSpec.model_validate(rule)}))


def from_sources(*sources: str) -> Callable[[Study], CampaignMaterial]:
    def found(demo: Study) -> CampaignMaterial:
        pairs = [pair(0), pair(1)]
        rated = ratings(pairs, [3, 4], [4, 4])
        return material(demo, pairs, rated.assign(source=[sources[n % len(sources)] for n in range(len(rated))]))

    return found


def several(demo: Study) -> CampaignMaterial:
    pairs = [pair(0), pair(1), pair(0, "translation", "de", "fr"), pair(0, "cross_translation", "de", "es")]
    rated = ratings(pairs, [3, 4, 5, 5], [4, 4, 4, 4], raters=3)
    rated["simulated"] = rated["rater_id"] == "rater-0"
    rated.loc[rated["rater_id"] == "rater-1", "source"] = "form.csv"
    supply = [Supply(transformation="t", language="de", ok=90, failed=10, unanswered=0)]
    excluded = Decision(rater_id="rater-9", exclude=True, reason="why", decided_at=START, signs=())
    return material(demo, pairs, rated, supply=supply, decisions=[excluded])


def with_controls(demo: Study) -> CampaignMaterial:
    controls = [pair(number).model_copy(update={"control": "negative"}) for number in (7, 8, 9)]
    right = load_rubric(demo).expected(controls[0].pool, "negative")["quality"]
    assert isinstance(right, int)
    given = ratings(controls, [right, right + 1, right + 2], [5, 5, 5], raters=1)
    return small(demo, controls=controls, control_ratings=given[given["question"] == "quality"])


def looks(*days_and_ratings: tuple[int, int]) -> Callable[[Study], CampaignMaterial]:
    taken = [
        Look(at=datetime(2026, 2, day, tzinfo=UTC), n_ratings=n, rests_on={"ratings.parquet": str(n)}, decisions={})
        for day, n in days_and_ratings
    ]
    return lambda demo: small(demo, looks=taken)


def fixed(*changed: int) -> Callable[[Study], CampaignMaterial]:
    """Rules that were fixed in time, and changed on these days of February."""

    def found(demo: Study) -> CampaignMaterial:
        rules = RuleSet(fixed_at=datetime(2025, 12, 1, tzinfo=UTC), rules=rules_now(CampaignRecords(demo)))
        later = [{"fixed_at": datetime(2026, 2, day, tzinfo=UTC), "reason": "why"} for day in changed]
        return small(demo, rules=[rules, *(rules.model_copy(update=change) for change in later)])

    return found


def generated(revision: str, **request: Any) -> Callable[[Study], CampaignMaterial]:
    """Outputs of an engine at r1, in a study that names this revision by now; `request` has fields of its requests."""
    ours = ServerSpec(**OUR_ENGINE.model_dump(exclude={"settings", "sampling"}), settings={"request": request})
    origin = Origin(model="m", generator_hash=generator_hash(ours), prompt_hash="0123456789abcdef")
    verdict = Verdict.model_construct(
        transformation="expansion", decision="accepted", review=Review(), origin=origin
    )  # fmt: skip
    engine = ours.model_copy(update={"revision": revision})
    return lambda demo: small(demo.model_copy(update={"generator": engine}), verdicts=[verdict])


def of_a_data_set(demo: Study) -> CampaignMaterial:
    """Tasks that people do, whose items come from a file."""
    study = demo.model_copy(update={"acceptance": AcceptanceSpec.model_validate({"rules": [RULE]})})
    origin = Origin(model="intents.csv", generator_kind="human", generator_hash="0123456789", prompt_hash="")
    verdict = Verdict.model_construct(
        transformation="intents", decision="accepted", review=Review(), origin=origin
    )  # fmt: skip
    rules = [RuleSet(fixed_at=START, rules=rules_now(CampaignRecords(study)))]
    return small(study, verdicts=[verdict], rules=rules)


CASES: dict[str, Callable[[Study], CampaignMaterial]] = {
    "by the mean": by_rule(),
    "by the mean, with raters as a sample in its interval": by_rule(interval="pairs_and_raters"),
    "by the lower bound": by_rule(rule="lower_bound"),
    "over raters, all languages together": by_rule(
        rule="lower_bound", interval="pairs_and_raters", scope="transformation"
    ),
    "two rules, by task": by_rule(rules=[RULE, {**RULE, "question": "fluency"}], scope="task"),
    "one rule by the lower bound": by_rule(rules=[RULE], rule="lower_bound"),
    "one of each": by_rule(min_pairs=1, min_raters=1, min_ac2=0.4),
    "a pool with a rule of its own": by_rule(
        rules=[RULE, {"question": "quality", "at_most": 2, "pools": ["expansion"]}]
    ),
    "from Prolific": from_sources("prolific"),
    "from two platforms": from_sources("mturk", "argilla"),
    "from a rehearsal and a file": from_sources("REHEARSAL sandbox", "ours.csv"),
    "several languages, sources and kinds of raters": several,
    "with controls": with_controls,
    "one look": looks((1, 34)),
    "looks at different ratings": looks((1, 34), (3, 1200)),
    "looks at the same ratings": looks((1, 34), (2, 34)),
    "rules fixed in time": fixed(),
    "rules changed twice": fixed(1, 2),
    "made by this generator": generated("r1"),
    "made by another revision": generated("r2"),
    "made with other fields of requests": generated("r1", max_tokens=None, max_completion_tokens=9, stop=["</é>"]),
    "items of a data set": of_a_data_set,
}


def test_the_section_is_as_it_was(demo: Study) -> None:
    """Where a change is meant, replace the file by what the failure shows. Each case shows what the first has not."""
    sections, first = [], set[str]()
    for name, of in CASES.items():
        paragraphs = methods(of(demo))
        sections.append("\n\n".join([f"## {name}", *(text for text in paragraphs if text not in first)]))
        first = first or set(paragraphs)
    assert "\n\n".join(sections) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_the_section_says_how_systems_were_compared_and_only_what_was_done(
    demo: Study, variant: Callable[..., Study]
) -> None:
    kinds = [
        {"name": name, "axis": "noise", "function": f"generation.examples:{name.partition('-')[0]}", "queue": "systems"}
        | {"raters": {"asked": {"en": "The program changed the text."}}}
        for name in ("casing", "casing-two", "word_order")
    ]
    study = variant(name="systems", transformations=kinds)
    pairs = [pair(number, kind["name"]).model_copy(update={"original": f"text {number}", "pool": "systems"})
             for kind in kinds for number in range(8)]  # fmt: skip
    rated = ratings(pairs, [1 + number % 5 for number in range(24)], [3] * 24)
    for over in ("pairs", "pairs_and_raters"):
        design = Design(("quality",), rule=AcceptanceSpec.model_validate({"interval": over}))
        found = compared(rated[rated["question"] == "quality"], pairs, design, study.judging)
        told = methods_blocks(material(study, pairs, rated, side_by_side=found))["systems"]
        assert "(3 each)" in told and ("Cochran" in told) == (over == "pairs_and_raters")
        assert "not told which" in told and "drawn for each rater" in told
    a_file = material(study, pairs, rated.assign(source="ours.csv"), side_by_side=found)
    assert "not told which" not in methods_blocks(a_file)["systems"]
    assert methods_blocks(small(demo))["systems"] == "" and not any("MASI" in text for text in methods(a_file))


def with_judges(demo: Study) -> CampaignMaterial:
    """Two judges, of which one rated outputs of its own family, though not first."""
    judgements = pd.DataFrame(
        [("b", "Qwen/Qwen2-7B", "rules"), ("b", "Qwen/Qwen2-7B", "Qwen/Qwen3-8B"), ("a", "m.csv", "rules")],
        columns=["judge", "model", "generator"],
    ).assign(kind=["llm", "llm", "recorded"])
    judges = JudgesOutcome(Judging(pd.DataFrame(), judgements), pd.DataFrame(), simulated=True)
    return small(demo, judges=judges, doubts=["of the campaign"], unlooked=["too fast"])


def test_the_words_of_the_page_are_as_they_were(demo: Study, tmp_path: Path) -> None:
    """Where a change is meant, replace the file by what the failure shows. Each case shows what the first has not."""
    people = load_study(ROOT / "studies" / "human.yaml", tmp_path)
    tables = {"signs", "decisions", "examples", "reliability", "truth", "amendments"}
    cases = {
        "nothing but ratings": page_facts(small(demo, judges_left_out="no scores"), ()),
        "every table": page_facts(with_judges(demo), tables)
        | {"verdicts": [1, 2], "decided": ["1 a", "1 b"], "rated": 1},
        "rules changed": page_facts(fixed(1)(demo), tables),
        "rules as they were": page_facts(fixed()(demo), ()),
        "raters as a sample": page_facts(by_rule(interval="pairs_and_raters")(demo), ()),
        "answers to tasks": page_facts(small(demo), ()) | {"study": people, "rated": True},
    }
    page, first = "", set[str]()
    for name, facts in cases.items():
        words = blocks("annotation/report/page.jinja", facts)
        lines = [f"- {block}: {words[block]}\n" for block in words if words[block] and words[block] not in first]
        page += f"## {name}\n\n{''.join(lines)}\n"
        first = first or set(words.values())
    assert page == PAGE_GOLDEN.read_text(encoding="utf-8")
