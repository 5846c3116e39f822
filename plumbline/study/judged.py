"""The units that get verdicts: a transformation, or in another subject a group of items."""

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
#: The names of all units that this process knows: HTEB's transformations, and the units of the studies that it has
#: read. A table with any other name in the place of a transformation is damaged.
KNOWN: set[str] = set()
ENDS = ("_original", "_difference", "_reason")  # of an axis's columns


class VerdictUnit(StudyPart):
    """A unit that gets verdicts: its name, and its explanation to raters."""

    name: JudgedName = Field(description="its name in files, tables and pages")
    axis: JudgedName = Field(description="the property that it changes; results are averaged by axis")
    rated_with: str = Field(
        default="", description="name of the transformation with which it shares ratings and verdict"
    )
    raters: dict[str, Any] = Field(
        default={}, description="its explanation to raters, in the form of a rubric's pools, if the rubric has none"
    )

    @field_validator("name", "axis")
    @classmethod
    def _not_taken(cls, value: str) -> str:
        if value in _TAKEN or value.endswith(ENDS):
            raise ValueError(f"{value!r} is reserved for rows and columns of tables; choose another name")
        return value

    def model_post_init(self, _context: Any, /) -> None:
        """Note the name."""
        KNOWN.add(self.name)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Restore the unit in another process, and note its name."""
        super().__setstate__(state)
        KNOWN.add(self.name)

    @property
    def pool(self) -> str:
        """The unit whose ratings decide about it: itself, or its `rated_with`."""
        return self.rated_with or self.name
