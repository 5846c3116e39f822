"""Pseudonyms of raters, and the people behind them.

A pseudonym is the same at each collection and reveals nobody: an annotator's comes from the account's id in Argilla,
which only the server's owner can look up; those of raters without an account (from a file or a crowd platform) are made
with the home's key, without which nobody can find a name by trying.

Names are for the coordinator alone, in the home's private folder and in no record. The home remembers them as answers
are collected or imported; commands show them beside pseudonyms on its user's terminal. Workers of this study's own
crowds have no names anywhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from annotation.server.home import Home, changing, make_folder, write_private
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.records import UNKNOWN
from plumbline.words import printable_line

if TYPE_CHECKING:
    import pandas as pd


def remember_names(home: Home, study_name: str, names: Mapping[str, str]) -> None:
    """Add names by pseudonym to the home's file on a study, which only its user can read. Raises DataError."""
    if not names:
        return
    make_folder(home)
    with changing(home):
        content = _read(home)
        earlier = content.get(study_name, {})
        if earlier | dict(names) == earlier:
            return
        content[study_name] = earlier | dict(names)
        write_private(home.path / _FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def known_names(home: Home, study_name: str) -> dict[str, str]:
    """Return the names by pseudonym that this machine knows, in one line: people type their names into forms."""
    return {rater: printable_line(name[:_LONGEST]) for rater, name in _read(home).get(study_name, {}).items()}


def pseudonym_of(rater: str, names: Mapping[str, str]) -> str:
    """Return the pseudonym of a name, in any case; an unknown name is returned as it is.

    Raises StudyError if several pseudonyms have the name, as of a person who answers in Argilla and in a file.
    """
    pseudonyms = sorted(pseudonym for pseudonym, name in names.items() if name.casefold() == rater.casefold())
    if len(pseudonyms) > 1:
        raise StudyError(f"{rater!r} is the name of {' and '.join(pseudonyms)}; give the pseudonym instead")
    return pseudonyms[0] if pseudonyms else rater


def named(rater: str, names: Mapping[str, str]) -> str:
    """Return a rater as the coordinator reads it: `rater-1a2b3c4d ada`, or the pseudonym alone if no name is known."""
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
        raise DataError(
            f"{file}: damaged ({error}); move it away: collecting or importing again brings the names back"
        ) from None


_PSEUDONYM = re.compile(r"(rater|simulated)-[0-9a-f]{8}|worker-[0-9a-f]{12}|unknown-[0-9]+")
SIMULATED = "simulated-"  # raters who are programs, and nobody else
WORKER = "worker-"  # accounts of crowd workers in Argilla begin so, and nobody else's


def account_pseudonym(study_name: str, user_id: str, *, simulated: bool) -> str:
    """`rater-` or `simulated-` and eight hexadecimal digits, by the account's id."""
    return f"{'simulated' if simulated else 'rater'}-{identity('rater-v1', study_name, user_id)[:8]}"


def named_pseudonym(key: bytes, study_name: str, name: str) -> str:
    """Return `rater-` and eight hexadecimal digits, one for a name in any case throughout a study.

    Whom a file calls `simulated-...` (one that was exported, say) stays simulated.
    """
    kind = "simulated" if name.casefold().startswith(SIMULATED) else "rater"
    return f"{kind}-{_digest(key, study_name, name.casefold())[:8]}"


UNNAMED = "unknown"  # in tables: all raters whom a file does not name, however many they are


def listed_raters(raters: pd.Series) -> pd.Series:
    """Return raters' ids as tables list them, with UNNAMED for all whom a file does not name."""
    listed = raters.astype("category").map(lambda name: UNNAMED if name.startswith(UNKNOWN) else name)
    return listed.astype(object)


def is_pseudonym(name: str) -> bool:
    """Return whether a name is a pseudonym, as in an exported file."""
    return bool(_PSEUDONYM.fullmatch(name))


def worker_pseudonym(key: bytes, study_name: str, platform: str, worker: str) -> str:
    """Return `worker-` and twelve hexadecimal digits, one for a platform's worker throughout a study."""
    # The server's pages (plumbline_argilla.crowd) make the same name, from the key in the file of rooms.
    return f"{WORKER}{_digest(key, study_name, platform, worker)[:12]}"


def pseudonym_key(home: Home) -> bytes:
    """The secret that pseudonyms of raters who have no account are made with; drawn when first asked for."""
    make_folder(home)
    file = home.path / "pseudonyms.key"
    with changing(home):
        if not file.exists():
            write_private(file, secrets.token_hex(32) + "\n")
        try:
            return bytes.fromhex(file.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"{file}: damaged ({error}); restore it from a copy, or raters get other pseudonyms"
            ) from None


def _digest(key: bytes, *parts: str) -> str:
    return hmac.new(key, "\0".join(parts).encode(), hashlib.sha256).hexdigest()
