"""The choice of a generator, from error rates to letters (HTEB, A.2 and A.3; PTEB, section 3.2.2).

`selection`, `effects` and `paraphrases` hold the computations; here they are put together for a study, with what makes
the choice doubtful.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from annotation.judges.effects import additive_fit, between_judges, length_slope, order_effects
from annotation.judges.judgements import over_orders
from annotation.judges.names import family
from annotation.judges.paraphrases import compared, cross_checked
from annotation.judges.select_material import FIRST, Material, Missing, read_material
from annotation.judges.selection import (
    Crossed,
    by_language,
    comparisons,
    crossed,
    ranking,
    self_preference,
    table_seven,
    table_six,
)
from plumbline.errors import StudyError, nearest
from plumbline.study import Study
from plumbline.words import count_words

MOST = 1000  # units of a Hodges-Lehmann centre: its bootstrap takes 8 s a judge then
SEEN = 0.005  # points; less is 0.00 where it is printed
OFTEN = 0.05  # share of judgements that may be left out before the choice is doubtful for it


@dataclass(frozen=True)
class Selected:
    """What was found, as tables by name; without a choice those on error rates alone."""

    question: str
    tables: Mapping[str, pd.DataFrame]
    doubts: tuple[str, ...]  #: what makes the choice doubtful
    missing: tuple[Missing, ...]
    recorded: tuple[str, ...]  #: judges and generators that are recordings
    why_none: str  #: why nothing is chosen; empty where something is
    compared: int = 0  #: judgements of each generator that the means are of: those that all of them have
    left_out: int = 0  #: ... and those that one of them lacks


def select(study: Study, best: int = FIRST, question: str = "") -> Selected:
    """Choose among a study's generator and candidates by what its judges say of the `best` with the lowest error rates.

    `question` is one of those that judges answered; the first of them unless named. Raises as `read_material`, and
    StudyError for a question that no judge answered, or that judges answer on different scales.
    """
    return choose(study, read_material(study, best), question)


def choose(study: Study, found: Material, question: str = "") -> Selected:
    """The same of what was read (`read_material`)."""
    asked = _question(study, found, question)
    tables = {"error_rates": found.errors}
    said = found.judgements[found.judgements["question"] == asked] if len(found.judgements) else found.judgements
    generators = sorted(set(said["generator"])) if len(said) else []
    chosen = int(found.errors["chosen"].sum())
    if len(generators) < 2:
        of = f"of the {chosen} with the lowest error rates" if chosen > 1 else "and a choice takes two"
        why = f"judges have rated the outputs of {len(generators) or 'none'} {of}"
        return Selected(asked, tables, (), found.missing, found.recorded, why)
    try:
        common = crossed(_everywhere(said, found.places), asked)
    except ValueError as error:
        why = f"{error}; with `judge_pool: all` judges rate the same texts of each"
        return Selected(asked, tables, (), found.missing, found.recorded, why)
    tables |= tables_of(replace(found, judgements=said), common, _scale(study, found, asked), study.sample.seed)
    doubts = tuple(_doubts(found, common, tables))
    return Selected(asked, tables, doubts, found.missing, found.recorded, "", len(common.cells), common.left_out)


def tables_of(found: Material, common: Crossed, scale: Sequence[int], seed: int) -> dict[str, pd.DataFrame]:
    """All tables on one question, of judgements that two generators or more have in common."""
    said = found.judgements
    question = str(said["question"].iloc[0])
    everywhere = _everywhere(said, found.places)
    differences = comparisons(common.observations, seed)
    ranked = ranking(common.observations, differences, seed)
    tables = {
        "ranking": ranked,
        "comparisons": differences,
        "table_6": table_six(common, ranked),
        "table_7": table_seven(common),
        "by_language": by_language(everywhere, question),
        **_effects(common, found.same, seed),
        "length": _length(said, found.outputs),
        "table_4": compared(said, found.outputs),
        "table_5": _cross_check(everywhere[everywhere["generator"] == ranked["generator"].iloc[0]], seed),
    }
    if {"up", "down"} <= set(said["order"]):
        tables["order"] = order_effects(said, "up", "down")
    if said["judge"].nunique() > 1:
        tables["between"] = between_judges(said, scale)
    return tables


def _question(study: Study, found: Material, wanted: str) -> str:
    known = list(dict.fromkeys(name for one in found.asked for name in one.questions))
    if wanted and wanted not in known:
        raise StudyError(f"{study.file}: no judge is asked {wanted!r}; {nearest(wanted, known)}")
    return wanted or known[0]


def _scale(study: Study, found: Material, question: str) -> list[int]:
    ends = {
        (one.scale(question).lowest, one.scale(question).highest) for one in found.asked if question in one.questions
    }
    if len(ends) > 1:
        raise StudyError(f"{study.file}: judges answer {question!r} on different scales; let one prompt ask it of all")
    ((low, high),) = ends
    return list(range(math.ceil(low), math.floor(high) + 1))


def _everywhere(said: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """The judgements, once for each place where the output's text stands, as error rates count them."""
    frame = said.merge(places, on="pair_id")
    return frame.assign(pair_id=frame["pair_id"] + "/" + frame["sample"] + "/" + frame["text_id"])


