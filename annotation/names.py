"""Who is behind a pseudonym: for the coordinator alone, in the home's private folder and in no record.

The home remembers names as answers are collected; commands show them beside pseudonyms on its user's terminal. Records,
reports and exports have pseudonyms, and crowd workers have no names anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from plumbline.errors import DataError, StudyError
from plumbline.reading import read_json
from plumbline.study import Study
from plumbline.words import printable_line

if TYPE_CHECKING:
    from annotation.server import Home


def remember_names(home: Home, study: Study, names: Mapping[str, str]) -> None:
    """Add names by pseudonym to what the home knows of a study; only its user can read it. Raises DataError."""
    from annotation.server.home import changing, make_folder, write_private  # noqa: PLC0415 (brings its HTTP client along)

    if not names:
        return
    make_folder(home)
    with changing(home):
        content = _read(home)
        before = content.get(study.name, {})
        if before | dict(names) == before:
            return
        content[study.name] = before | dict(names)
        write_private(home.path / _FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def known_names(home: Home, study: Study) -> dict[str, str]:
    """Names by pseudonym, as far as this machine knows them; none where it does not."""
    return {rater: _shown(name) for rater, name in _read(home).get(study.name, {}).items()}


def _shown(name: str) -> str:
    """A name in one line: people type their names into forms."""
    return printable_line(name[:_LONGEST])


def pseudonym_of(rater: str, names: Mapping[str, str]) -> str:
    """The pseudonym of who is called by a name; what is no known name is left as it is.

    Raises StudyError where two have the name, as one who answers in Argilla and in a file.
    """
    pseudonyms = sorted(pseudonym for pseudonym, name in names.items() if name == rater)
    if len(pseudonyms) > 1:
        raise StudyError(f"{rater!r} is {' and '.join(pseudonyms)}; say which by the pseudonym")
    return pseudonyms[0] if pseudonyms else rater


def named(rater: str, names: Mapping[str, str]) -> str:
    """A rater as the coordinator reads it: `rater-1a2b3c4d ada`; the pseudonym alone where there is no name."""
    return f"{rater} {names[rater]}" if rater in names else rater


_FILE, _LONGEST = "names.json", 100  # characters of a name


def _read(home: Home) -> dict[str, dict[str, str]]:
    file = home.path / _FILE
    try:
        content = read_json(file)
        return {
            str(study): {str(rater): str(name) for rater, name in of_study.items()}
            for study, of_study in content.items()
        }
    except FileNotFoundError:
        return {}
    except (DataError, AttributeError) as error:
        raise DataError(f"{file}: damaged ({error}); move it away: collecting again brings the names back") from None
