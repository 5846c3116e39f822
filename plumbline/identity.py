"""Compute identities: one versioned hash of everything that changes a thing (docs/decisions/0004-identity.md)."""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring
from typing import Any

_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def identity(*parts: Any) -> str:
    """Return a stable hash of JSON-able parts: 32 hexadecimal digits of SHA-256."""
    return identity_from(prefix(*parts[:-1]), parts[-1])


def prefix(*parts: Any) -> Any:
    """Return the hash of an `identity`'s first parts, computed once where many share them."""
    return hashlib.sha256(("[" + "".join(canonical(part) + "," for part in parts)).encode())


def identity_from(start: Any, last: Any) -> str:
    """Return the identity of the parts given to `prefix` and one more: `identity(*parts, last)`."""
    digest = start.copy()
    digest.update(f"{canonical(last)}]".encode())
    digits: str = digest.hexdigest()[:32]
    return digits


def canonical(part: Any) -> str:
    """Return the same JSON for equal values."""
    return encode_basestring(part) if type(part) is str else _JSON.encode(part)  # the same, and faster for texts
