"""What a study wants from the generator: one job for each distinct output, whatever data sets it serves.

A transformation may be a function, `module:function` of an installed package, which is found without running anything
of it. It is called as `function(text, language=..., seed=...)` and returns the transformed text: `text` is in NFC,
`language` the code of the language that the output is to be in, `seed` the transformation seed. Equal arguments must
give equal texts, whatever was asked before. The source of its module is a part of every output's identity.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

from generation.recordings import outputs_path, recorded_languages
from plumbline.errors import StudyError
from plumbline.file_hashes import FactCache, cached_file_hash
from plumbline.identity import identity, identity_from, prefix
from plumbline.prompts import Prompt, prompt_hash, prompts_of
from plumbline.records import Text
from plumbline.study import Study
from plumbline.study.engines import EngineSpec
from plumbline.study.transformations import Transformation


class Job(NamedTuple):
    """One text to be transformed in one way.

    `key` is the identity of its output, `language` the drawn one; `languages` are those that each call is told to
    answer in, and the last is the output's.
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
    """What makes a transformation's texts, as records name it.

    `kind` is the generator's (recorded, openai, vllm), or function or outputs; `model` the generator's model, the
    function, or the file; `hash` their identity.
    """

    kind: str
    model: str
    hash: str


class Plan:
    """The jobs of a study: what stands where is known before anything is generated.

    `kinds` are its transformations, `makers` what makes their texts. Reads the prompts once; raises StudyError if one
    is missing or malformed, or the source of a function, DataError for a file of outputs that is not there. Where the
    study takes the recorded languages, the first job that has one reads its unit's recordings, in every command.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        if not study.judging.transforms:
            raise StudyError(
                f"{study.file}: nothing is transformed where the subject is {study.judging.kind}; run"
                f" `{study.command(study.judging.first_command)}`"
            )
        self.kinds = study.transforming
        self.generator_hash = generator_hash(study.generator)
        self.makers = makers_of(study.generator, self.kinds)
        self.prompts: dict[str, tuple[Prompt, ...]] = {
            name: prompts_of(kind, study.prompts) for name, kind in self.kinds.items()
        }
        self._starts: dict[tuple[str, int, str, str | None], tuple[Any, tuple[str, ...]]] = {}
        self.prompt_hashes = {name: prompt_hash(prompts) if prompts else "" for name, prompts in self.prompts.items()}

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """The job whose output stands for this text of this data set."""
        kind = self.kinds[transformation]
        language = kind.drawn(seed=seed, dataset=text.dataset, text=text.text, source=text.language)
        if language is not None and self._recorded is not None:
            language = self._recorded(text, transformation, seed) or language
        beginning = transformation, seed, text.language, language
        start, languages = self._starts.get(beginning) or self._start(*beginning)
        key = identity_from(start, text.text)
        return Job(key, text.text_id, text.text, text.language, transformation, seed, language, languages)

    def _start(self, transformation: str, seed: int, source: str, language: str | None) -> tuple[Any, tuple[str, ...]]:
        """(what jobs' identities begin with, their languages); many share these, so they are made once."""
        languages = self.kinds[transformation].call_languages(source, language)
        start = prefix(
            "transformed-v2",
            self.makers[transformation].hash,
            self.prompt_hashes[transformation],
            transformation,
            seed,
            languages,
        )
        self._starts[transformation, seed, source, language] = start, languages
        return start, languages

    def jobs(self, texts: Iterable[Text], transformation: str, seed: int) -> Iterator[Job]:
        """The distinct jobs of one unit, in the texts' order: equal texts are transformed once."""
        seen: set[str] = set()
        for text in texts:
            job = self.job(text, transformation, seed)
            if job.key not in seen:
                seen.add(job.key)
                yield job

    @functools.cached_property
    def complete(self) -> FactCache:
        """Which large units were found complete: `generated.json`."""
        return FactCache(self.study, "generated.json")

    @property
    def by_recordings(self) -> bool:
        """Whether recordings say into which languages texts go, whatever else is the same."""
        return self._recorded is not None

    @functools.cached_property
    def _recorded(self) -> Callable[[Text, str, int], str | None] | None:
        """The languages of recordings, where the study takes them."""
        return recorded_languages(self.study) if self.study.generator.recorded_languages else None


def makers_of(generator: EngineSpec, kinds: Mapping[str, Transformation]) -> dict[str, Maker]:
    """What makes the texts of each of a study's transformations (`kinds`).

    Raises as `Plan` for a function or file of outputs.
    """
    return {name: _maker(generator, kind) for name, kind in kinds.items()}


def _maker(generator: EngineSpec, kind: Transformation) -> Maker:
    """What makes a transformation's texts."""
    if kind.function:
        return Maker("function", kind.function, identity("function-v1", kind.function, source_hash(kind.function)))
    if kind.outputs:
        columns = kind.outputs.text, kind.outputs.output
        path = outputs_path(kind)
        return Maker("outputs", Path(path).name, identity("outputs-v1", *columns, cached_file_hash(path)))
    return Maker(generator.kind, generator.model, generator_hash(generator))


def generator_hash(spec: EngineSpec) -> str:
    """Identity of what generates: model, revision and sampling; not its address, retries or concurrency."""
    return identity("generator-v1", *spec.identity())


Function = Callable[..., object]


def source_hash(function: str) -> str:
    """SHA-256 of the source of a function's module. Raises StudyError where the module, or its source, is not there."""
    return hashlib.sha256(_source(function).read_bytes()).hexdigest()


def load_function(function: str) -> Function:
    """The function itself: its module is imported, which runs code. Raises StudyError where there is none."""
    module, name = function.split(":")
    _source(function)
    try:
        attribute = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise StudyError(f"function {function!r}: its module cannot be imported ({_said(error)})") from None
    if not callable(attribute):
        raise StudyError(f"function {function!r}: {module} has no function {name!r}; correct it in the study")
    loaded: Function = attribute
    return loaded


def _source(function: str) -> Path:
    """The file that a function's module stands in, found as Python finds it, but for running the packages above it."""
    module = function.split(":", maxsplit=1)[0]
    spec: ModuleSpec | None = None
    places: list[str] | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:number]), places)
        if spec is None:
            what = ".".join(parts[:number])
            raise StudyError(
                f"function {function!r}: there is no module {what!r} here; install its package, or correct it"
            )
        places = list(spec.submodule_search_locations or [])
    path = Path(spec.origin or "") if spec else Path()
    if path.suffix != ".py" or not path.is_file():
        raise StudyError(f"function {function!r}: {module} has no Python source, which tells its outputs from others'")
    return path


def _spec(name: str, places: list[str] | None) -> ModuleSpec | None:
    """Where a module is, below `places`."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, places, None)
        except (AttributeError, ImportError, ValueError):
            continue
        if spec is not None:
            return spec
    return None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")
