"""Which pairs people rate: a seeded, stratified random sample of each transformation's outputs without near-duplicates.

An output that is added later moves few of the others: those of its own stratum at most by one place, others only where
a near-duplicate of theirs came or went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.human.order import drop_answers
from annotation.human.records import ITEMS, TASKS, HumanItem, HumanTask
from annotation.human.tasks import prepared, refuse_other_tasks
from annotation.offering import alone, offered, read_waves, refuse_other_sample
from annotation.records import Wave
from annotation.rubric import Rubric, load_rubric
from annotation.sampling.candidates import Candidate, Candidates, Groups, SampleSource, Supply, Turns
from annotation.sampling.controls import make_controls, read_controls, spares_needed
from annotation.sampling.near_duplicates import DuplicateIndex, words_of
from annotation.sampling.queues import Queue, queues_of
from annotation.subjects import shown
from generation.jobs import Plan
from plumbline.errors import DataError, StudyError
from plumbline.fields import fields_of
from plumbline.identity import identity
from plumbline.manifest import read_kept, refuse_replaced_table, write_kept, write_kept_table
from plumbline.records import SUGGESTED, Pair
from plumbline.store import read_records, write_table
from plumbline.study import Study
from plumbline.study.reach import refuse_unreachable


def suggested_half(study: Study, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that show judges' scores: of each transformation and language every second one by a hash of the seed.

    Where a number is odd, one more counts. None where the study makes no such experiment.
    """
    if study.raters.suggestions == "none":
        return []
    order = sorted(pairs, key=lambda pair: identity("suggested-v1", study.sample.seed, pair.pair_id))
    turns: dict[tuple[str, str], int] = {}
    half = []
    for pair in order:
        stratum = (pair.transformation, pair.language)
        turns[stratum] = turns.get(stratum, 0) + 1
        if turns[stratum] % 2 == 0:
            half.append(pair.model_copy(update={"control": SUGGESTED}))
    return sorted(half, key=lambda pair: pair.pair_id)


def refuse_other_half(study: Study, pairs: Iterable[Pair]) -> None:
    """Raise StudyError where `raters.suggestions` is not what the sample was drawn for."""
    has_half = any(pair.control == SUGGESTED for pair in pairs)
    if has_half == (study.raters.suggestions == "half"):
        return
    how = "has a half that shows judges' scores" if has_half else "was drawn to show none of judges' scores"
    raise StudyError(
        f"{study.file}: raters.suggestions is {study.raters.suggestions!r}, and the sample {how}; undo the change, run"
        f" `{study.command('annotation sample')}` again where nobody was asked yet, or give the new study another name"
    )


COMMAND = "annotation sample"
SUPPLY, PAIRS = "sample.json", "pairs.parquet"


def draw_sample(study: Study) -> list[Pair]:
    """Draw the study's pairs; writes `pairs.parquet`, `controls.parquet` and `sample.json`.

    For each transformation `sample.pairs` outputs that did not fail and that this study's generator and prompts
    made, over all seeds, in equal shares of the strata as far as they reach; fewer where there are fewer. No two
    originals of a transformation are near-duplicates, nor of a queue: what one rater sees. Drawn again from the same
    outputs the sample is the same. Raises StudyError where another one may have been seen by raters already: such a
    sample stays as it is, file by file.

    Source: HTEB, section 2.4.

    >>> from annotation import draw_sample
    >>> from plumbline import load_study
    >>> pairs = draw_sample(load_study("studies/mine.yaml", exports="exports"))
    >>> len(pairs), pairs[0].transformation
    (24, 'paraphrasing')
    """
    with alone(study):
        return _draw(study)


def _draw(study: Study) -> list[Pair]:
    if waves := read_waves(study):
        _refuse_other_settings(study, waves[-1])
        return read_pairs(study)
    drawn = draw(study)
    if _stays(study, [*drawn.pairs, *drawn.controls]):
        refuse_other_tasks(study, drawn.tasks)
        return read_pairs(study)
    write_kept(study, SUPPLY, drawn.supply)
    if drawn.tasks:
        drop_answers(study, drawn.tasks, drawn.items)
        write_kept_table(study, ITEMS, drawn.items, HumanItem)
        write_kept(study, TASKS, drawn.tasks)
        write_kept_table(study, PAIRS, drawn.pairs, Pair)
    write_table(study.folder / "controls.parquet", drawn.controls, Pair)
    if not drawn.tasks:
        write_table(study.folder / PAIRS, drawn.pairs, Pair)
    return list(drawn.pairs)


