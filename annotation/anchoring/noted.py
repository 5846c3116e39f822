"""What an experiment shows, noted before anything is published: afterwards nobody can choose which score it was."""

from __future__ import annotations

from annotation.adjudication.suggesting import suggestions_of
from annotation.argilla.suggestions import Suggested, Suggestion
from annotation.judges.beside import read_judging
from annotation.offering import alone
from annotation.ratings.collected import Collected
from annotation.rubric import load_rubric
from annotation.sampling.suggested import refuse_other_half
from annotation.shown_records import ShownScore
from annotation.statistics.summaries import Design
from plumbline.errors import DataError
from plumbline.manifest import read_kept, write_kept
from plumbline.records import SUGGESTED
from plumbline.study import Study

FILE = "suggestions.json"
COMMAND = "annotation publish"


def read_shown(study: Study) -> list[ShownScore]:
    """What was noted, of both halves; nothing before publishing. Raises DataError for a file that a hand changed."""
    return read_kept(study, FILE, ShownScore, study.command(COMMAND))


def suggestions_to_show(study: Study) -> Suggested:
    """What the half of an experiment shows, by pair: as it was noted, else noted now from what judges said.

    Empty where the study makes no experiment. A pair of either half of which no judge has a score shows nothing, and
    stays in its half. Raises DataError where judges have not rated all pairs yet.
    """
    if study.raters.suggestions == "none":
        return {}
    with alone(study):
        noted = read_shown(study) or _note(study)
    found: dict[str, tuple[Suggestion, ...]] = {}
    for one in noted:
        if one.shown:
            made = Suggestion(one.question, one.value, one.agent, one.label_mass)
            found[one.pair_id] = (*found.get(one.pair_id, ()), made)
    return found


def _note(study: Study) -> list[ShownScore]:
    collected, rubric = Collected.read(study), load_rubric(study)
    pairs = [*collected.sample_pairs, *collected.control_pairs]
    refuse_other_half(study, pairs)
    halves = {pair.pair_id: pair.control == SUGGESTED for pair in pairs if pair.drawn}
    said, design = read_judging(study, collected).judgements, Design.of(study, rubric)
    own = said[said["pair_id"].isin(list(halves))]
    waiting = set(halves) - set(own["pair_id"]) | set(own.loc[own["status"] == "unanswered", "pair_id"])
    if waiting or set(own["judge"]) != {one.name for one in study.judges}:
        raise DataError(
            f"{study.name}: judges have not rated all pairs of the experiment yet; run"
            f" `{study.command('annotation judge run')}` first"
        )
    scales = {name: design.asked(name).scale for name in rubric.rating_names()}
    noted = [
        ShownScore(
            pair_id=pair_id,
            shown=halves[pair_id],
            question=one.question,
            value=one.value,
            agent=one.agent,
            label_mass=one.score,
        )
        for pair_id, found in sorted(suggestions_of(own, scales).items())
        for one in found
    ]
    write_kept(study, FILE, noted)
    return noted
