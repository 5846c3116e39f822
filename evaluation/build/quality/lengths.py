"""Texts that are too long for a study's models: counted by the model's tokenizer where it is at hand, else by words."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.build.quality.contents import Contents
from evaluation.build.quality.finding import Finding, found, rows_of, together, undefined
from plumbline.errors import DataError, StudyError
from plumbline.reading import read_json
from plumbline.study.evaluation import ModelSpec
from plumbline.words import count_words

_ENOUGH = 10**6  # what libraries write where they know no limit is far larger
ANY = sys.maxsize  # of models that read a text of any length


@dataclass(frozen=True)
class Reader:
    """A model and how many tokens of a text it reads, prompts and marks at both ends among them.

    Without a tokenizer a text has at least as many tokens as words, so that no text is called too long that is not.
    """

    model: str
    tokens: int
    tokenizer: Any = None

    @property
    def counted(self) -> str:
        """How tokens are counted."""
        return "its own tokenizer" if self.tokenizer is not None else "words: in tokens there may be more"

    def cut(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts it does not read to the end."""
        made = np.zeros(len(texts), np.bool_)
        # No tokenizer makes more tokens of a text than it has bytes, and two marks.
        asked = [place for place, text in enumerate(texts) if 4 * len(text) + 2 > self.tokens]
        if self.tokenizer is None:
            made[asked] = [count_words(texts[place]) > self.tokens for place in asked]
        else:
            asked = [place for place in asked if len(texts[place].encode()) + 2 > self.tokens]
            found = self.tokenizer.encode_batch_fast([texts[place] for place in asked])
            made[asked] = [len(one.ids) > self.tokens for one in found]
        return made


def too_long(contents: Contents, readers: Sequence[Reader]) -> Finding:
    """The share of texts that the model which cuts most of them does not read to the end."""
    if not readers:
        return undefined("long_texts", "no model of the study says how many tokens it reads")
    texts = [text for part in contents.parts for one in part.texts for text in one]
    counts = [(reader.cut(texts), reader) for reader in readers]
    cut, reader = max(counts, key=lambda one: (int(one[0].sum()), -one[1].tokens))
    number, rows, start = int(cut.sum()), [], 0
    for part in contents.parts:
        width = len(part.texts[0]) if part.texts else 1
        own = cut[start : start + len(part.items) * width].reshape(-1, width).any(axis=1)
        start += len(part.items) * width
        places = np.flatnonzero(own).tolist()
        rows.append(rows_of(part, places, [f"{reader.model} reads {reader.tokens} tokens of it"] * len(places)))
    if reader.tokens == ANY:
        return found("long_texts", 0, "the study's models read texts of any length")
    said = f"{number:,} of {len(texts):,} texts have more than the {reader.tokens:,} tokens that {reader.model} reads"
    return found("long_texts", number / max(1, len(texts)), f"{said} (counted by {reader.counted})", together(rows))


def readers_of(specs: Sequence[ModelSpec], base: Path) -> Iterator[Reader]:
    """The models whose room is known, without loading one: by files at hand, or by mteb's registry."""
    for spec in specs:
        if spec.kind == "sentence_transformers":
            tokens, tokenizer = _of_files(spec, base)
        elif spec.kind == "mteb":
            tokens, tokenizer = _registered(spec), None
        elif spec.kind == "openai":
            continue
        else:  # what texts are made of has no end
            tokens, tokenizer = ANY, None
        if tokens:
            yield Reader(spec.name, int(tokens), tokenizer)


def _of_files(spec: ModelSpec, base: Path) -> tuple[int | None, Any]:
    """What sentence-transformers' own files say: the first module's longest sequence, and its tokenizer."""
    from tokenizers import Tokenizer  # noqa: PLC0415 (comes with transformers)

    modules = _json(spec, base, "modules.json")
    inside = str(modules[0].get("path") or "") if isinstance(modules, list) and modules else ""
    inside = f"{inside}/" if inside else ""
    own = _json(spec, base, f"{inside}sentence_bert_config.json") or {}
    tokens = own.get("max_seq_length") or (_json(spec, base, f"{inside}tokenizer_config.json") or {}).get(
        "model_max_length"
    )
    path = _file(spec, base, f"{inside}tokenizer.json")
    tokenizer = None
    if path is not None:
        with contextlib.suppress(Exception):  # it raises bare exceptions for a file that it cannot read
            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_truncation()
            tokenizer.no_padding()
    return (int(tokens) if isinstance(tokens, (int, float)) and tokens < _ENOUGH else None), tokenizer


def _json(spec: ModelSpec, base: Path, name: str) -> Any:
    path = _file(spec, base, name)
    if path is None:
        return None
    try:
        return read_json(path)
    except DataError:
        return None


def _file(spec: ModelSpec, base: Path, name: str) -> Path | None:
    """A model's file, in its folder or in the hub's cache on this machine."""
    if not spec.from_hub:
        try:
            path = Path(spec.location(base)) / name
        except StudyError:
            return None
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

    found = try_to_load_from_cache(spec.name, name, revision=spec.revision or None)
    return Path(found) if isinstance(found, str) else None


def _registered(spec: ModelSpec) -> int | None:
    from mteb.models.model_implementations import MODEL_REGISTRY  # noqa: PLC0415 (takes seconds)

    meta = MODEL_REGISTRY.get(spec.name)
    tokens = meta.max_tokens if meta is not None else None
    return int(tokens) if tokens and 0 < tokens < _ENOUGH else None
