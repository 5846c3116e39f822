"""The study's own qualification on MTurk: who has it is kept out, since no HIT of the study takes them."""

from __future__ import annotations

import functools

from annotation.crowd.mturk.client import Requester
from annotation.crowd.mturk.errors import DoneBeforeError
from annotation.crowd.platform import UncertainError


class Qualification:
    """One by its name, made where there is none; looked up once."""

    def __init__(self, requester: Requester, name: str) -> None:
        self._requester, self._name = requester, name

    def ensure(self) -> None:
        """See that it is there."""
        _ = self.id

    @functools.cached_property
    def id(self) -> str:
        """MTurk's id of it. Raises UncertainError where it was made and no list shows it yet."""
        return self._found() or self._made()

    def _found(self) -> str | None:
        rows = self._requester.pages(
            "list_qualification_types",
            "QualificationTypes",
            Query=self._name,
            MustBeRequestable=False,
            MustBeOwnedByCaller=True,
        )
        return next((str(row["QualificationTypeId"]) for row in rows if row["Name"] == self._name), None)

    def _made(self) -> str:
        try:
            made = self._requester.call(
                "create_qualification_type",
                Name=self._name,
                Description="Has rated as much of this study as one person may.",
                QualificationTypeStatus="Active",
            )
        except DoneBeforeError:
            found = self._found()
            if found is None:
                raise UncertainError(f"MTurk has a qualification {self._name!r} that its list does not show yet; run"
                                     " the command again in some minutes") from None  # fmt: skip
            return found
        return str(made["QualificationType"]["QualificationTypeId"])
