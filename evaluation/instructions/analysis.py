"""What a report on wordings is made of: the scores that count, what is taken of them, and what is doubtful."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from evaluation.display import short_names
from evaluation.instructions import tables
from evaluation.instructions.boards import HOLES, chosen_boards, drawn_boards, recommended_board
from evaluation.instructions.comparable import Choice, empty_prompts, marked, parts_of, reasons, sharing_folders
from evaluation.instructions.grid import Grid, grid_of
from evaluation.instructions.origins import choice_table, source_tests
from plumbline.errors import DataError, StudyError
from plumbline.statistics.seeding import stream

SIMULATED = (
    "SIMULATED LABELS: which wordings are acceptable was made up to show that the flow works, not said by people."
)
MATCHED, PUBLISHED = "matched", "published"
SOURCES = ("machine", "human", "all")
_MOST_NAMED = 4  # tasks, or pairs, named in a note


@dataclass(frozen=True)
class Settings:
    """What a command chooses: parts of tasks, whose wordings, which defaults, what a hole in a board does, the seed."""

    choice: Choice = field(default_factory=Choice)
    source: str = ""
    defaults: str = MATCHED
    holes: str = "mteb"
    seed: int = 1337


@dataclass(frozen=True)
class Analysis:
    """Scores with what was marked, all wordings (`whole`), and those that are analysed (`grid`): accepted, of a source.

    Tables are made when they are first asked for.
    """

    marked: pd.DataFrame
    whole: Grid
    grid: Grid
    items: pd.DataFrame
    settings: Settings
    source: str
    notes: tuple[str, ...]

    @cached_property
    def distribution(self) -> pd.DataFrame:
        """A row for each model and task."""
        return tables.distribution_table(self.grid)

    @cached_property
    def variation(self) -> pd.DataFrame:
        """A row a model."""
        return tables.variation_table(self.grid)

    @cached_property
    def inflation(self) -> pd.DataFrame:
        """A row a model."""
        return tables.inflation_table(self.grid, seed=self.settings.seed)

    @cached_property
    def boards(self) -> pd.DataFrame:
        """A row for each board and model."""
        return chosen_boards(self.grid, self.settings.holes)

    @cached_property
    def drawn(self) -> pd.DataFrame:
        """A row a model, over random wordings."""
        return drawn_boards(self.grid, self.settings.holes, rng=stream(self.settings.seed, "boards of random wordings"))

    @cached_property
    def recommended(self) -> pd.DataFrame:
        """The board by means over wordings."""
        return recommended_board(self.grid, self.settings.holes, seed=self.settings.seed)

    @cached_property
    def origins(self) -> pd.DataFrame:
        """People's wordings against machines', of those that were accepted."""
        return source_tests(self.whole.accepted(), seed=self.settings.seed)

    @cached_property
    def halves(self) -> pd.DataFrame:
        """Best wordings chosen on one half of the items, where there are scores by item."""
        named = short_names(set(self.marked["model"]))
        return choice_table(self.grid, self.items, seed=self.settings.seed, named=named)

    @cached_property
    def gate(self) -> pd.DataFrame:
        """Accepted wordings beside all."""
        return tables.gate_table(self.whole.of_source(self.source) if self.source else self.whole)

    @cached_property
    def published(self) -> pd.DataFrame:
        """What published defaults would have one conclude, beside matched ones."""
        return tables.published_table(self.grid) if self.settings.defaults == MATCHED else pd.DataFrame()

    @property
    def simulated(self) -> bool:
        """Whether labels were made up."""
        return self.whole.simulated

    @property
    def holes(self) -> int:
        """Models' missing defaults on the boards' tasks."""
        return int(np.isnan(self.grid.default).sum())


def analyse(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    settings: Settings,
    notes: tuple[str, ...] = (),
    where: Path | str = "scores",
) -> Analysis:
    """The analysis of a long table (`checked_scores`) and of scores by item (empty where there are none).

    Machines' wordings are analysed where there are any, as people's are often of some models alone; both are compared
    in a table of its own. Raises DataError where nothing can be compared, StudyError for a choice that is not there.
    """
    if settings.holes not in HOLES or settings.defaults not in (MATCHED, PUBLISHED):
        raise StudyError(f"holes are {', '.join(HOLES)}; defaults are {MATCHED}, {PUBLISHED}")
    named = short_names(set(scores["model"]))
    try:
        marked_scores = marked(scores, settings.choice)
        whole = grid_of(marked_scores, named.__getitem__)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    sources = [source for source in whole.sources if source]
    source = settings.source or ("machine" if "machine" in sources else "")
    source = "" if source == "all" or not sources else source
    if source and source not in sources:
        raise StudyError(f"{where}: no wording is by the source {source!r}; there are: {', '.join(sources)}")
    grid = whole.accepted()
    grid = (grid.of_source(source) if source else grid).with_wordings()
    if settings.defaults == PUBLISHED:
        if np.isnan(grid.reported).all():
            raise StudyError(f"{where}: no published default (prompt id `reported`) is in it; leave --defaults out")
        grid = replace(grid, default=grid.reported)
    if (~np.isnan(grid.scores)).sum(axis=-1).max(initial=0) < 2:
        raise StudyError(f"{where}: no task has 2 wordings that people accepted; nothing can be compared")
    if settings.holes == "complete" and np.isnan(grid.default).any(axis=0).all() and len(grid.models) > 1:
        raise StudyError(f"{where}: no task has a default of every model; take another rule than --holes complete")
    return Analysis(
        marked_scores,
        whole,
        grid,
        items,
        settings,
        source,
        (*notes, *_said(marked_scores, whole, grid, source, settings)),
    )


def _said(scores: pd.DataFrame, whole: Grid, grid: Grid, source: str, settings: Settings) -> list[str]:
    """What the numbers rest on and lack."""
    notes = []
    if not whole.gated:
        notes.append("nobody has said which wordings are acceptable: all of them count")
    elif (unsaid := _distinct(whole, whole.facts["label"] == "")) > 0:
        notes.append(f"{unsaid} wordings have no label: they count nowhere")
    if source and len([name for name in whole.sources if name]) > 1:
        notes.append(f"analysed are wordings by {source} alone (--source); the others stand in a table of their own")
    if source and (unsaid := _distinct(whole, whole.facts["source"] == "")) > 0:
        notes.append(f"{unsaid} wordings have no source: they count only with --source all")
    notes += _parts_said(parts_of(scores))
    lacking = sorted({*whole.tasks, *whole.models} - {*grid.tasks, *grid.models})
    if lacking:
        named = f"{', '.join(lacking[:_MOST_NAMED])}{' ...' if len(lacking) > _MOST_NAMED else ''}"
        notes.append(f"without a wording that counts, and so left out: {named}")
    if settings.defaults == PUBLISHED:
        notes.append(
            "defaults are the published ones, which may be of other splits, subsets, revisions and mteb versions"
        )
    elif missing := int(np.isnan(grid.default).sum()):
        notes.append(
            f"{missing} of {grid.default.size} defaults of the same run and part are missing: {HOLES[settings.holes]}"
        )
    scored = ~np.isnan(grid.scores)
    if lacking_some := int((scored.any(axis=-1) & (scored != scored.any(axis=0)).any(axis=-1)).sum()):
        notes.append(
            f"{lacking_some} of {grid.default.size} models' tasks lack wordings that other models have: their means"
            " rest on fewer"
        )
    if few := int(((~np.isnan(grid.scores)).sum(axis=-1) < 2).sum()):
        notes.append(f"{few} of {grid.default.size} models' tasks have fewer than 2 wordings: nothing is said of them")
    if empty := empty_prompts(scores):
        notes.append(f"{empty} wordings have no text although others have: one may be no prompt under another name")
    for first, second in sharing_folders(scores)[:_MOST_NAMED]:
        notes.append(f"{first!r} and {second!r} share mteb's folder and have equal scores: one may have the other's")
    notes += [
        f"{row.n} scores stand aside: {row.reason} ({row.example})" for row in reasons(scores).head(3).itertuples()
    ]
    return notes


def _parts_said(parts: pd.DataFrame) -> list[str]:
    """Which part is analysed of tasks with several."""
    several = parts[parts.groupby("task")["task"].transform("size") > 1]
    taken = [
        f"{task}: {split}/{subset}" for task, split, subset, _, chosen in several.itertuples(index=False) if chosen
    ]
    more = f" and {len(taken) - _MOST_NAMED} more" if len(taken) > _MOST_NAMED else ""
    named = "; ".join(taken[:_MOST_NAMED])
    return [f"of tasks with several parts one is analysed ({named}{more}); --part takes another"] if taken else []


def _distinct(grid: Grid, which: np.ndarray) -> int:
    return int((which & (grid.prompts != "") & (~np.isnan(grid.scores)).any(axis=0)).sum())
