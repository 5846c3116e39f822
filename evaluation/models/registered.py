"""mteb's registered models, with the prompts and the loading code that mteb has for each.

Such a model picks its prompt itself, from the task that it is asked for. So that a text which several tasks hold is
still encoded once, `way` names what decides the embedding: the prompt itself for the two classes of mteb that load
most models, and the task, its type, subset and role for all others.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.models.embeddings import Embeddings
from evaluation.models.in_process import code_not_allowed, first_line, in_template, routed, similarities
from generation.datasets.mteb_loading import in_memory
from plumbline.errors import ServiceError, StudyError, nearest
from plumbline.study.evaluation import ModelSpec


@dataclass(frozen=True)
class Way:
    """What decides the embeddings of a call beside the texts: what mteb says with it, and what an instruction adds."""

    call: Mapping[str, Any]
    before: str | None = None


class MtebModel:
    """A registered model; the `prompt` of `embed` is what `way` called the call."""

    def __init__(self, spec: ModelSpec, device: str = "") -> None:
        """Load it, in the precision that mteb gives it.

        Raises StudyError for a name, a revision or a kind of model that cannot be, and for code that is not allowed;
        ServiceError for a model that cannot be loaded.
        """
        from mteb.models import EncoderProtocol  # noqa: PLC0415 (takes seconds)

        meta = _registered(spec)
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # that it has prompts of its own
                self._model: Any = meta.load_model(device=device or None)
        except Exception as error:  # loaders are mteb's, the hub's and the companies': each has errors of its own
            line = f"model {spec.name!r} cannot be loaded by mteb: {first_line(error)}"
            raise ServiceError(f"{line}; connect to the hub, or install and set what it names") from error
        if not isinstance(self._model, EncoderProtocol):
            raise _no_vectors(spec)
        self._name = spec.name
        self.revision = str(meta.revision or "")
        self._ways: dict[str, Way] = {}
        self.prompts: dict[str, str] = {}
        self.default_prompt = self.way(_similarity_task(), "test", "default", None)

    def way(self, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any) -> str:
        """A name for what decides the embeddings of a call beside the texts; calls of one name give the same."""
        role = "" if prompt_type is None else str(prompt_type.value)
        prompt = self._prompt(task_metadata, prompt_type)
        parts = [task_metadata.name, task_metadata.type, hf_subset, role] if prompt is None else [prompt]
        name = json.dumps(parts)
        call = {"task_metadata": task_metadata, "hf_split": hf_split, "hf_subset": hf_subset}
        self._ways.setdefault(name, Way({**call, "prompt_type": prompt_type}))
        return name

    def way_under(self, text: str, template: str, call: Mapping[str, Any]) -> str:
        """A name for the same under an instruction, in a template of the study's or in that of the model's class.

        Without `text` nothing stands before texts, no empty template either.
        """
        prompt_type, model_template = call["prompt_type"], getattr(self._model, "instruction_template", None)
        if text and not template and model_template is not None and self._instructed:
            before = str(self._model.format_instruction(text, prompt_type))
        else:
            before = in_template(text, template)
        apart = [] if self._instructed or not routed(self._model.model) else [str(getattr(prompt_type, "value", ""))]
        name = json.dumps([before, *apart])
        self._ways[name] = Way(dict(call), before)
        return name

    def how(self, way: str) -> Way:
        """What stands behind a name, for another process that has this model (`learn`)."""
        return self._ways[way]

    def learn(self, name: str, way: Way) -> None:
        """Take over a name."""
        self._ways.setdefault(name, way)

    def before(self, way: str) -> str:
        """What stands before a text, that way; for classes that pick it themselves, that they do."""
        parts: list[str] = json.loads(way)
        return parts[0] if len(parts) < 3 else f"(what mteb's class {type(self._model).__name__} picks)"

    def refuses(self) -> str:
        """Why the model takes no instruction: its class in mteb is none of the two that are told one."""
        from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper  # noqa: PLC0415

        if self._instructed or type(self._model) is SentenceTransformerEncoderWrapper:
            return ""
        return f"mteb's class {type(self._model).__name__} of this model picks its prompts itself"

    def _encode(self, way: Way, batches: Any, **options: Any) -> Any:
        """Encode that way, and leave the model as it was."""
        model, call, before = self._model, way.call, way.before
        if before is None:
            return model.encode(batches, **call, **options)
        if self._instructed:  # `prompts_dict` cannot say that there is nothing: the task's own prompt would stand in
            model.get_task_instruction = lambda *_: before
            try:
                return model.encode(batches, **call, **options)
            finally:
                del model.get_task_instruction
        default_prompts, model.model_prompts = model.model_prompts, {call["task_metadata"].name: before}
        try:
            return model.encode(batches, **call, **options)
        finally:
            model.model_prompts = default_prompts

    @property
    def _instructed(self) -> bool:
        """Whether mteb loads it with its class for instructions."""
        from mteb.models.instruct_wrapper import InstructSentenceTransformerModel  # noqa: PLC0415

        return type(self._model) is InstructSentenceTransformerModel

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Rows in the texts' order, by the way called `prompt`, which has the role in it. ServiceError if it fails."""
        from torch.utils.data import DataLoader  # noqa: PLC0415

        batches: Any = DataLoader(in_memory({"text": list(texts)}), batch_size=batch_size)
        try:
            vectors = self._encode(self._ways[prompt], batches, batch_size=batch_size, show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError):  # torch's errors, a lack of memory among them
            raise
        except Exception as error:
            raise ServiceError(f"model {self._name!r} cannot encode: {first_line(error)}") from error
        rows = np.asarray(vectors.detach().cpu().float() if hasattr(vectors, "detach") else vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ServiceError(f"model {self._name!r} gives an array of {rows.shape} for {len(texts)} texts")
        return rows

    def routed(self) -> bool:
        """Never: `way` has the role in it where that counts."""
        return False

    def similarity(self, first: Any, second: Any) -> Any:
        """The model's own, as mteb has it."""
        return self._model.similarity(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """As `similarity`, row by row."""
        return self._model.similarity_pairwise(first, second)

    def similarities(self) -> tuple[Any, Any] | None:
        """Both as functions that need no model; None where its class computes them in a way of its own."""
        from mteb import similarity_functions as own  # noqa: PLC0415
        from mteb.models.abs_encoder import AbsEncoder  # noqa: PLC0415
        from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper  # noqa: PLC0415
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415

        kind, inner = type(self._model), getattr(self._model, "model", None)
        if kind is SentenceTransformerEncoderWrapper:
            return similarities(inner)
        if (kind.similarity, kind.similarity_pairwise) != (AbsEncoder.similarity, AbsEncoder.similarity_pairwise):
            return None
        named = getattr(self._model.mteb_model_meta, "similarity_fn_name", None)
        if named is None:  # then mteb asks the model within
            return similarities(inner) if isinstance(inner, SentenceTransformer) else None
        name = {"cosine": "cos_sim", "dot": "dot_score"}.get(str(named.value))
        return (getattr(own, name), getattr(own, f"pairwise_{name}")) if name else None

    def _prompt(self, task_metadata: Any, prompt_type: Any) -> str | None:
        """What is put before each text, where the model's class says that nothing else counts; None for others."""
        from mteb.models.abs_encoder import get_prompt  # noqa: PLC0415
        from mteb.models.instruct_wrapper import InstructSentenceTransformerModel  # noqa: PLC0415
        from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper  # noqa: PLC0415

        model, role = self._model, "" if prompt_type is None else str(prompt_type.value)
        kind = type(model)  # a class that is derived from one of them may have ways of its own
        if kind is InstructSentenceTransformerModel and (role != "document" or model.apply_instruction_to_passages):
            return str(model.get_task_instruction(task_metadata, prompt_type))
        if kind is InstructSentenceTransformerModel:
            return _default(model.model)
        if kind is SentenceTransformerEncoderWrapper and not routed(model.model):
            prompt = get_prompt(model.model_prompts, task_metadata, prompt_type)
            return _default(model.model, role) if prompt is None else str(prompt)
        return None


def _default(model: Any, role: str = "") -> str:
    """What a SentenceTransformer puts before texts of a role where it is given no prompt."""
    names = {"query": ("query",), "document": ("document", "passage", "corpus")}.get(role, ())
    for name in (*names, model.default_prompt_name):
        if name is not None and model.prompts.get(name) is not None:
            return str(model.prompts[name])
    return ""


def _registered(spec: ModelSpec) -> Any:
    """What mteb knows of a model. Raises StudyError for one that it does not have, or that cannot be used here."""
    from mteb.models.model_implementations import MODEL_REGISTRY  # noqa: PLC0415

    meta = MODEL_REGISTRY.get(spec.name)
    if meta is None or meta.loader is None:
        hint = nearest(spec.name, list(MODEL_REGISTRY)) if meta is None else "mteb has its results alone"
        hint = hint if len(hint) < 200 else "`mteb.get_model_metas()` lists what it has"
        raise StudyError(f"mteb has no model {spec.name!r}; {hint}; any other is loaded without `kind: mteb`")
    if spec.revision and spec.revision != meta.revision:
        raise StudyError(f"model {spec.name!r}: mteb has revision {meta.revision!r}; write this one, or none")
    if "dense" not in meta.model_type or "text" not in (meta.modalities or ["text"]):
        raise _no_vectors(spec)
    source = inspect.getsource(meta.loader)
    allowed = (meta.loader_kwargs or {}).get("trust_remote_code") or "trust_remote_code=True" in source
    if allowed and not spec.remote_code:
        raise code_not_allowed(spec)
    return meta


def _no_vectors(spec: ModelSpec) -> StudyError:
    return StudyError(f"model {spec.name!r} does not give one vector a text, which drift and all tasks need; leave it")


def _similarity_task() -> Any:
    """The task that texts are embedded for where none asks for them (drift): semantic similarity."""
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
