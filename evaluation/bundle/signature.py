"""Detached signatures: minisign's, checked by minisign itself. There is no scheme of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from plumbline.errors import DataError, StudyError

_SECONDS = 120


def signature_of(path: Path) -> Path:
    """Where a bundle's signature is expected: beside it, as minisign puts it."""
    return path.with_name(f"{path.name}.minisig")


def check_signature(path: Path, key: str) -> str:
    """What minisign says of a bundle's signature, its trusted comment too. `key` is a public key, or the file of one.

    Raises StudyError where minisign is not installed, DataError where there is no signature, or not by this key.
    """
    signature, tool = signature_of(path), shutil.which("minisign")
    if not signature.is_file():
        raise DataError(f"{path} is not signed: there is no {signature}; ask its maker, or leave out --key")
    if tool is None:
        raise StudyError("--key: signatures are checked by minisign, which is not installed (apt install minisign)")
    by = ["-p", key] if Path(key).is_file() else ["-P", key]
    command = [tool, "-V", *by, "-x", str(signature), "-m", str(path)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StudyError(f"--key: {tool} cannot be run ({error})") from None
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[0]
        raise DataError(f"{path}: its signature does not hold for this key ({why}); do not build on it")
    return done.stdout.strip().replace("\n", "; ")
