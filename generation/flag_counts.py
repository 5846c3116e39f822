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
        line = f"{self.transformation}, {self.language}: {self.share:.1%} of the outputs are flagged {self.flag}"
        return f"{line} (docs/flags.md){advice if self.doubtful else ''}"


def flagged_outputs(study: Study) -> list[FlagCount]:
    """What is flagged among the usable outputs on disk of the study's generator and prompts, over all seeds."""
    plan, flagged, outputs = Plan(study), Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()
    for name in study.transformations:
        made_by = plan.makers[name].hash, plan.prompt_hashes[name]
        for seed in study.seeds:
            path = study.transformation_file(name, seed)
            refuse_other_outputs(study, name, seed)
            for table in read_batches(path, TransformedText, study.command(COMMAND), _COLUMNS) if path.exists() else ():
                languages, flags = _usable(table, made_by)
                outputs.update((name, language) for language in languages)
                flagged.update((name, *row) for row in flags)
    return [FlagCount(*group, n, outputs[group[:2]]) for group, n in flagged.items()]


def _usable(table: pa.Table, made_by: tuple[str, str]) -> tuple[list[str], list[tuple[str, str]]]:
    """(the languages of the usable originals, (language, error type) of each flag) of a piece of a table."""
    as_made = [pc.equal(table[name], value) for name, value in zip(_COLUMNS[3:], made_by, strict=True)]
    usable = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.and_(*as_made))).combine_chunks()
    places = pc.list_parent_indices(usable["flags"])
    languages, flags = usable["source_language"], pc.list_flatten(usable["flags"])
    return languages.to_pylist(), list(zip(languages.take(places).to_pylist(), flags.to_pylist(), strict=True))


def flagged_lines(counts: Iterable[FlagCount]) -> list[str]:
    """A warning for each share above `DOUBTFUL`, and one line for all others above `NAMED`; the largest first."""
    named = sorted((count for count in counts if count.share > NAMED), key=lambda count: -count.share)
    others = [
        f"{count.share:.1%} of {count.transformation}, {count.language}, {count.flag}"
        f"{' (kept out)' if count.kept_out else ''}"
        for count in named
        if not count.doubtful
    ]
    line = f"outputs flagged with an error type (docs/flags.md): {'; '.join(others)}"
    return [*(f"WARNING: {count}" for count in named if count.doubtful), *([line] if others else [])]
