"""The ten error types of HTEB (A.2), by name; `generation.flags` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

from plumbline.errors import nearest

Flag = Literal[
    "identical",
    "empty",
    "ellipsis",
    "json_fragment",
    "reasoning_leak",
    "prefix_leak",
    "wrong_language",
    "runaway",
    "truncated",
    "summary_too_long",
]
FLAGS: tuple[Flag, ...] = get_args(Flag)
LABELS: Mapping[Flag, str] = MappingProxyType(
    {
        "identical": "Identical Rate",
        "empty": "Empty Rate",
        "ellipsis": "Ellipsis Rate",
        "json_fragment": "JSON Frag. Rate",
        "reasoning_leak": "Reasoning Leak Rate",
        "prefix_leak": "Prefix Leak Rate",
        "wrong_language": "Wrong Lang. Rate",
        "runaway": "Runaway Gen. Rate",
        "truncated": "Truncated Rate",
        "summary_too_long": "Summary Too Long",
    }
)


def _known_flags(value: Any) -> Any:
    """Return a study's error types unchanged. Raises ValueError for an unknown name, with the nearest known one."""
    for name in value if isinstance(value, (list, tuple)) else ():
        if name not in FLAGS:
            raise ValueError(f"unknown error type {name!r}; {nearest(str(name), list(FLAGS))}")
    return value


Flags = Annotated[tuple[Flag, ...], BeforeValidator(_known_flags)]  # of a study
