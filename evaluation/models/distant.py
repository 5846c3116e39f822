"""A model that other processes run, as an encoder sees it (`workers` run it).

Who scores needs of a model what stands before texts and how embeddings are compared, not its weights: these are told
once (`Facts`), and everything else is asked (`Rows`, `Question`), wherever the answer comes from.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder


@dataclass(frozen=True)
class Facts:
    """What is known of a model without it. `picks` says that it picks its prompts itself (`PromptingModel`).

    `similarities` compare all with all and row by row; None where the model does that in a way of its own. `gpu` is
    what kind of GPU it is on; empty for none.
    """

    prompts: dict[str, str]
    default_prompt: str
    routed: bool
    picks: bool
    revision: str
    similarities: tuple[Any, Any] | None
    gpu: str = ""


@dataclass(frozen=True)
class Rows:
    """Embeddings that are wanted, of texts of which each stands there once."""

    texts: list[str]
    prompt: str
    role: str


@dataclass(frozen=True)
class Question:
    """A method of the model that is to be called, where it is."""

    method: str
    values: tuple[Any, ...]

    @property
    def key(self) -> bytes:
        """The same for the same question."""
        return pickle.dumps(self)

    @property
    def repeats(self) -> bool:
        """Whether it may be asked again: not of embeddings, which are many."""
        return not self.method.startswith("similarity")

    @property
    def of_way(self) -> bool:
        """Whether the answer names a way of encoding, which every process with the model has to know."""
        return self.method in ("way", "way_under")


Ask = Callable[[Rows | Question], Any]


class DistantModel:
    """A model of which the facts are known, and that everything else is asked of."""

    def __init__(self, facts: Facts, ask: Ask) -> None:
        self.prompts, self.default_prompt = facts.prompts, facts.default_prompt
        self._facts, self._ask = facts, ask

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """One row for each text."""
        rows: Embeddings = self._ask(Rows(list(texts), prompt, role))
        return rows

    def routed(self) -> bool:
        """Whether roles count."""
        return self._facts.routed

    def similarity(self, first: Any, second: Any) -> Any:
        """The model's own, all with all."""
        own = self._facts.similarities
        return own[0](first, second) if own else self._ask(Question("similarity", (first, second)))

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The model's own, row by row."""
        own = self._facts.similarities
        return own[1](first, second) if own else self._ask(Question("similarity_pairwise", (first, second)))


class DistantPromptingModel(DistantModel):
    """One that picks its prompts itself."""

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """As `PromptingModel.way`."""
        return str(self._ask(Question("way", (task_metadata, hf_split, hf_subset, prompt_type))))

    def way_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """As `PromptingModel.way_under`."""
        return str(self._ask(Question("way_under", (text, template, dict(call)))))

    def before(self, way: str) -> str:
        """As `PromptingModel.before`."""
        return str(self._ask(Question("before", (way,))))

    def refuses(self) -> str:
        """As `PromptingModel.refuses`."""
        return str(self._ask(Question("refuses", ())))


class DistantEncoder(Encoder):
    """An encoder without a store: rows come from where they are kept."""

    def __init__(self, facts: Facts, name: str, batch_size: int, ask: Ask) -> None:
        self._distant = (DistantPromptingModel if facts.picks else DistantModel)(facts, ask)
        super().__init__(self._distant, name, facts.revision, batch_size)

    def embed(self, texts: Sequence[str], *, prompt: str | None = None, role: str = "") -> Embeddings:
        """As `Encoder.embed`."""
        prompt = self._fallback("") if prompt is None else prompt
        self.asked += len(texts)
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        role = role if self._distant.routed() else ""
        made = self._distant.embed(list(places), prompt=prompt, role=role, batch_size=self._batch_size)
        return np.asarray(made[[places[text] for text in texts]])

    def close(self) -> None:
        """Let go of what an encoder has on disk; there is no model here."""
        self._store.close()
