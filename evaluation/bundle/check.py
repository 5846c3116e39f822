"""Check that a bundle is complete and that its verdicts follow from its ratings.

The checksums show whether a file was changed since the export. Verdicts, means and agreement are computed again from
ratings, decisions and rules, by the functions that `accept` uses, and compared with those in the bundle. Somebody who
changes ratings, verdicts and checksums together makes another bundle: a signature (minisign) protects against that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotation.records import Group, PairMean, Verdict
from evaluation.bundle import records
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import AGAIN
from plumbline.errors import DataError, StudyError

_NEAR = 1e-5  # relative difference between versions of numpy and scipy, and by rounding in irrCAC
_RESAMPLED = ("alpha", "kappa", "raw")  # their values or intervals take long and decide nothing
Fault = tuple[str, str]  # a file in the bundle, and what is wrong with it


def open_checked(path: Path, step: Callable[[], object] = lambda: None) -> Bundle:
    """Open a bundle without faults. Raises DataError with the first fault."""
    bundle = Bundle.open(path)
    refuse(bundle, faults(bundle, step))
    return bundle


def refuse(bundle: Bundle, faults_of_bundle: Iterable[Fault]) -> None:
    """Raise DataError with the first fault, if there is any."""
    for file, fault in faults_of_bundle:
        raise DataError(f"{bundle.path}: {file} {fault}; {AGAIN}")


def faults(bundle: Bundle, step: Callable[[], object] = lambda: None) -> Iterator[Fault]:
    """Yield all faults, those of the checksums first; `step` is called for each file."""
    present, listed = set(bundle.archive.names), bundle.sums
    for name in sorted(present | set(listed)):
        step()
        if name not in listed:
            yield name, "is not in SHA256SUMS: somebody added it"
        elif name not in present:
            yield name, "is missing"
        elif bundle.archive.sha256(name) != listed[name]:
            yield name, "was changed: its hash differs from that in SHA256SUMS"
    if set(listed) - present:
        return
    try:
        bundle.evidence.refuse_other_rules()
        yield from _claims(bundle)
    except StudyError as error:
        yield "rules.json", f"has other rules than study.json ({error})"
    except DataError as error:
        yield "a file", f"cannot be read: {error}"


def _claims(bundle: Bundle) -> Iterator[Fault]:
    """Yield the printed verdicts, rows of Table 2 and means of pairs that do not follow from the ratings."""
    conclusion = bundle.conclusion
    tables = (
        (records.VERDICTS, _of_records(bundle.models(records.VERDICTS, Verdict)), _of_records(conclusion.verdicts)),
        (records.AGREEMENT, _of_records(bundle.models(records.AGREEMENT, Group)), _of_records(conclusion.groups)),
        (records.MEANS, _of_means(bundle.table(records.MEANS, PairMean).to_pandas()), _of_means(conclusion.means)),
    )
    for name, printed, computed in tables:
        if len(printed) != len(computed):
            yield name, f"does not follow from the ratings: it has {len(printed)} rows, not {len(computed)}"
        lines = _differences(dict(printed), dict(computed))
        yield from ((name, f"does not follow from the ratings: {line}") for line in lines)


def _of_records(rows: Sequence[Verdict | Group]) -> list[tuple[str, Any]]:
    keys = [" ".join(row.unit) if isinstance(row, Verdict) else f"{row.level} {row.name}" for row in rows]
    return [(key.strip(), row.model_dump()) for key, row in zip(keys, rows, strict=True)]


def _of_means(means: pd.DataFrame) -> list[tuple[str, Any]]:
    return [(f"{row['pair_id']} {row['question']}", row) for row in means.to_dict("records")]


def _differences(printed: Any, computed: Any, at: str = "") -> Iterator[str]:
    """Yield the differences between two values; resampled intervals, which decide nothing, are not compared."""
    if isinstance(printed, Mapping) and isinstance(computed, Mapping):
        if "estimate" in printed and str(printed["name"]).startswith("alpha"):
            return
        for name in sorted(({*printed} | {*computed}) - {*_RESAMPLED}, key=str):
            yield from _differences(printed.get(name), computed.get(name), f"{at} {name}".strip())
    elif isinstance(printed, tuple) and isinstance(computed, tuple) and len(printed) == len(computed):
        for values in zip(printed, computed, strict=True):
            yield from _differences(*values, at)
    elif isinstance(printed, float) and isinstance(computed, float):
        if not np.isclose(printed, computed, rtol=_NEAR, atol=_NEAR, equal_nan=True):
            yield f"{at} says {printed}, but its ratings give {computed}"
    elif printed != computed:
        yield f"{at} says {printed}, but its ratings give {computed}"
