"""Open the chat model that a study names, of any kind."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from plumbline.errors import StudyError
from plumbline.models.chat import Chat
from plumbline.study import Study
from plumbline.study.engines import EngineSpec


def open_chat(
    spec: EngineSpec, study: Study, where: str = "generator", template: Mapping[str, Any] = MappingProxyType({})
) -> Chat:
    """Return the chat model that a study names in `where`; call it in the event loop that will ask the model.

    Raises StudyError for a kind that is not a chat model, and as `Chat.open` of its class.
    """
    if not spec.CHAT:
        raise StudyError(
            f"{study.file}: {where}.kind is {spec.kind!r}, which is not a chat model; name one of another kind"
        )
    chat: Chat = pkgutil.resolve_name(spec.CHAT).open(spec, study, where, template)
    return chat