@dataclass(frozen=True)
class SampleDrawing:
    """What was drawn, and of what."""

    pairs: Sequence[Pair]
    controls: Sequence[Pair]
    supply: Sequence[Supply]
    tasks: Sequence[HumanTask] = ()  #: that people do
    items: Sequence[HumanItem] = ()  #: of these tasks


def draw(study: Study, before: Sequence[Pair] = ()) -> SampleDrawing:
    """What a study's sample should be; with `before`, the pairs and controls that there are, what it lacks."""
    if study.judging.does_tasks:
        return _of_tasks(study)
    rubric = load_rubric(study)  # a rule that the scale cannot hold is refused before anybody rates
    for kind in study.kinds.values():
        rubric.pool(kind.pool)
    groups = None if study.judging.transforms else Groups(study, rubric)
    candidates: SampleSource = groups or Candidates(Plan(study))
    pairs: list[Pair] = []
    spares: list[Pair] = []
    texts: dict[str, set[tuple[str, str]]] = {}
    for pool in dict.fromkeys(kind.pool for kind in study.kinds.values()):
        members = [name for name, kind in study.kinds.items() if kind.pool == pool]
        drawing = PoolDrawing(candidates, members, [pair for pair in before if pair.pool == pool])
        texts |= drawing.texts
        drawn = drawing.sample()
        pairs += drawn
        spares += drawing.spares(rubric, drawn)
    refuse_unreachable(study, texts, f"{study.file}: ")
    order = list(study.kinds)
    pairs.sort(key=lambda pair: order.index(pair.transformation))
    known_items = groups.known(before) if groups else []
    controls = make_controls(study, rubric, pairs, spares, known_items)
    halved = suggested_half(study, pairs)
    half_ids = {pair.pair_id for pair in halved}
    return SampleDrawing(
        [pair for pair in pairs if pair.pair_id not in half_ids], [*controls, *halved], candidates.supply
    )


def _of_tasks(study: Study) -> SampleDrawing:
    """The items of tasks that people do, as the tasks draw them."""
    every = list(prepared(study))
    rubric = load_rubric(study, tasks=[drawn_task.task for drawn_task in every])
    seen = {drawn_task.task.task: shown(drawn_task, study.kinds[drawn_task.task.task]) for drawn_task in every}
    pairs = [pair for view in seen.values() for pair in view.pairs]
    items = [item for view in seen.values() for item in view.items]
    counts = Counter((item.task, item.language) for item in items)
    supply = [
        Supply(transformation=task, language=language, ok=number, failed=0, unanswered=0, failed_share=0.0)
        for (task, language), number in counts.items()
    ]
    return SampleDrawing(
        pairs, make_controls(study, rubric, pairs, [], []), supply, [drawn_task.task for drawn_task in every], items
    )


def sample_settings(study: Study) -> dict[str, Any]:
    """What the study says of its sample: with other settings it would be another one."""
    settings = study.judging.settings()
    subject = {"subject": settings} if settings else {}
    return {"sample": study.sample.model_dump(mode="json"), **subject}


def all_settings(study: Study) -> dict[str, Any]:
    """The same, with what the study says that the sample is drawn from."""
    drawn_from = {"transformations": list(study.kinds), "seeds": list(study.seeds)}
    return {**sample_settings(study), **drawn_from, "datasets": [spec.name for spec in study.datasets]}


def read_pairs(study: Study) -> list[Pair]:
    """The study's sample. Raises DataError where it was taken away, or is not what people's tasks were drawn as."""
    refuse_replaced_table(study, PAIRS, study.command(COMMAND))
    return read_records(study.folder / PAIRS, Pair, study.command(COMMAND))


def known_pairs(study: Study) -> list[Pair]:
    """The same; nothing before it was drawn."""
    return read_pairs(study) if (study.folder / "pairs.parquet").exists() else []


def read_supply(study: Study) -> list[Supply]:
    """What the sample was drawn from, by transformation and language, with the share of failed outputs."""
    supply, path = known_supply(study), study.folder / SUPPLY
    if not path.exists():
        raise DataError(f"{path} is not there yet; run `{study.command(COMMAND)}` first")
    return supply


def known_supply(study: Study) -> list[Supply]:
    """The same; nothing where the sample is of an earlier version. Raises DataError where the file was taken away."""
    return read_kept(study, SUPPLY, Supply, study.command(COMMAND))


