"""The usable outputs with error types that no retry weeded out: raters see them, so each stage before says how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from generation.jobs import Plan
from generation.unit import COMMAND, refuse_other_outputs
from plumbline.records import TransformedText
from plumbline.store import read_batches
from plumbline.study import Study

NAMED = 0.02  # a larger share is said
DOUBTFUL = 0.1  # a larger one is warned of
_COLUMNS = ("source_language", "status", "flags", "generator_hash", "prompt_hash")


@dataclass(frozen=True)
class FlagCount:
    """How many of a transformation's usable outputs of originals in one language have an error type."""

    transformation: str
    language: str
    flag: str
    n: int
    outputs: int  #: usable ones, with the error type or without
    kept_out: bool = False  #: whether the sample was drawn without them

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.n / self.outputs

    @property
    def doubtful(self) -> bool:
        """Whether so many of the outputs that raters see are flagged that somebody should look at them first."""
        return self.share > DOUBTFUL and not self.kept_out

    def __str__(self) -> str:
        """In words, for one line."""
        advice = f"; look at them, or keep them from raters with `sample.without: [{self.flag}]`"
        said = f"{self.transformation}, {self.language}: {self.share:.1%} of the outputs are flagged {self.flag}"
        return f"{said} (docs/flags.md){advice if self.doubtful else ''}"


def flagged_outputs(study: Study) -> list[FlagCount]:
    """What is flagged among the usable outputs on disk of the study's generator and prompts, over all seeds."""
    plan, found, outputs = Plan(study), Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()
    for name in study.transformations:
        made_by = plan.makers[name].hash, plan.prompt_hashes[name]
        for seed in study.seeds:
            path = study.transformation_file(name, seed)
            refuse_other_outputs(study, name, seed)
            for table in read_batches(path, TransformedText, study.command(COMMAND), _COLUMNS) if path.exists() else ():
                languages, flags = _usable(table, made_by)
                outputs.update((name, language) for language in languages)
                found.update((name, *one) for one in flags)
    return [FlagCount(*place, n, outputs[place[:2]]) for place, n in found.items()]


def _usable(table: pa.Table, made_by: tuple[str, str]) -> tuple[list[str], list[tuple[str, str]]]:
    """(the languages of the usable originals, (language, error type) of each flag) of a piece of a table."""
    own = [pc.equal(table[name], value) for name, value in zip(_COLUMNS[3:], made_by, strict=True)]
    usable = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.and_(*own))).combine_chunks()
    places = pc.list_parent_indices(usable["flags"])
    languages, flags = usable["source_language"], pc.list_flatten(usable["flags"])
    return languages.to_pylist(), list(zip(languages.take(places).to_pylist(), flags.to_pylist(), strict=True))


def flagged_lines(found: Iterable[FlagCount]) -> list[str]:
    """A warning for each share above `DOUBTFUL`, and one line for all others above `NAMED`; the largest first."""
    named = sorted((one for one in found if one.share > NAMED), key=lambda one: -one.share)
    others = [
        f"{one.share:.1%} of {one.transformation}, {one.language}, {one.flag}{' (kept out)' if one.kept_out else ''}"
        for one in named
        if not one.doubtful
    ]
    line = f"outputs flagged with an error type (docs/flags.md): {'; '.join(others)}"
    return [*(f"WARNING: {one}" for one in named if one.doubtful), *([line] if others else [])]
