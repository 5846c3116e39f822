"""A board: models ranked over a benchmark's tasks, the basis of the ranking, and its files."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from evaluation.benchmarks.scores import Scores, closed, read, slash
from evaluation.benchmarks.selection_files import PACKAGES
from evaluation.display import board_notes, board_rows, hundred, short_names
from evaluation.records import EvaluationRecords
from evaluation.tables.comparisons import board
from evaluation.tables.scores import originals
from generation.output_statistics import shown
from plumbline import cli
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import Exhibit, csv_bytes, json_file, reasons, write_files
from plumbline.identity import identity
from plumbline.study import load_study
from plumbline.study.places import output_folder
from plumbline.versions import installed_versions

NAME, SUMMARY = "board", "board.json"
_OF_STUDY = (
    "original scores of whole data sets; each counts once: the study's split, and the mean over its subsets (languages)"
)
_CHANGES = {
    "InstructionReranking": "p-MRR, which ranges from -100 to 100 and is near 0",
    "InstructionRetrieval": "p-MRR, which ranges from -100 to 100 and is near 0",
    "instruction_reranking": "p-MRR, which ranges from -100 to 100 and is near 0",
}


@dataclass(frozen=True)
class RankedModels:
    """A board (`evaluation.tables.comparisons.board`) of `scores`, and the types of its tasks in their order."""

    scores: Scores
    types: dict[str, str]
    seed: int
    table: pd.DataFrame

    @property
    def kinds(self) -> list[str]:
        """The types, each once."""
        return list(dict.fromkeys(self.types.values()))

    def exhibit(self) -> Exhibit:
        """Return the board as a table for people."""
        frame, n = self.scores.frame, len(self.types)
        points = bool(np.nanmax(np.abs(frame.to_numpy())) > 1)  # scores are already times 100
        form = partial(shown, digits=2) if points else hundred
        rows = board_rows(self.table, self.kinds, str, mean="Mean of types", shown=form)
        counts = ", ".join(f"{kind} {list(self.types.values()).count(kind)}" for kind in self.kinds)
        lines = [*self.scores.notes, f"tasks: {counts}; Mean of types: the mean of the types' means"]
        lines += [f"{kind} is {what}; it has the same weight in means as other types" for kind, what in _CHANGES.items()
                 if kind in self.kinds and len(self.kinds) > 1]  # fmt: skip
        lines += board_notes(self.table, n, "tasks")
        for kind in ("model", "task"):
            omitted = [omission.name for omission in self.scores.omissions if omission.kind == kind]
            more = ", ..." if len(omitted) > 5 else ""
            if omitted:
                kinds = f"{kind}{'s' if len(omitted) > 1 else ''}"
                lines.append(f"left out: {len(omitted)} {kinds} ({', '.join(omitted[:5])}{more}); {SUMMARY}")
        lines += reasons(self.table["model"], self.table["reason"])
        caption = f"{len(self.table)} models ranked over {n} tasks{'' if points else ', scores times 100'}"
        return Exhibit(NAME, caption, self.table, pd.DataFrame(rows), tuple(lines))


def of_scores(scores: Scores, facts: pd.DataFrame, seed: int) -> RankedModels:
    """Return the board of scores (`evaluation.benchmarks.scores.read`), ranking gaps as mteb does."""
    frame = scores.frame.rename(index={name: slash(str(name)) for name in scores.frame.index})
    types = {str(name): str(facts["type"][str(name)]) for name in frame}
    return RankedModels(scores, types, seed, board(frame, types, seed=seed))


def of_originals(original_scores: pd.DataFrame, gaps: str, seed: int) -> RankedModels:
    """Return the board of a study's original scores (`evaluation.tables.scores.originals`)."""
    names = short_names(set(original_scores["model"]))
    original_scores = original_scores.assign(model=original_scores["model"].map(names))
    order = list(original_scores["dataset"].drop_duplicates())
    frame = original_scores.pivot(index="model", columns="dataset", values="original")[order]
    frame = frame.rename_axis(index=None, columns=None)
    scores = closed(Scores(frame, {str(name): str(name) for name in frame.index}, notes=(_OF_STUDY,)), gaps)
    task_types = dict(zip(original_scores["dataset"], original_scores["task_type"], strict=True))
    types = {str(name): str(task_types[name]) for name in scores.frame}
    return RankedModels(scores, types, seed, board(scores.frame, types, seed=seed))


def write(folder: Path, ranked: RankedModels, source: str) -> None:
    """Write the table in its forms and its basis, each file atomically."""
    exhibit = ranked.exhibit()
    summary = {
        "from": source,
        "types": ranked.types,
        "notes": list(exhibit.notes),
        "left_out": [vars(omission) for omission in ranked.scores.omissions],
        "rests_on": {
            "files": ranked.scores.files,
            "scores": identity("score-matrix-v1", list(ranked.types), ranked.scores.rows),
            "task_list": identity("task-list-v1", list(ranked.types)),
        },
        "seed": ranked.seed,
        "versions": dict.fromkeys(PACKAGES) | installed_versions(PACKAGES),
    }
    write_files(
        folder,
        {
            f"{NAME}.csv": csv_bytes(ranked.table),
            f"{NAME}.md": exhibit.markdown().encode(),
            f"{NAME}.tex": exhibit.latex().encode(),
            SUMMARY: json_file(summary),
        },
    )


def rank_models(options: argparse.Namespace) -> int:
    """Run `board`: rank models on any benchmark, in the form of MMTEB's Tables 2 and 18."""
    out = output_folder(options.out, "board")
    if options.source.endswith((".yaml", ".yml")):
        unfit = {"--benchmark": options.benchmark, "--languages": options.languages, "--tasks": options.tasks}
        if named := [name for name, values in unfit.items() if values]:
            raise StudyError(f"{named[0]} does not apply to a study, whose data sets are the tasks; leave it out")
        study = load_study(options.source, options.exports)
        ranked = of_originals(originals(EvaluationRecords.open(study).scores), options.gaps, options.seed)
    else:
        scores, facts, _ = read(options)
        ranked = of_scores(closed(scores, options.gaps), facts, options.seed)
    if not len(ranked.table):
        raise DataError(f"--from {options.source}: no model has a score, so there is nothing to rank")
    shown = ranked.exhibit()
    write(out, ranked, options.source)
    print(shown.caption)
    cells = [list(map(str, row)) for row in shown.printed.itertuples(index=False)]
    print(cli.columns(list(map(str, shown.printed.columns)), cells))
    print("\n".join(["", *(f"- {note}" for note in shown.notes)]))
    print(f"-> {out}: {NAME}.csv, .md, .tex, {SUMMARY}")
    return 0