def _effects(common: Crossed, same: Mapping[str, str], seed: int) -> dict[str, pd.DataFrame]:
    """The additive fit: each judge's and generator's part, and self-preference of what is both."""
    own = Crossed(common.cells.rename(index=dict(same), level="judge"), common.left_out, common.failed)
    fit = additive_fit(own.cells.groupby("judge").mean())
    rows = [("generator", name, part, fit.mean + part, fit.reason) for name, part in fit.generators.items()]
    rows += [("judge", name, part, fit.mean + part, fit.reason) for name, part in fit.judges.items()]
    tables = {"effects": pd.DataFrame(rows, columns=["role", "name", "effect", "adjusted_mean", "reason"])}
    if own.cells.index.unique("judge").isin(own.cells.columns).any():
        tables["self_preference"] = self_preference(own, seed)
    return tables


def _length(said: pd.DataFrame, outputs: pd.DataFrame) -> pd.DataFrame:
    """A row a judge: how its scores rise with the logarithm of the length ratio, over all outputs."""
    texts = outputs.set_index("pair_id")
    before, after = (texts[name].astype(str).map(count_words) for name in ("original", "transformed"))
    ratios = after / before.where(before > 0)
    rows = []
    for judge, own in over_orders(said).groupby("judge"):
        slope = length_slope(own["score"].to_numpy(np.float64), ratios.reindex(own["pair_id"]).to_numpy(np.float64))
        rows.append((judge, slope.value, slope.low, slope.high, slope.reason))
    return pd.DataFrame(rows, columns=["judge", "slope", "low", "high", "reason"])


def _cross_check(own: pd.DataFrame, seed: int) -> pd.DataFrame:
    """What all judges say of the chosen one, over outputs, or where they are too many over samples or data sets."""
    units = {"output": "pair_id", "sample": "sample", "data set": "dataset"}
    fitting = [name for name, column in units.items() if own[column].nunique() <= MOST]
    unit = fitting[0] if fitting else "data set"
    return cross_checked(own, seed, unit=(units[unit],)).assign(unit=unit)


def _doubts(found: Material, common: Crossed, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """What makes the choice doubtful, gravest first."""
    doubts = []
    if found.recorded:
        doubts.append(f"recorded, nobody was asked: {', '.join(found.recorded)}")
    if found.missing:
        doubts.append(f"{len(found.missing)} thing{'s' * (len(found.missing) > 1)} missing (below)")
    best = str(tables["ranking"]["generator"].iloc[0])
    effects = tables["effects"]
    adjusted = effects[effects["role"] == "generator"].set_index("name")["adjusted_mean"]
    if adjusted.notna().all() and adjusted.idxmax() != best:
        doubts.append(f"without what models say of themselves {adjusted.idxmax()} is ahead (additive fit)")
    for row in tables["self_preference"].to_dict("records") if "self_preference" in tables else []:
        if row["low"] >= SEEN:
            interval = f"[{row['low']:.2f}, {row['high']:.2f}]"
            doubts.append(
                f"{row['model']} rates itself {row['self_preference']:.2f} {interval} above what the other cells expect"
            )
    judges = sorted(common.cells.index.unique("judge"))
    doubts += _relatives(found, judges, list(common.cells.columns))
    share = common.left_out / (common.left_out + len(common.cells))
    if share > OFTEN:
        doubts.append(f"{share:.0%} of the judgements are left out, since a generator lacks them")
    if len(judges) == 1:
        doubts.append(f"{judges[0]} is the only judge")
    return doubts


def _relatives(found: Material, judges: Sequence[str], generators: Sequence[str]) -> list[str]:
    """Judges that are a generator themselves, or by their names of its family."""
    models = {one.spec.name: one.spec.model for one in found.asked}
    own = [name for name in judges if found.same.get(name) in generators]
    near = {
        judge: [one for one in generators if found.same.get(judge) != one and family(one) == family(models[judge])]
        for judge in judges
    }
    said = [f"judges of their own outputs: {', '.join(own)}"] if own else []
    related = "; ".join(f"{judge} of {', '.join(names)}" for judge, names in near.items() if names)
    return [*said, *([f"judges of a relative by name: {related}"] if related else [])]
