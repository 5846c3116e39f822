"""What a crowd worker is called everywhere but in the ledger: a pseudonym that only the home's key can make."""

from __future__ import annotations

import hashlib
import hmac

WORKER = "worker-"  # their accounts in Argilla begin so, and nobody else's


def worker_pseudonym(key: bytes, study: str, platform: str, worker: str) -> str:
    """`worker-` and twelve hexadecimal digits, the same for one worker of a platform throughout a study.

    `key` is the home's secret (`annotation.accounts.pseudonym_key`): without it nobody can try ids until one fits.
    """
    # The server's pages (plumbline_argilla.crowd) make the same name, from the key in the file of rooms.
    digest = hmac.new(key, "\0".join((study, platform, worker)).encode(), hashlib.sha256)
    return f"{WORKER}{digest.hexdigest()[:12]}"
