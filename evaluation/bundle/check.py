"""Check that a bundle is complete and that its verdicts follow from its ratings.

The checksums show whether a file was changed since the export. Verdicts, means and agreement are computed again from
ratings, decisions and rules, by the functions that `accept` uses, and compared with those in the bundle. Somebody who
changes ratings, verdicts and checksums together makes another bundle: a signature (minisign) protects against that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from annotation.verdicts.verification import differences
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import AGAIN
from plumbline.errors import DataError, StudyError

Fault = tuple[str, str]  # a file in the bundle, and what is wrong with it


def open_checked(path: Path, step: Callable[[], object] = lambda: None) -> Bundle:
    """Open a bundle without faults. Raises DataError with the first fault."""
    bundle = Bundle.open(path)
    refuse(bundle, faults(bundle, step))
    return bundle


def refuse(bundle: Bundle, wrong: Iterable[Fault]) -> None:
    """Raise DataError with the first fault, if there is any."""
    for file, what in wrong:
        raise DataError(f"{bundle.path}: {file} {what}; {AGAIN}")


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
        for file, what in differences(bundle.evidence, bundle.verdicts, bundle.means, bundle.groups):
            yield file, f"does not follow from the ratings: {what}"
    except StudyError as error:
        yield "rules.json", f"has other rules than study.json ({error})"
    except DataError as error:
        yield "a file", f"cannot be read: {error}"
