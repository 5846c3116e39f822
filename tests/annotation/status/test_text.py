"""The answer on top: a sentence for what is decided, what is doubtful, and what to do next."""

from __future__ import annotations

from annotation.records import Verdict
from annotation.status.text import decided
from tests.annotation.campaigns import Make
from tests.evaluation.conftest import verdict


def test_what_is_decided_names_languages_only_where_they_differ(variant: Make) -> None:
    study = variant(name="heads")

    def made(transformation: str, language: str, decision: str, task: str = "") -> Verdict:
        return verdict(study, transformation, language=language, decision=decision, task_type=task)

    found = [
        made("paraphrasing", "en", "accepted"),
        made("paraphrasing", "de", "accepted"),
        made("cross_translation", "en", "rejected"),
        made("cross_translation", "de", "accepted"),
        made("expansion", "en", "undecided", "sts"),
        made("expansion", "de", "rejected", "retrieval"),
    ]
    assert decided(found) == (
        "Accepted: Paraphrasing, Cross-translation (de); rejected: Cross-translation (en), Expansion (de retrieval);"
        " undecided: Expansion (en sts)."
    )
    assert decided(found[2:3]) == "Accepted: nothing; rejected: Cross-translation."
