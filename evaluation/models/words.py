"""Models of single words: averaged word vectors, and counts of character n-grams.

They know nothing of order or meaning in context; beside them one sees what a model adds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.models.embeddings import Embeddings
from evaluation.models.in_process import first_line
from plumbline.errors import ServiceError
from plumbline.study.evaluation import ModelSpec

#: Words, contractions split as in the Penn Treebank (do n't, it 's), and signs, each of which GloVe has vectors for.
_WORDS = re.compile(r"\w+(?=n't\b)|n't\b|'\w+|\w+|[^\w\s]")


class CosineModel:
    """What models have in common that know neither roles nor prompts, and are compared by cosine."""

    def __init__(self, prompts: dict[str, str] | None = None) -> None:
        self.prompts = prompts or {}
        self.default_prompt = ""

    def routed(self) -> bool:
        """Never: there are no roles."""
        return False

    def similarities(self) -> tuple[Any, Any] | None:
        """Both as functions that need no model."""
        return cosines, pairwise_cosines

    def similarity(self, first: Any, second: Any) -> Any:
        """Cosine."""
        return cosines(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Cosine, row by row."""
        return pairwise_cosines(first, second)


def cosines(first: Any, second: Any) -> Any:
    """The cosines of all of `first` with all of `second`, as mteb has them."""
    from mteb.similarity_functions import cos_sim  # noqa: PLC0415 (takes seconds)

    return cos_sim(first, second)


def pairwise_cosines(first: Any, second: Any) -> Any:
    """The cosines of `first` and `second` row by row, as mteb has them."""
    from mteb.similarity_functions import pairwise_cos_sim  # noqa: PLC0415 (takes seconds)

    return pairwise_cos_sim(first, second)


class WordVectors(CosineModel):
    """The mean of the vectors of a text's words, in lower case; words without a vector are left out.

    A text without any known word gets the mean of all vectors, which GloVe's authors give for an unknown word.
    """

    def __init__(self, spec: ModelSpec, base: Path) -> None:
        """Read it. Raises StudyError for a missing folder, ServiceError for files that are no word vectors."""
        super().__init__()
        folder = Path(spec.location(base))
        try:
            self._vectors: Embeddings = np.load(folder / spec.vectors, mmap_mode="r", allow_pickle=False)
            words = _words(folder / spec.words)
            if self._vectors.ndim != 2 or len(self._vectors) != len(words) or not len(words):
                raise ValueError(f"an array of {self._vectors.shape} for {len(words)} words")
            self._unknown = self._vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        except Exception as error:  # whatever numpy and pyarrow raise for a file that is none of theirs
            line = f"model {spec.name!r} cannot be loaded from {folder}: {first_line(error)}"
            raise ServiceError(f"{line}; correct its `path`, `vectors` and `words`") from error
        self._rows = {word: row for row, word in reversed(list(enumerate(words)))}  # of equal words the first

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Rows in the texts' order."""
        return np.stack([self._mean(prompt + text) for text in texts])

    def _mean(self, text: str) -> Embeddings:
        rows = [self._rows[word] for word in _WORDS.findall(text.lower()) if word in self._rows]
        return np.asarray(self._vectors[rows].mean(axis=0, dtype=np.float64) if rows else self._unknown, np.float32)


class CharacterNgrams(CosineModel):
    """Counts of the n-grams of characters within a text's words, hashed (scikit-learn's HashingVectorizer).

    Nothing is fitted: an embedding depends on its text and the parameters alone, in any script. A text that has no
    n-grams, being empty, lies on an axis of its own: as near as can be to another such text, and to no other.
    """

    def __init__(self, spec: ModelSpec) -> None:
        """Nothing is loaded."""
        super().__init__()
        self._spec = spec

    @functools.cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415

        return HashingVectorizer(analyzer="char_wb", ngram_range=self._spec.ngrams, n_features=self._spec.dimensions)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        """Rows of length 1 in the texts' order, of one number more than `dimensions`."""
        made = np.zeros((len(texts), self._spec.dimensions + 1), dtype=np.float32)
        made[:, :-1] = self._vectorizer.transform([prompt + text for text in texts]).toarray()
        made[~made.any(axis=1), -1] = 1.0
        return made


def _words(file: Path) -> list[str]:
    """The words of the rows: the first column of a Parquet file, or the lines of a text file."""
    if file.suffix == ".parquet":
        return list(pd.read_parquet(file).iloc[:, 0].astype(str))
    return file.read_text(encoding="utf-8").splitlines()
