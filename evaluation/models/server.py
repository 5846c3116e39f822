"""Models behind an OpenAI-compatible `/v1/embeddings` (vLLM, TEI, Ollama, llama.cpp, companies), and baselines.

A passing fault (429, 5xx, a broken connection, a time-out) is retried with backoff and jitter, or when the server says
(Retry-After).
"""

from __future__ import annotations

import base64
import functools
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import urllib3

from evaluation.models.embeddings import Embeddings
from evaluation.models.in_process import first_line
from evaluation.models.text_models import TextModel
from plumbline.addresses import key_in, proxy_for
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.models.servers import PASSING, RETRIES, TIMEOUT, allow_connections, complaint, error_status, pause
from plumbline.study.evaluation import EmbeddingServerSpec, LexicalSpec, WordVectorsSpec
from plumbline.words import count

#: Words, contractions split as in the Penn Treebank (do n't, it 's), and punctuation: GloVe has vectors for them.
_WORDS = re.compile(r"\w+(?=n't\b)|n't\b|'\w+|\w+|[^\w\s]")
_ALIKE = 0.05  # most that two embeddings of a text differ, by the largest number: batches change last digits


class WordVectors(TextModel):
    """The mean of the vectors of a text's words, in lower case; words without a vector are left out.

    A text without any known word gets the mean of all vectors, which GloVe's authors recommend for an unknown word.
    """

    def __init__(self, spec: WordVectorsSpec, base: Path, precision: str = "") -> None:
        """Read the vectors. Raises StudyError for a missing folder, ServiceError for files that are no word vectors."""
        self.prompts = {}
        folder = Path(spec.location(base))
        try:
            self._vectors: Embeddings = np.load(_only(folder, "*.npy"), mmap_mode="r", allow_pickle=False)
            file = _only(folder, "*.txt", "*.parquet")
            if file.suffix == ".parquet":
                words = list(pd.read_parquet(file).iloc[:, 0].astype(str))
            else:
                words = file.read_text(encoding="utf-8").splitlines()
            if self._vectors.ndim != 2 or len(self._vectors) != len(words) or not len(words):
                raise ValueError(f"vectors of shape {self._vectors.shape} for {len(words)} words")
            self._unknown = self._vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        except Exception as error:  # whatever numpy and pyarrow raise for other files
            line = f"model {spec.name!r} cannot be loaded from {folder}: {first_line(error)}"
            raise ServiceError(f"{line}; correct its `path`") from error
        self._rows = {word: row for row, word in reversed(list(enumerate(words)))}  # the first of equal words counts

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        return np.stack([self._mean(prompt + text) for text in texts])

    def _mean(self, text: str) -> Embeddings:
        rows = [self._rows[word] for word in _WORDS.findall(text.lower()) if word in self._rows]
        return np.asarray(self._vectors[rows].mean(axis=0, dtype=np.float64) if rows else self._unknown, np.float32)


class CharacterNgrams(TextModel):
    """Counts of the n-grams of characters within a text's words, hashed (scikit-learn's HashingVectorizer).

    Nothing is fitted: an embedding depends only on its text, in any script. An empty text, without
    n-grams, has an axis of its own: it is equal to other such texts, and similar to no others.
    """

    def __init__(self, *_: Any) -> None:
        self.prompts = {}

    @functools.cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415

        return HashingVectorizer(analyzer="char_wb", ngram_range=LexicalSpec.NGRAMS, n_features=LexicalSpec.DIMENSIONS)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return rows of length 1 in the texts' order, with one number more than `LexicalSpec.DIMENSIONS`."""
        vectors = np.zeros((len(texts), LexicalSpec.DIMENSIONS + 1), dtype=np.float32)
        vectors[:, :-1] = self._vectorizer.transform([prompt + text for text in texts]).toarray()
        vectors[~vectors.any(axis=1), -1] = 1.0
        return vectors


