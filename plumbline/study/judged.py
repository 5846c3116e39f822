"""What gets verdicts: a transformation, or in another subject a group of items. Its names stand in every table."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from plumbline.study.base import StudyPart

ORIGINAL = "original"
NAME = r"^[a-z][a-z0-9_-]{0,63}$"
JudgedName = Annotated[str, Field(pattern=NAME)]
# What tables call other things: their columns and rows.
_TAKEN = {
    *("original", "total", "hteb_total", "overall", "everything", "model", "models", "n_models", "n_datasets", "name"),
    *("n_failed", "included_rejected", "simulated", "family", "parameters", "threshold", "accepted", "n_scopes"),
    *("reason", "axis", "transformation"),
}
#: The names of all that this process knows to be judged: HTEB's transformations, and what the studies have that it has
#: read. What else stands as a transformation in a table is damage.
KNOWN: set[str] = set()
ENDS = ("_original", "_difference", "_reason")  # of an axis's columns


class VerdictUnit(StudyPart):
    """A unit that gets verdicts: its name, and its explanation to raters."""

    name: JudgedName = Field(description="its name in files, tables and pages")
    axis: JudgedName = Field(description="the property that it changes; results are averaged by axis")
    rated_with: str = Field(default="", description="another transformation; the ratings of both decide about both")
    raters: dict[str, Any] = Field(
        default={}, description="words for raters, as a rubric has them for a pool, if the rubric has none"
    )

    @field_validator("name", "axis")
    @classmethod
    def _not_taken(cls, value: str) -> str:
        if value in _TAKEN or value.endswith(ENDS):
            raise ValueError(f"{value!r} stands for something else in tables; choose another name")
        return value

    def model_post_init(self, _context: Any, /) -> None:
        """Note the name."""
        KNOWN.add(self.name)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """As it was in another process; note the name."""
        super().__setstate__(state)
        KNOWN.add(self.name)

    @property
    def pool(self) -> str:
        """Whose ratings decide about it: its own, or those of what it is rated with."""
        return self.rated_with or self.name
