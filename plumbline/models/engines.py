"""Open the chat model that a study names, of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbline.errors import StudyError
from plumbline.models.chat import Chat
from plumbline.study import Study
from plumbline.study.engines import EngineSpec


def open_chat(
    spec: EngineSpec, study: Study, where: str = "generator", template: Mapping[str, Any] | None = None
) -> Chat:
    """Return the chat model that a study names in `where`; call it in the event loop that will ask the model.

    `template` holds further variables for the chat template of a model in vLLM. Raises StudyError for a kind that is
    not a chat model, and as `VllmEngine.load` and `ChatServer.at` do.
    """
    if spec.kind == "vllm":
        from plumbline.models.vllm import VllmEngine  # noqa: PLC0415 (lives on the GPU host)

        return VllmEngine.load(spec, study, template or {})
    if spec.kind == "openai":
        from plumbline.models.openai import ChatServer  # noqa: PLC0415 (extra `generation`)

        return ChatServer.at(spec, study, where)
    raise StudyError(
        f"{study.file}: {where}.kind is {spec.kind!r}, which is not a chat model; name one of another kind"
    )
