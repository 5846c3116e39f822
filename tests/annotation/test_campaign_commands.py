"""What `publish` says of those who may answer."""

from __future__ import annotations

import pytest

from annotation.argilla.accounts import Admission
from annotation.argilla.publish import Publication
from annotation.campaign_commands import warn_of_readers
from tests.annotation.campaigns import Make


@pytest.mark.parametrize(
    ("people", "workspaces", "said"),
    [(("ada", "bob"), 1, False), (("ada", "bob"), 2, True), (None, 1, True)],
)
def test_unknown_languages_are_said_where_they_matter(
    variant: Make, capsys: pytest.CaptureFixture[str], people: tuple[str, ...] | None, workspaces: int, said: bool
) -> None:
    study = variant(raters={"per_pair": 2, **({"people": list(people)} if people else {})})
    readers = {f"demo-{number}": 2 for number in range(workspaces)}
    warn_of_readers(study.raters, Publication({}, Admission(readers, unknown=2, people=2)))
    assert ("2 annotators whose languages are unknown can access every queue" in capsys.readouterr().out) is said
