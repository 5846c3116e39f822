"""What models gave, each result in a file named by its identity: the one place that a number is read back from.

A file appears complete or not at all, so that a kill at any moment loses no finished result. It stays when the study no
longer wants it, and is valid when it is wanted again: an identity always means the same. Tables are print-outs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.records import Record
from plumbline.store import write_json
from plumbline.study.base import first_complaint

_SEAL = "seal"
R = TypeVar("R", bound=Record)


class StoredResults(Generic[R]):
    """The results of one type (`record`) in a folder; each is sealed, as the manifest covers only tables."""

    def __init__(self, folder: Path, record: type[R]) -> None:
        self._folder, self._record = folder, record

    def __contains__(self, unit_id: str) -> bool:
        return self._file(unit_id).exists()

    def get(self, unit_id: str) -> R | None:
        """Return a result, or None if there is none. Raises DataError for a damaged or edited file."""
        return self._read(self._file(unit_id)) if unit_id in self else None

    def every(self) -> Iterator[R]:
        """Yield all results, wanted or not. Raises DataError as `get`."""
        yield from map(self._read, sorted(self._folder.glob("*.json")))

    def add(self, unit_id: str, result: R) -> None:
        """Write a result; it is on disk when this returns."""
        data = json.loads(result.model_dump_json())
        write_json(self._file(unit_id), {**data, _SEAL: _sealed(unit_id, data)})

    def remove(self, unit_id: str) -> None:
        """Delete a result that is no longer true."""
        self._file(unit_id).unlink(missing_ok=True)

    def _file(self, unit_id: str) -> Path:
        return self._folder / f"{unit_id}.json"

    def _read(self, path: Path) -> R:
        try:
            data = read_json(path)
            edited = data.pop(_SEAL) != _sealed(path.stem, data)
            result = self._record.model_validate(data)
        except ValidationError as error:
            raise _damaged(path, first_complaint(error)) from None
        except (DataError, AttributeError, KeyError, TypeError) as error:
            raise _damaged(path, str(error)) from None
        if edited:
            raise DataError(
                f"{path} differs from what was written (edited by hand); delete it to compute the score again"
            )
        return result


def _damaged(path: Path, fault: str) -> DataError:
    return DataError(f"{path} is damaged ({fault}); delete it (the score is computed again)")


def _sealed(unit_id: str, data: object) -> str:
    return identity("result-v1", unit_id, data)
