"""A model under one instruction, as mteb asks models; what it encodes stands in the model's store, once a prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

DOCUMENT = "document"


class Prompted:
    """An encoder whose queries, and texts without a role, stand under an instruction; documents stay as they are.

    So the documents of a search are encoded once for all instructions. `text` None is the model's own prompt, an empty
    one none at all. Nothing of the model is changed: others may use the encoder at the same time.
    """

    def __init__(self, encoder: Encoder, text: str | None, template: str = "") -> None:
        self._encoder, self._text, self._template = encoder, text, template
        self.similarity, self.similarity_pairwise = encoder.similarity, encoder.similarity_pairwise
        self.effective = ""
        """What stood before the texts that were asked for last, documents aside."""

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """The encoder's name and revision."""
        return self._encoder.mteb_model_meta

    def encode(
        self,
        inputs: Iterable[dict[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> Embeddings:
        """Embeddings of mteb's batches, in their order."""
        role = str(prompt_type.value) if prompt_type is not None else ""
        call = {
            "task_metadata": task_metadata, "hf_split": hf_split, "hf_subset": hf_subset, "prompt_type": prompt_type,
        }  # fmt: skip
        if role == DOCUMENT or self._text is None:
            prompt = self._encoder.prompt_for(**call)
        else:
            prompt = self._encoder.prompt_under(self._text, self._template, call)
        if role != DOCUMENT:
            self.effective = self._encoder.before(prompt)
        return self._encoder.embed([text for batch in inputs for text in batch["text"]], prompt=prompt, role=role)
