"""mteb's registered models, with mteb's prompts and loading code for each.

Such a model chooses its prompt itself, by the task. So that a text of several tasks is still encoded once, `way` names
what decides the embedding: the prompt itself for the two classes of mteb that load most models, and the task, its type,
subset and role for all others.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.in_process import SentenceTransformerModel, code_not_allowed, first_line, routed, similarities
from evaluation.models.text_models import PromptingModel, in_template
from generation.datasets.mteb_loading import in_memory
from plumbline.errors import ServiceError, StudyError, nearest
from plumbline.study.evaluation import MtebSpec


@dataclass(frozen=True)
class Way:
    """Everything except the texts that decides a call's embeddings: mteb's arguments, and an instruction's text."""

    call: Mapping[str, Any]
    prefix: str | None = None


class MtebModel(PromptingModel):
    """A registered model; the `prompt` of `embed` is a name from `way`."""

    release = staticmethod(SentenceTransformerModel.release)

    def __init__(self, spec: MtebSpec, base: Path = Path(), precision: str = "", device: str = "") -> None:
        """Load the model, in mteb's precision for it.

        Raises StudyError for an unknown name or revision, an unsupported kind of model, and code that is not allowed;
        ServiceError for a model that cannot be loaded.
        """
        from mteb.models import EncoderProtocol  # noqa: PLC0415 (takes seconds)

        meta = _registered(spec)
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # about prompts of its own
                self._model: Any = meta.load_model(device=device or None)
        except Exception as error:  # loaders of mteb, the hub and companies each raise their own errors
            line = f"model {spec.name!r} cannot be loaded by mteb: {first_line(error)}"
            raise ServiceError(f"{line}; connect to the hub, or install and set what the message names") from error
        if not isinstance(self._model, EncoderProtocol):
            raise _no_vectors(spec)
        self._name = spec.name
        self.revision = str(meta.revision or "")
        self._ways: dict[str, Way] = {}
        self.prompts: dict[str, str] = {}
        self.default_prompt = self.way(_similarity_task(), "test", "default", None)

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        role = "" if prompt_type is None else str(prompt_type.value)
        prompt = self._prompt(task_metadata, prompt_type)
        parts = [task_metadata.name, task_metadata.type, hf_subset, role] if prompt is None else [prompt]
        name = json.dumps(parts)
        call = {"task_metadata": task_metadata, "hf_split": hf_split, "hf_subset": hf_subset}
        self._ways.setdefault(name, Way({**call, "prompt_type": prompt_type}))
        return name

    def prompt_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """Return a name for the same with an instruction, in the study's template or the model class's.

        An empty `text` means no prompt, not an empty template.
        """
        prompt_type, model_template = call["prompt_type"], getattr(self._model, "instruction_template", None)
        if text and not template and model_template is not None and self._instructed:
            prefix = str(self._model.format_instruction(text, prompt_type))
        else:
            prefix = in_template(text, template)
        roles = [] if self._instructed or not routed(self._model.model) else [str(getattr(prompt_type, "value", ""))]
        name = json.dumps([prefix, *roles])
        self._ways[name] = Way(dict(call), prefix)
        return name

    def how(self, way: str) -> Way:
        """Return the `Way` of a name, for another process that has this model (`learn`)."""
        return self._ways[way]

    def learn(self, name: str, way: Way) -> None:
        """Add a name with its `Way`."""
        self._ways.setdefault(name, way)

    def before(self, prompt: str) -> str:
        """Return the text put before each text under a name; a note for classes that choose it themselves."""
        parts: list[str] = json.loads(prompt)
        return parts[0] if len(parts) < 3 else f"(chosen by mteb's class {type(self._model).__name__})"

    def refuses(self) -> str:
        """Return why the model accepts no instruction: its class in mteb is not one of the two that do."""
        if self._instructed or self._wrapped:
            return ""
        return f"mteb's class {type(self._model).__name__} of this model chooses its prompts itself"

    def _encode(self, way: Way, batches: Any, **options: Any) -> Any:
        """Encode by a `Way`, and leave the model unchanged."""
        model, call, prefix = self._model, way.call, way.prefix
        if prefix is None:
            return model.encode(batches, **call, **options)
        if self._instructed:  # `prompts_dict` cannot express no prompt: the task's own would be used
            model.get_task_instruction = lambda *_: prefix
            try:
                return model.encode(batches, **call, **options)
            finally:
                del model.get_task_instruction
        default_prompts, model.model_prompts = model.model_prompts, {call["task_metadata"].name: prefix}
        try:
            return model.encode(batches, **call, **options)
        finally:
            model.model_prompts = default_prompts

    @property
    def _instructed(self) -> bool:
        from mteb.models.instruct_wrapper import InstructSentenceTransformerModel  # noqa: PLC0415

        return type(self._model) is InstructSentenceTransformerModel

    @property
    def _wrapped(self) -> bool:
        """True if mteb loads it by its class for sentence-transformers; a derived class may behave differently."""
        from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper  # noqa: PLC0415

        return type(self._model) is SentenceTransformerEncoderWrapper

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return rows in the texts' order, by the `Way` named `prompt`. Raises ServiceError if it fails."""
        from torch.utils.data import DataLoader  # noqa: PLC0415

        batches: Any = DataLoader(in_memory({"text": list(texts)}), batch_size=batch_size)
        try:
            vectors = self._encode(self._ways[prompt], batches, batch_size=batch_size, show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError):  # torch's errors, such as a lack of memory
            raise
        except Exception as error:
            raise ServiceError(f"model {self._name!r} cannot encode: {first_line(error)}") from error
        rows = np.asarray(vectors.detach().cpu().float() if hasattr(vectors, "detach") else vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ServiceError(f"model {self._name!r} returns an array of shape {rows.shape} for {len(texts)} texts")
        return rows

    def similarity(self, first: Any, second: Any) -> Any:
        return self._model.similarity(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        return self._model.similarity_pairwise(first, second)

    def similarities(self) -> tuple[Any, Any] | None:
        from mteb import similarity_functions as own  # noqa: PLC0415
        from mteb.models.abs_encoder import AbsEncoder  # noqa: PLC0415
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415

        kind, inner = type(self._model), getattr(self._model, "model", None)
        if self._wrapped:
            return similarities(inner)
        if (kind.similarity, kind.similarity_pairwise) != (AbsEncoder.similarity, AbsEncoder.similarity_pairwise):
            return None
        named = getattr(self._model.mteb_model_meta, "similarity_fn_name", None)
        if named is None:  # then mteb asks the model within
            return similarities(inner) if isinstance(inner, SentenceTransformer) else None
        name = {"cosine": "cos_sim", "dot": "dot_score"}.get(str(named.value))
        return (getattr(own, name), getattr(own, f"pairwise_{name}")) if name else None

    def _prompt(self, task_metadata: Any, prompt_type: Any) -> str | None:
        """Return the text put before each text, if for the model's class nothing else counts; None for others."""
        from mteb.models.abs_encoder import get_prompt  # noqa: PLC0415

        model, role = self._model, "" if prompt_type is None else str(prompt_type.value)
        if self._instructed and (role != "document" or model.apply_instruction_to_passages):
            return str(model.get_task_instruction(task_metadata, prompt_type))
        if self._instructed:
            return _default(model.model)
        if self._wrapped and not routed(model.model):
            prompt = get_prompt(model.model_prompts, task_metadata, prompt_type)
            return _default(model.model, role) if prompt is None else str(prompt)
        return None


def _default(model: Any, role: str = "") -> str:
    """Return the text that a SentenceTransformer puts before texts of a role without a prompt."""
    names = {"query": ("query",), "document": ("document", "passage", "corpus")}.get(role, ())
    for name in (*names, model.default_prompt_name):
        if name is not None and model.prompts.get(name) is not None:
            return str(model.prompts[name])
    return ""


def _registered(spec: MtebSpec) -> Any:
    """Return mteb's metadata of a model. Raises StudyError for an unknown or unsupported model."""
    from mteb.models.model_implementations import MODEL_REGISTRY  # noqa: PLC0415

    meta = MODEL_REGISTRY.get(spec.name)
    if meta is None or meta.loader is None:
        hint = nearest(spec.name, list(MODEL_REGISTRY)) if meta is None else "mteb has only results of it"
        hint = hint if len(hint) < 200 else "`mteb.get_model_metas()` lists its models"
        raise StudyError(f"mteb cannot load a model {spec.name!r}; {hint}; for other models remove `kind: mteb`")
    if spec.revision and spec.revision != meta.revision:
        raise StudyError(
            f"model {spec.name!r}: mteb has revision {meta.revision!r}; write this revision, or remove `revision`"
        )
    if "dense" not in meta.model_type or "text" not in (meta.modalities or ["text"]):
        raise _no_vectors(spec)
    source = inspect.getsource(meta.loader)
    allowed = (meta.loader_kwargs or {}).get("trust_remote_code") or "trust_remote_code=True" in source
    if allowed and not spec.remote_code:
        raise code_not_allowed(spec)
    return meta


def _no_vectors(spec: MtebSpec) -> StudyError:
    return StudyError(
        f"model {spec.name!r} does not return one vector per text, which drift and all tasks need; remove it"
    )


def _similarity_task() -> Any:
    """Return the task of embeddings without a task (for drift): semantic similarity."""
    from mteb.abstasks.sts import AbsTaskSTS  # noqa: PLC0415
    from mteb.abstasks.task_metadata import TaskMetadata  # noqa: PLC0415

    return TaskMetadata(
        name="drift",
        description="how far a text moves when it is transformed",
        dataset={"path": "local/drift", "revision": "1"},
        type="STS",
        category="t2t",
        prompt=AbsTaskSTS.abstask_prompt,
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="cosine_spearman",
    )
