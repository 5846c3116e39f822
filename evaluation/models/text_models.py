"""What a model of texts can be asked for, whatever runs it (`TextModel`); new kinds are classes below it."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from evaluation.models.embeddings import Embeddings
from plumbline.errors import PlumblineError
from plumbline.study.evaluation import INSTRUCTION

_DOCUMENT = ("document", "passage", "corpus")  # names of documents' prompts


class TextModel(abc.ABC):
    """A model for `Encoder`. Unless a class differs, it knows no roles, and cosine compares its embeddings.

    A class that a model's `RUNS` names is called with the model's keys, the folder of the study file and the type of
    weights. It raises StudyError for wrong settings in the study, ServiceError for a model that cannot be loaded.
    """

    prompts: dict[str, str]
    """Prompts by the names under which mteb looks them up."""
    default_prompt: str = ""
    """The prompt if no name fits; empty for none."""
    engine: str = ""
    """The engine of its linear layers; empty for torch's own operators."""
    revision: str = ""
    """Its revision by its own account; empty if only the study has one."""

    @abc.abstractmethod
    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return one row for each text. `role` is `query`, `document` or empty, for models that distinguish them."""

    def arriving(
        self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int, faults: list[PlumblineError]
    ) -> Iterator[tuple[int, Embeddings]] | None:
        """Return rows as they arrive, after the number of their first text; None if `embed` returns all at once."""
        return None

    def choose_engine(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int, model_id: str) -> str:
        """Choose the fastest engine for texts like these, once; return a line with a new choice, empty if none.

        `model_id` names the model in the choices that this machine keeps; empty for none.
        """
        return ""

    def routed(self) -> bool:
        """Return whether `role` changes the embedding."""
        return False

    def similarities(self) -> tuple[Any, Any] | None:
        """Return both similarities as functions that need no model; None if its class computes its own."""
        return cosines, pairwise_cosines

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the model's own similarity of all of `first` with all of `second`."""
        return self._compared(0, first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Return the model's own similarity row by row."""
        return self._compared(1, first, second)

    def _compared(self, which: int, first: Any, second: Any) -> Any:
        if (functions := self.similarities()) is None:
            raise NotImplementedError(f"{type(self).__name__} computes its own similarity")
        return functions[which](first, second)

    def prompt_of(
        self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any, of_study: Collection[str]
    ) -> tuple[str, str]:
        """Return the prompt for a call of mteb, as `embed` takes it, and who gave it; `of_study` names the study's."""
        from mteb.models.abs_encoder import get_prompt_name  # noqa: PLC0415

        role = str(prompt_type.value) if prompt_type is not None else ""
        name = get_prompt_name(self.prompts, task_metadata, prompt_type) or ""
        if role == "document" and name in ("", role) and role not in of_study:
            # sentence-transformers adds an empty `document` to a model that names its prompt otherwise.
            name = next((usual for usual in _DOCUMENT if self.prompts.get(usual)), name)
        prompt = self.prompts[name] if name else self.default_prompt
        return prompt, f"{'study' if name in of_study else 'model'}, {name or 'default'}"

    def prompt_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """Return the prompt with an instruction, in `template` or the model's own; an empty `text` means no prompt.

        `call` has the first four arguments of `prompt_of`.
        """
        return in_template(text, template)

    def before(self, prompt: str) -> str:
        """Return the text put before each text by a prompt of `prompt_of` or `prompt_under`."""
        return prompt

    def refuses(self) -> str:
        """Return why the model accepts no instruction; empty if it does."""
        return ""

    @staticmethod  # noqa: B027 (most hold nothing)
    def release() -> None:
        """Release what libraries hold for a model that is gone."""


class PromptingModel(TextModel):
    """A model that chooses its prompts itself: `embed` takes their names."""

    @abc.abstractmethod
    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """Return the name of the prompt for a call of mteb; calls with equal names get equal embeddings."""

    def prompt_of(
        self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any, of_study: Collection[str]
    ) -> tuple[str, str]:
        """Return the name of the prompt for a call, which mteb gives."""
        return self.way(task_metadata, hf_split, hf_subset, prompt_type), "mteb"


def cosines(first: Any, second: Any) -> Any:
    """Return the cosines of all of `first` with all of `second`, as mteb computes them."""
    from mteb.similarity_functions import cos_sim  # noqa: PLC0415 (takes seconds)

    return cos_sim(first, second)


def pairwise_cosines(first: Any, second: Any) -> Any:
    """Return the cosines of `first` and `second` row by row, as mteb computes them."""
    from mteb.similarity_functions import pairwise_cos_sim  # noqa: PLC0415 (takes seconds)

    return pairwise_cos_sim(first, second)


def in_template(text: str, template: str = "") -> str:
    """Return the text before each text for an instruction: nothing for an empty one, by default it and a space.

    The instruction is inserted unchanged, including braces.
    """
    return (template or f"{INSTRUCTION} ").replace(INSTRUCTION, text) if text else ""
