"""Fields that came after a model's first version: left out of what is written while they say nothing new.

What was hashed or written before such a field was known keeps its hash and its words.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, SerializerFunctionWrapHandler, model_serializer


class Later(BaseModel):
    """A model whose fields `LATER` are left out while they have their defaults."""

    LATER: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_unsaid(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        unsaid = {
            name for name in self.LATER if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        }
        return {name: value for name, value in written(self).items() if name not in unsaid}