def _only(folder: Path, *patterns: str) -> Path:
    """Return the folder's one file of such a name. Raises ValueError if there is none or another one."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise ValueError(f"must contain one file {' or '.join(patterns)}, but contains {names}")
    return files[0]


class ServerModel(TextModel):
    """A model of an embedding server; the key is sent to it and shown nowhere."""

    def __init__(self, spec: EmbeddingServerSpec, base: Path = Path(), precision: str = "") -> None:
        """Prepare the connection, without a request. Raises StudyError for an invalid key."""
        self.prompts = dict(spec.prompts)
        self._spec = spec
        self._url = f"{spec.base_url.rstrip('/')}/embeddings"
        try:
            self._key = key_in(spec.settings.api_key_env) or "EMPTY"
            address = urlsplit(self._url)
            proxy = proxy_for(address.scheme, address.netloc)
        except ValueError as error:
            raise StudyError(f"model {spec.name!r}: {error}") from None
        options: dict[str, Any] = {"maxsize": spec.requests, "retries": False, "timeout": TIMEOUT}
        allow_connections(spec.requests)
        self._pool = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
        self._width = 0
        # base64 takes a fifth of the bytes of decimal numbers; servers that do not support it send numbers, or refuse
        # the field, and are then asked without it.
        self._encoding = str(spec.settings.request.get("encoding_format", "base64") or "")
        self._comparing, self._proven = threading.Lock(), False  # base64 with numbers

    def routed(self) -> bool:
        return self._spec.by_role

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Return rows in the texts' order. Raises as `arriving`."""
        parts = dict(self.arriving(texts, prompt=prompt, role=role, batch_size=batch_size, faults=[]))
        return np.concatenate([parts[first] for first in sorted(parts)])

    def arriving(
        self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int, faults: list[PlumblineError]
    ) -> Iterator[tuple[int, Embeddings]]:
        """Yield the rows of each request as they arrive, after the number of its first text.

        A request has `batch_size` texts; as many are in flight as the study allows. With the first of `faults`, to
        which the caller may add, requests end; it is raised when those in flight, which are paid, have arrived. A
        ServiceError is added for a server that fails, refuses, or returns something else.
        """
        workers = ThreadPoolExecutor(self._spec.requests)
        starts = range(0, len(texts), batch_size)
        try:
            starts_by_request = {
                workers.submit(self._ask, [prompt + text for text in texts[at : at + batch_size]], role): at
                for at in starts
            }
            for request in as_completed(starts_by_request):
                if request.cancelled():
                    continue
                try:
                    rows = self._of_width(request.result())
                except ServiceError as error:
                    faults.append(error)
                else:
                    yield starts_by_request[request], rows
                if faults:
                    for waiting in starts_by_request:
                        waiting.cancel()
        finally:
            workers.shutdown(cancel_futures=True)
        if faults:
            raise faults[0]

    def _of_width(self, rows: Embeddings) -> Embeddings:
        self._width = self._width or rows.shape[1]
        if rows.shape[1] != self._width:
            raise self._error(f"an embedding has {rows.shape[1]} dimensions, but an earlier one has {self._width}")
        return rows

    def _ask(self, texts: list[str], role: str) -> Embeddings:
        """Return the embeddings of one request's texts.

        Base64 does not say what floats it holds: the first embedding is compared with the same one in numbers.
        """
        while True:
            encoding = self._encoding
            rows, packed = self._answered(texts, role, encoding)
            with self._comparing:
                if packed and self._encoding == encoding and not self._proven:
                    self._compare(texts[0], role, rows[0])
                if not packed or self._encoding == encoding:
                    return rows

    def _compare(self, text: str, role: str, row: Embeddings) -> None:
        """Ask for numbers from now on if they are another embedding. Raises ServiceError if there are none."""
        if len(row) != self._spec.settings.request.get("dimensions"):
            rows, packed = self._answered([text], role, "float")
            if packed:
                raise self._error("it sends base64 where numbers were asked for, and does not say what floats it holds")
            numbers = rows[0]
            if len(numbers) != len(row) or not np.allclose(numbers, row, atol=_ALIKE * np.abs(numbers).max()):
                self._encoding = "float"
        self._proven = True

    def _answered(self, texts: list[str], role: str, encoding: str) -> tuple[Embeddings, bool]:
        """Send one request; return the embeddings, and whether they came as base64.

        A passing error that a gateway passes on with status 200 is retried as by its status.
        """
        fields = {**self._spec.fields(role), "encoding_format": encoding or None}
        fields = {name: value for name, value in fields.items() if value is not None}
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        # ASCII: a text may have an unpaired surrogate, which UTF-8 cannot encode
        body = json.dumps({"model": self._spec.name, "input": texts, **fields}).encode()
        for number in range(1, RETRIES + 2):
            replied: Mapping[str, str] = {}
            try:
                answer = self._pool.request("POST", self._url, body=body, headers=headers, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                line = f"no answer, asked {count(RETRIES + 1, 'time')} ({first_line(error).split(': ', 1)[-1]})"
                fault = self._error(f"{line}; start the server or correct base_url")
            else:
                page, replied = _parsed(answer.data), answer.headers
                status = answer.status if answer.status != 200 else error_status(page)
                if not status:
                    rows = self._rows(page, answer.data, len(texts))
                    return rows, isinstance(page["data"][0]["embedding"], str)
                fault = self._trouble(status, answer.data)
                if status not in PASSING:
                    if encoding and "encoding_format" in str(fault):
                        self._encoding = ""
                        return self._answered(texts, role, "")
                    raise fault
            if number <= RETRIES:
                time.sleep(pause(number, replied))
        raise fault

    def _rows(self, page: Any, content: bytes, wanted: int) -> Embeddings:
        """Return the embeddings of an answer in the texts' order, whatever order the server uses.

        An embedding without an index has that of its place: Gemini leaves out an index of 0, other servers all.
        """
        try:
            data = page["data"]
            vectors = {int(row.get("index", number)): _vector(row["embedding"]) for number, row in enumerate(data)}
        except (ValueError, TypeError, KeyError, AttributeError):
            line = "the reply is not an embedding response; check base_url (it usually ends in /v1)"
            words = complaint(content, self._key) if isinstance(page, dict) and page.get("error") else ""
            raise self._error(": ".join(filter(None, (line, words)))) from None
        if len(data) != wanted or vectors.keys() != set(range(wanted)):
            raise self._error(
                f"it returned {count(len(data), 'embedding')} for {count(wanted, 'text')}, whose indexes begin"
                f" {sorted(vectors)[:5]}; it must return one for each text, with indexes from 0 to {wanted - 1}"
            )
        widths = sorted({len(vector) for vector in vectors.values()})
        if len(widths) > 1 or not widths[0]:
            raise self._error(f"it returned embeddings of different lengths in one request: {widths}")
        return np.stack([vectors[number] for number in range(wanted)])

    def _trouble(self, status: int, content: bytes) -> ServiceError:
        """Return the error for a status other than 200."""
        words = complaint(content, self._key)
        if status in (401, 403):
            return self._error(f"the key is not accepted; set {self._spec.settings.api_key_env}")
        if status == 404:
            return self._error(f"the server has no such model, or base_url lacks its /v1: {words}")
        tries = f", asked {count(RETRIES + 1, 'time')}" if status in PASSING else ""
        hint = ", evaluation.batch_size too large, or a field of requests missing or unknown (settings.request)"
        hint = f"; a text may be too long{hint}" if status in (400, 413, 422) else ""
        return self._error(f"status {status}{tries}: {words}{hint}")

    def _error(self, fault: str) -> ServiceError:
        return ServiceError(f"model {self._spec.name!r} at {self._spec.base_url}: {fault}")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _vector(value: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return one embedding from little-endian floats in base64 (in lines or not), or a list of numbers (null is NaN).

    llama.cpp's servers may give a list of such lists; of several, which are tokens' embeddings, none is the text's.
    """
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode("".join(value.split()), validate=True), "<f4")
    vector = np.asarray(value, dtype=np.float32)
    vector = vector[0] if vector.ndim == 2 and len(vector) == 1 else vector
    if vector.ndim != 1:
        raise ValueError("not a list of numbers")
    return vector
