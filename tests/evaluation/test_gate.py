from __future__ import annotations

import pytest

from annotation.records import Verdict
from evaluation.gate import decide
from generation.jobs import Plan
from plumbline.study import Study

from .conftest import verdict


def _decide(
    study: Study, verdicts: list[Verdict], languages: set[str], include_rejected: bool = False
) -> tuple[str, str]:
    decision = decide(
        verdicts,
        Plan(study),
        transformation="translation",
        languages={"en": languages},
        include_rejected=include_rejected,
    )
    return decision.status, decision.reason


def test_an_accepted_verdict_lets_through(study: Study) -> None:
    assert _decide(study, [verdict(study, "translation")], {"de"}) == ("evaluated", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transformation": "paraphrasing"}, "no verdict for translation in English"),
        ({"language": "de"}, "rated in German only"),
        ({"generator_hash": "f" * 32, "model": "else"}, "another generator or sampling, 'else' (ffffffff)"),
        ({"prompt_hash": "f" * 32}, "other prompts (ffffffff"),
        ({"output_languages": ("fr",)}, "nobody rated outputs in German (rated: French)"),
        (
            {"decision": "rejected", "reasons": ("mean quality 1.8 is below 3", "x")},
            "rejected: mean quality 1.8 is below 3; x",
        ),
        ({"decision": "undecided", "reasons": ("4 pairs, 20 are needed",)}, "undecided: 4 pairs, 20 are needed"),
    ],
)
def test_what_no_verdict_covers_is_refused(study: Study, changes: dict[str, object], words: str) -> None:
    verdicts = [verdict(study, "translation", **changes)]
    status, reason = _decide(study, verdicts, {"de"})
    assert status == "left_out"
    assert words in reason
    assert _decide(study, verdicts, {"de"}, include_rejected=True) == ("included_rejected", reason)


def test_every_language_of_the_texts_needs_its_verdict(study: Study) -> None:
    both = [verdict(study, "translation"), verdict(study, "translation", language="de")]
    languages = {"de": {"fr"}, "en": {"fr"}}

    def decision(verdicts: list[Verdict], languages: dict[str, set[str]]) -> tuple[str, str]:
        made = decide(verdicts, Plan(study), transformation="translation", languages=languages)
        return made.status, made.reason

    assert decision(both, languages) == ("evaluated", "")
    status, reason = decision(both[:1], languages)
    assert (status, reason.split(":")[0]) == (
        "left_out",
        "no verdict for translation in German (rated in English only)",
    )
    reason = decision(both[:1], {**languages, "sw": {"fr"}, "xh": {"fr"}})[1]
    assert reason.endswith("(and 2 more of the data set's languages: Swahili, isiXhosa)")


def test_no_verdicts_refuse_everything(study: Study) -> None:
    assert _decide(study, [], {"de"})[0] == "left_out"


def test_the_strictest_of_two_verdicts_holds(study: Study) -> None:
    both = [verdict(study, "translation"), verdict(study, "translation", decision="rejected", reasons=("bad",))]
    assert _decide(study, both, {"de"}) == ("left_out", "rejected: bad")


def test_a_verdict_of_the_generator_in_use_counts_beside_one_of_another(study: Study) -> None:
    both = [verdict(study, "translation", generator_hash="f" * 32), verdict(study, "translation")]
    assert _decide(study, both, {"de"}) == ("evaluated", "")