class PoolDrawing:
    """The transformations of one pool, drawn from in turn: a larger sample goes on where a smaller one ends."""

    def __init__(self, candidates: SampleSource, transformations: Sequence[str], before: Sequence[Pair]) -> None:
        self._study = candidates.study
        had = {pair.key: pair.transformation for pair in before if pair.drawn}
        counts, sample = Counter(had.values()), self._study.sample
        self._lacks = {name: sample.pairs - counts[name] for name in transformations}
        sources = {name: candidates.of(name) for name in transformations}
        self.texts = {
            name: {(candidate.stratum[0], candidate.stratum[1]) for candidate in of_kind}
            for name, of_kind in sources.items()
        }
        self._turns = {name: Turns(of_kind, sample.seed, had) for name, of_kind in sources.items()}
        self._seen = DuplicateIndex()
        for pair in before:
            self._seen.add(*compared(self._study, pair))

    def sample(self) -> list[Pair]:
        """So many of each transformation that there are `sample.pairs`, or as many as there are."""
        most = max(self._lacks.values())
        turns = [turns for turn in range(most) for name, turns in self._turns.items() if turn < self._lacks[name]]
        taken = [self._take(kind_turns) for kind_turns in turns]
        return [candidate.pair for candidate in taken if candidate is not None]

    def spares(self, rubric: Rubric, sample: Sequence[Pair]) -> list[Pair]:
        """Pairs that were not drawn, as many of each queue as its controls take."""
        needed = {
            queue: spares_needed(self._study, rubric, queue, len(pairs)) for queue, pairs in queues_of(sample).items()
        }
        spares: list[Pair] = []
        for turns in self._turns.values():
            while any(needed.values()):
                candidate = self._take(turns, {queue for queue, number in needed.items() if number})
                if candidate is None:
                    break
                needed[Queue.of(candidate.pair)] -= 1
                spares.append(candidate.pair)
        return spares

    def _take(self, turns: Turns, queues: set[Queue] | None = None) -> Candidate | None:
        """The next candidate (of some queues) of which no near-duplicate was taken."""
        whole = in_full(self._study)

        def wanted(candidate: Candidate) -> bool:
            in_queue = queues is None or Queue.of(candidate.pair) in queues
            return in_queue and (whole or not self._seen.near(*compared(self._study, candidate.pair)))

        taken = turns.take(wanted)
        if taken is not None:
            self._seen.add(*compared(self._study, taken.pair))
        return taken


def compared(study: Study, pair: Pair) -> tuple[list[Hashable], frozenset[str]]:
    """The groups in which a near-duplicate of a pair is sought, and the words by which.

    Of a text with something beside it the text alone is compared, with those that have the same beside them.
    """
    groups = (pair.transformation, Queue.of(pair))
    if not pair.fields:
        return list(groups), words_of(pair.original)
    apart = study.judging.beside
    fields = fields_of(pair)
    beside = tuple(field.text for field in fields if field.name in apart)
    text = "\n".join(field.text for field in fields if field.name not in apart)
    return [(group, beside) for group in groups], words_of(text)


def in_full(study: Study) -> bool:
    """Whether near-duplicates are drawn too, since people label every wording: what is near was taken out already."""
    return study.judging.takes_all


def _stays(study: Study, pairs: Sequence[Pair]) -> bool:
    """Whether the sample on disk is one that raters may have seen. Raises StudyError where `pairs` are others."""
    path = study.folder / "pairs.parquet"
    how = offered(study)
    if not path.exists() or not how:
        return False
    refuse_other_sample(study)
    controls = read_controls(study) if (study.folder / "controls.parquet").exists() else []
    if _texts((*read_pairs(study), *controls)) != _texts(pairs):
        raise StudyError(
            f"{path} is {how}, and the study now asks for other pairs (outputs, seed, number, controls, suggestions);"
            f" undo the change, add pairs to it with `{study.command(COMMAND)} --extend REASON`, or give the new study"
            " another name"
        )
    return True


def _refuse_other_settings(study: Study, last: Wave) -> None:
    """Raise StudyError where an extended sample is no longer what the study asks for."""
    refuse_other_sample(study)
    now = all_settings(study)
    changed = [name for name, was in last.settings.items() if name != "sample" and now.get(name, was) != was]
    changed += [f"sample.{name}" for name, was in last.settings["sample"].items() if now["sample"].get(name) != was]
    if changed:
        raise StudyError(
            f"{study.file}: {' and '.join(changed)} changed after the sample's wave {last.number}; undo the change, or"
            f" add pairs to it with `{study.command(COMMAND)} --extend REASON`"
        )


def _texts(pairs: Iterable[Pair]) -> set[tuple[str, ...]]:
    """What raters see of pairs, by id: an output may be another under the same key."""
    return {(pair.pair_id, pair.control, *(field.text for field in fields_of(pair))) for pair in pairs}


def read_shown(study: Study) -> list[Pair]:
    """All that raters see: the sample, and what tells about raters."""
    return [*read_pairs(study), *read_controls(study)]
