"""The jobs of a study: one for each distinct output, however many data sets share it.

A transformation may be a function, `module:function` of an installed package; finding it runs none of its code. It is
called as `function(text, language=..., seed=...)` and returns the transformed text: `text` is in NFC, `language` is
the code of the output's language, `seed` the transformation seed. Equal arguments must always give equal texts. The
source of its module is part of every output's identity.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

from generation.recordings import outputs_path, recorded_languages
from plumbline.errors import StudyError
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity, identity_from, prefix
from plumbline.manifest import Manifest
from plumbline.prompts import Prompt, prompt_hash, prompts_of
from plumbline.records import Text
from plumbline.study import Study
from plumbline.study.engines import EngineSpec
from plumbline.study.transformations import Transformation

COMMAND = "generate"


def journal_files(journal: Path) -> list[Path]:
    """Return the journals of a unit (`Study.journal_file`): its shards' by name, then its own.

    Shards of other sizes may have the same text. Which line came last is unknown and does not matter: an `ok` line
    counts, wherever it is, as its text is not asked for again.
    """
    return [*sorted(journal.parent.glob(f"{journal.stem}.shard-*.journal")), *([journal] if journal.exists() else [])]


def refuse_other_outputs(study: Study, transformation: str, seed: int) -> None:
    """Raise DataError if a unit's outputs were changed after they were written."""
    name = str(study.transformation_file(transformation, seed).relative_to(study.folder))
    Manifest.of(study).refuse_replaced(name, study.command(COMMAND))


class Job(NamedTuple):
    """One text to transform in one way.

    `key` is the identity of its output, `language` the drawn language; `languages` has the language of each call's
    answer, the last of which is the output's.
    """

    key: str
    text_id: str
    text: str
    source_language: str
    transformation: str
    seed: int
    language: str | None
    languages: tuple[str, ...]


@dataclass(frozen=True)
class Maker:
    """The source of a transformation's texts, as records name it.

    `kind` is the generator's (recorded, openai, vllm), or function or outputs; `model` the generator's model, the
    function, or the file; `hash` their identity.
    """

    kind: str
    model: str
    hash: str


class Plan:
    """The jobs of a study, known before anything is generated.

    `kinds` are its transformations, `makers` the sources of their texts. Reads the prompts once. Raises StudyError if a
    prompt or a function's source is missing or malformed, DataError for a missing file of outputs. If the study uses
    recorded languages, the first job with one reads its unit's recordings, in every command.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        if not study.judging.transforms:
            raise StudyError(
                f"{study.file}: a study with the subject {study.judging.kind} transforms nothing; run"
                f" `{study.command(study.judging.first_command)}`"
            )
        self.kinds = study.transforming
        self.generator_hash = generator_hash(study.generator)
        self.makers = {name: maker_of(study.generator, kind) for name, kind in self.kinds.items()}
        self.prompts: dict[str, tuple[Prompt, ...]] = {
            name: prompts_of(kind, study.prompts) for name, kind in self.kinds.items()
        }
        self._starts: dict[tuple[str, int, str, str | None], tuple[Any, tuple[str, ...]]] = {}
        self.prompt_hashes = {name: prompt_hash(prompts) if prompts else "" for name, prompts in self.prompts.items()}

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """Return the job whose output replaces this text of this data set."""
        kind = self.kinds[transformation]
        language = kind.drawn(seed=seed, dataset=text.dataset, text=text.text, source=text.language)
        if language is not None and self._recorded is not None:
            language = self._recorded(text, transformation, seed) or language
        beginning = transformation, seed, text.language, language
        if beginning not in self._starts:  # the start of the jobs' identities, and their languages
            languages = kind.call_languages(text.language, language)
            made_by = self.makers[transformation].hash, self.prompt_hashes[transformation]
            self._starts[beginning] = prefix("transformed-v2", *made_by, transformation, seed, languages), languages
        start, languages = self._starts[beginning]
        key = identity_from(start, text.text)
        return Job(key, text.text_id, text.text, text.language, transformation, seed, language, languages)

    def jobs(self, texts: Iterable[Text], transformation: str, seed: int) -> Iterator[Job]:
        """Yield the distinct jobs of one unit, in the texts' order: equal texts are transformed once."""
        keys: set[str] = set()
        for text in texts:
            job = self.job(text, transformation, seed)
            if job.key not in keys:
                keys.add(job.key)
                yield job

    @functools.cached_property
    def _recorded(self) -> Callable[[Text, str, int], str | None] | None:
        """The languages of recordings, if the study uses them."""
        return recorded_languages(self.study) if self.study.generator.recorded_languages else None


def maker_of(generator: EngineSpec, kind: Transformation) -> Maker:
    """Return the source of a transformation's texts. Raises as `Plan` for a function or file of outputs."""
    if kind.function:
        return Maker("function", kind.function, identity("function-v1", kind.function, source_hash(kind.function)))
    if kind.outputs:
        chosen = kind.outputs.number, kind.outputs.sheet
        columns = kind.outputs.text, kind.outputs.output, *filter(None, chosen)
        path = outputs_path(kind)
        return Maker("outputs", Path(path).name, identity("outputs-v1", *columns, cached_file_hash(path)))
    return Maker(generator.kind, generator.model, generator_hash(generator))


def generator_hash(spec: EngineSpec) -> str:
    """Return the identity of a generator: model, revision and sampling; not address, retries or concurrency."""
    return identity("generator-v1", *spec.identity())


Function = Callable[..., object]


def source_hash(function: str) -> str:
    """Return the SHA-256 of a function's module. Raises StudyError if the module or its source is missing."""
    return hashlib.sha256(_source(function).read_bytes()).hexdigest()


def load_function(function: str) -> Function:
    """Import a function's module, which runs code, and return the function. Raises StudyError if it has none."""
    module, name = function.split(":")
    _source(function)
    try:
        attribute = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever its code raises
        line = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")
        raise StudyError(f"function {function!r}: its module cannot be imported ({line})") from None
    if not callable(attribute):
        raise StudyError(f"function {function!r}: {module} has no function {name!r}; correct it in the study")
    loaded: Function = attribute
    return loaded


def _source(function: str) -> Path:
    """Return the file of a function's module, found as Python does, but without running its parent packages."""
    module = function.split(":", maxsplit=1)[0]
    spec: ModuleSpec | None = None
    places: list[str] | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:number]), places)
        if spec is None:
            missing = ".".join(parts[:number])
            raise StudyError(
                f"function {function!r}: no module {missing!r} is installed; install its package, or correct the name"
            )
        places = list(spec.submodule_search_locations or [])
    path = Path(spec.origin or "") if spec else Path()
    if path.suffix != ".py" or not path.is_file():
        raise StudyError(
            f"function {function!r}: {module} has no Python source file, and outputs are identified by the file's hash;"
            " name a function in a .py file"
        )
    return path


def _spec(name: str, places: list[str] | None) -> ModuleSpec | None:
    """Return the spec of a module below `places`, or None."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, places, None)
        except (AttributeError, ImportError, ValueError):
            continue
        if spec is not None:
            return spec
    return None
