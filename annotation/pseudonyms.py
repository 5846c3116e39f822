"""What raters are called in records: the same at each collection, and nobody can tell who it is.

An annotator's comes from the account's id in Argilla, which only the server's owner can look up. Those of raters
without an account (of a file, of a crowd platform) are made with the home's key: without it nobody can try names until
one fits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from annotation.server.home import Home, changing, make_folder, write_private
from plumbline.errors import DataError
from plumbline.identity import identity

_PSEUDONYM = re.compile(r"(rater|simulated)-[0-9a-f]{8}|worker-[0-9a-f]{12}")
SIMULATED = "simulated-"  # raters who are programs, and nobody else
WORKER = "worker-"  # accounts of crowd workers in Argilla begin so, and nobody else's


def account_pseudonym(study: str, user_id: str, *, simulated: bool) -> str:
    """`rater-` or `simulated-` and eight hexadecimal digits, by the account's id."""
    return f"{'simulated' if simulated else 'rater'}-{identity('rater-v1', study, user_id)[:8]}"


def named_pseudonym(key: bytes, study: str, name: str) -> str:
    """`rater-` and eight hexadecimal digits, the same for one name in any case throughout a study.

    Whom a file calls `simulated-...` (one that was exported, say) stays simulated.
    """
    kind = "simulated" if name.casefold().startswith(SIMULATED) else "rater"
    return f"{kind}-{_digest(key, study, name.casefold())[:8]}"


def is_pseudonym(name: str) -> bool:
    """Whether it is one of these, as in a file that was exported, and nobody's name."""
    return bool(_PSEUDONYM.fullmatch(name))


def worker_pseudonym(key: bytes, study: str, platform: str, worker: str) -> str:
    """`worker-` and twelve hexadecimal digits, the same for one worker of a platform throughout a study."""
    # The server's pages (plumbline_argilla.crowd) make the same name, from the key in the file of rooms.
    return f"{WORKER}{_digest(key, study, platform, worker)[:12]}"


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
            raise DataError(f"{file}: damaged ({error}); bring it back, or raters get other pseudonyms") from None


def _digest(key: bytes, *parts: str) -> str:
    return hmac.new(key, "\0".join(parts).encode(), hashlib.sha256).hexdigest()
