"""Which scores of other people's result files are not comparable with the others of their task, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

#: Tasks that mteb scored wrongly, the first version that is right, and the fault of earlier ones.
FAULTS = {
    "TwitterHjerneRetrieval": ("1.18.1", "whose scores are too low (mteb issue 5228)"),
    "WebLINXCandidatesReranking": ("2.18.19", "which ranks the right answer first among ties (mteb issue 5092)"),
    "GermanQuAD-Retrieval": ("2.18.19", "which ranks ties by the data's order (mteb issue 5092)"),
}
_CONVERTED = "1.11.0"  # mteb converts files of earlier versions when it reads them
_UNKNOWN = ("", "dataset revision not available")  # mteb's words for a file that names no revision


def reasons_by_model(task: Any, origins: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return why models' scores on a task are not comparable with the others.

    Args:
        task: mteb's task.
        origins: Each model's revision of the data set and version of mteb; empty where a file names none.

    Returns:
        The reason for each model whose score is on an unknown revision of the data set, or on another one than is
        registered (than most, if none is on that), or was computed by a version of mteb with a known fault.
    """
    numbers = Counter(revision for revision, _ in origins.values() if revision not in _UNKNOWN)
    usual = str(task.metadata.revision)
    if numbers and usual not in numbers:
        usual = min(numbers, key=lambda revision: (-numbers[revision], revision))
    reasons = {}
    for model, (revision, version) in origins.items():
        parts = [_of_version(task.metadata.name, version)]
        if revision != usual:
            name = "unknown" if revision in _UNKNOWN else revision[:8]
            parts.append(f"data set revision {name}, not {usual[:8]}")
        reasons[model] = "; ".join(filter(None, parts))
    return {model: reason for model, reason in reasons.items() if reason}


def _of_version(task: str, version: str) -> str:
    """Return the fault of a version of mteb on a task; of a range such as 2.1.0-2.3.0, of its first version."""
    first, fault = FAULTS.get(task, (_CONVERTED, "whose files mteb converts"))
    if not _numbers(version):
        return "by an unknown version of mteb"
    return f"mteb {version}, before {first}, {fault}" if _numbers(version) < _numbers(first) else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)[:3]]
