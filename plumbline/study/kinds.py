"""Parts of a study of which there are several kinds: each kind is a class, and an entry's `kind` names it."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler, ModelWrapValidatorHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from plumbline.study.base import StudyPart


class PartOfKinds(StudyPart):
    """Base of a part with kinds.

    A class right below it has what all kinds share, and sets `KINDS` and `NOUN`. Each class below that one is a kind,
    whose field `kind` has its name for a type; defining the class is all that a study file needs to name it.
    """

    KINDS: ClassVar[dict[str, type[Any]]]  #: the classes by the names of their kinds
    NOUN: ClassVar[str]  #: for complaints: `an engine`

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Enter the class among the kinds."""
        super().__pydantic_init_subclass__(**options)
        names = typing.get_args(cls.model_fields["kind"].annotation) if "kind" in cls.model_fields else ()
        cls.KINDS.update(dict.fromkeys(names, cls))

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Read an entry as its kind. Raises ValueError for an unknown kind, and for a key that only others have."""
        if "KINDS" not in vars(cls) or not isinstance(data, Mapping):
            return validate(data)
        usual = cls.model_fields["kind"]
        if "kind" not in data and usual.is_required():
            raise ValueError("has no `kind`; add one: it decides which other keys are allowed")
        name = data.get("kind", usual.default)
        kind = cls.KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"unknown kind {str(name)[:40]!r}; known: {', '.join(map(repr, cls.KINDS))}")
        for key in data:
            if key not in kind.model_fields and any(key in part.model_fields for part in cls.KINDS.values()):
                raise ValueError(f"{key}: does not apply to {cls.NOUN} of kind {name}; take it out")
        part: Self = kind.model_validate(data)
        return part

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of a kind, or the choice among all."""
        if "KINDS" not in vars(cls):
            return handler(schema)
        return {"anyOf": [handler(kind.__pydantic_core_schema__) for kind in cls.KINDS.values()]}
