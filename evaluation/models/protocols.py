"""What an encoder needs of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from evaluation.models.embeddings import Embeddings


class TextModel(Protocol):
    """What `Encoder` needs of a model."""

    prompts: dict[str, str]
    """Prompts by the names that mteb looks them up by."""
    default_prompt: str
    """The prompt where no name fits; empty for none."""

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """One row for each text. `role` is `query`, `document` or empty, for models with a way for each."""
        ...

    def routed(self) -> bool:
        """Whether `role` changes the embedding."""
        ...

    def similarity(self, first: Any, second: Any) -> Any:
        """The model's own similarity of all of `first` with all of `second`."""
        ...

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The model's own similarity row by row."""
        ...


@runtime_checkable
class PromptingModel(Protocol):
    """A model that picks its prompts itself."""

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """What to give `TextModel.embed` for a prompt; calls that get the same name get the same embeddings."""
        ...

    def way_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """The same under an instruction, put into `template` or into the model's own; `call` is what `way` is given."""
        ...

    def before(self, way: str) -> str:
        """What stands before a text, that way."""
        ...

    def refuses(self) -> str:
        """Why it can be given no instruction; empty where it can."""
        ...
