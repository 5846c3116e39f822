"""The sample: a seeded, stratified random sample of each transformation's outputs without near-duplicates.

An output that is added later moves few of the others: those of its own stratum at most by one place, others only where
a near-duplicate of theirs came or went.
"""

from __future__ import annotations

import operator
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotation.campaign.offering import alone, is_complete, offered, refuse_other_sample
from annotation.campaign.records import CONTROLS, PAIRS, SUPPLY, WAVES, CampaignRecords
from annotation.campaign.rubric import Rubric, load_rubric
from annotation.campaign.subjects import read_items, shown_items
from annotation.human.order import drop_answers
from annotation.human.records import ITEMS, TASKS, HumanItem, HumanTask
from annotation.human.tasks import prepared, refuse_other_tasks
from annotation.records import Supply, Wave
from annotation.sampling.candidates import (
    Candidate,
    Candidates,
    DuplicateIndex,
    Groups,
    SampleSource,
    Turns,
    WholeSource,
    words_of,
)
from annotation.sampling.controls import ControlDesign
from annotation.sampling.queues import Queue, block_numbers, queues_of
from generation.jobs import COMMAND as GENERATE
from generation.jobs import Plan
from plumbline.errors import PlumblineError, StudyError
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from plumbline.records import Pair, TransformedText
from plumbline.store import read_batches, write_table
from plumbline.study import Study, file_hash
from plumbline.study.campaign import SampleSpec
from plumbline.study.reach import refuse_unreachable
from plumbline.study.subject import Subject
from plumbline.words import count, trim

COMMAND = "sample"


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
        records = CampaignRecords(study)
        if records.waves:
            _refuse_other_settings(records)
            return records.pairs
        drawn = draw(study)
        if _stays(records, [*drawn.pairs, *drawn.controls]):
            refuse_other_tasks(study, drawn.tasks)
            return records.pairs
        Manifest.of(study).write_models(SUPPLY.name, drawn.supply)
        if drawn.tasks:
            drop_answers(study, drawn.tasks, drawn.items)
            Manifest.of(study).write_table(ITEMS, drawn.items, HumanItem)
            Manifest.of(study).write_models(TASKS, drawn.tasks)
        for file, rows in ((CONTROLS, drawn.controls), (PAIRS, drawn.pairs)):
            Manifest.of(study).write_table(file.name, rows, Pair)
        return list(drawn.pairs)


@dataclass(frozen=True)
class SampleDrawing:
    """A drawn sample, and its supply."""

    pairs: Sequence[Pair]
    controls: Sequence[Pair]
    supply: Sequence[Supply]
    tasks: Sequence[HumanTask] = ()  #: that people do
    items: Sequence[HumanItem] = ()  #: of these tasks


def draw(study: Study, existing: Sequence[Pair] = ()) -> SampleDrawing:
    """Draw a study's sample; with `existing` pairs and controls, draw the missing ones."""
    if study.judging.does_tasks:
        return _of_tasks(study)
    rubric = load_rubric(study)  # a rule that the scale cannot hold is refused before anybody rates
    for kind in study.kinds.values():
        rubric.pool(kind.pool)
    candidates: WholeSource = Candidates(Plan(study)) if study.judging.transforms else Groups(study, rubric)
    drawn, texts = draw_from(candidates, rubric, existing)
    if isinstance(candidates, Candidates):
        candidates.refuse_incomplete()
    refuse_unreachable(study, texts, f"{study.file}: ")
    return drawn


def draw_from(
    candidates: WholeSource, rubric: Rubric, existing: Sequence[Pair] = ()
) -> tuple[SampleDrawing, dict[str, set[tuple[str, str]]]]:
    """Draw a sample from these candidates; return it with the languages and tasks of each unit's texts."""
    study, pairs, spares = candidates.study, list[Pair](), list[Pair]()
    texts: dict[str, set[tuple[str, str]]] = {}
    for members in _drawn_together(study):
        of_members = [pair for pair in existing if pair.transformation in members]
        are_systems = study.judging.transforms and study.kinds[members[0]].queue
        drawing = (SystemDrawing if are_systems else PoolDrawing)(candidates, members, of_members)
        texts |= drawing.texts
        drawn = drawing.sample()
        pairs += drawn
        spares += drawing.spares(rubric, drawn)
    order = list(study.kinds)
    pairs.sort(key=lambda pair: order.index(pair.transformation))
    blocks = block_numbers(study, pairs) if study.raters.blocks else None
    controls = ControlDesign.of(study, rubric).make(pairs, spares, candidates.known(existing), blocks, existing)
    return SampleDrawing(pairs, controls, candidates.supply), texts


def _drawn_together(study: Study) -> list[list[str]]:
    """Return the names of the units that are drawn together: of a pool, or of systems that share a queue."""
    groups: dict[str, list[str]] = {}
    for name, kind in study.kinds.items():
        together = kind.queue if study.judging.transforms and kind.queue else kind.pool
        groups.setdefault(together, []).append(name)
    return list(groups.values())


def _of_tasks(study: Study) -> SampleDrawing:
    """The items of tasks that people do, as the tasks draw them; a candidate with a record of its own never repeats."""
    every = list(prepared(study))
    tasks = [drawn_task.task for drawn_task in every]
    rubric = load_rubric(study, tasks=tasks)
    rows = [row for drawn_task in every for row in shown_items(drawn_task, study.kinds[drawn_task.task.task])]
    items, pairs = [item for item, _ in rows], [pair for _, records in rows for pair in records]
    repeatable = [pair for _, records in rows if len(records) == 1 for pair in records]
    counts = Counter((item.task, item.language) for item in items)
    supply = [
        Supply(transformation=task, language=language, ok=number, failed=0, unanswered=0)
        for (task, language), number in counts.items()
    ]
    return SampleDrawing(pairs, ControlDesign.of(study, rubric).make(repeatable, []), supply, tasks, items)


def sample_settings(sample: SampleSpec, judging: Subject, blocks: Sequence[int] = ()) -> dict[str, Any]:
    """Return the settings that identify a study's sample."""
    settings = judging.settings()
    subject = {"subject": settings} if settings else {}
    by_blocks = {"blocks": list(blocks)} if blocks else {}
    return {"sample": sample.model_dump(mode="json"), **by_blocks, **subject}


def all_settings(study: Study) -> dict[str, Any]:
    """Return the sample's settings and those of the outputs that it is drawn from."""
    drawn_from = {"transformations": list(study.kinds), "seeds": list(study.seeds)}
    return {
        **sample_settings(study.sample, study.judging, study.raters.blocks),
        **drawn_from,
        "datasets": [spec.name for spec in study.datasets],
    }


class PoolDrawing:
    """The transformations of a pool, drawn from in turn; a larger sample continues a smaller one."""

    def __init__(self, candidates: SampleSource, transformations: Sequence[str], existing: Sequence[Pair]) -> None:
        self._study = candidates.study
        had = {pair.key: pair.transformation for pair in existing if pair.drawn}
        counts, sample = Counter(had.values()), self._study.sample
        self._lacks = {name: sample.pairs - counts[name] for name in transformations}
        self._sources = {name: candidates.of(name) for name in transformations}
        self.texts = {
            name: {(candidate.stratum[0], candidate.stratum[1]) for candidate in of_kind}
            for name, of_kind in self._sources.items()
        }
        self._before = Counter(Queue.of(pair) for pair in existing if pair.drawn)
        #: Texts of the sample, which never comes near them again, and of controls, which come last.
        self._seen, self._checked = DuplicateIndex(), DuplicateIndex()
        for pair in existing:
            (self._seen if pair.drawn else self._checked).add(*compared(self._study.judging.beside, pair))
        self._turns = {name: self._turns_of(of_kind, had) for name, of_kind in self._sources.items()}

    def _turns_of(self, candidates: Sequence[Candidate], had: Collection[str]) -> Turns:
        late = {candidate.key for candidate in candidates if self._near(self._checked, candidate)}
        return Turns(candidates, self._study.sample.seed, had, late=late)

    def _near(self, index: DuplicateIndex, candidate: Candidate) -> bool:
        return bool(index) and index.near(*compared(self._study.judging.beside, candidate.pair))

    def sample(self) -> list[Pair]:
        """Draw pairs until each transformation has `sample.pairs`, or its outputs are used up."""
        most = max(self._lacks.values())
        turns = [turns for turn in range(most) for name, turns in self._turns.items() if turn < self._lacks[name]]
        candidates = [self._take(kind_turns) for kind_turns in turns]
        return [candidate.pair for candidate in candidates if candidate is not None]

    def spares(self, rubric: Rubric, sample: Sequence[Pair]) -> list[Pair]:
        """Pairs that were not drawn, as many of each queue as its controls take."""
        design = ControlDesign.of(self._study, rubric)
        new = queues_of(sample)
        needed = {queue: design.spares(queue, len(pairs), self._before[queue]) for queue, pairs in new.items()}
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
        """The next candidate of which no near-duplicate was taken; for controls of some queues, nor is a control."""
        takes_all = self._study.judging.takes_all

        def wanted(candidate: Candidate) -> bool:
            if queues is not None and (Queue.of(candidate.pair) not in queues or self._near(self._checked, candidate)):
                return False
            return takes_all or not self._near(self._seen, candidate)

        chosen = turns.take(wanted)
        if chosen is not None:
            self._seen.add(*compared(self._study.judging.beside, chosen.pair))
        return chosen


class SystemDrawing(PoolDrawing):
    """Systems that share a queue: each original is drawn with the outputs of all, so that the same are compared."""

    def __init__(self, candidates: SampleSource, transformations: Sequence[str], existing: Sequence[Pair]) -> None:
        super().__init__(candidates, transformations, existing)
        every = defaultdict[tuple[str, str, int], dict[str, Candidate]](dict)
        for name, of_system in self._sources.items():
            for candidate in of_system:
                every[_original(candidate.pair)][name] = candidate
        self._outputs = {key: of for key, of in every.items() if len(of) == len(self._sources)}
        if not self._outputs:
            names = ", ".join(transformations)
            raise StudyError(f"{self._study.file}: no text has usable outputs of all of {names}, which share a queue")
        self._drawn = {pair.key for pair in existing if pair.drawn}
        drawn = {_original(pair) for pair in existing if pair.drawn}
        self._begun = [of for key, of in self._outputs.items() if key in drawn]
        joining = {name for of in self._begun for name, candidate in of.items() if candidate.key not in self._drawn}
        if joining and self._study.sample.together:
            raise StudyError(
                f"{self._study.file}: raters see the outputs of an original together (sample.together), and would see"
                f" those of {', '.join(sorted(joining))} alone; make a new study of all systems"
            )
        self._first = transformations[0]
        firsts = [of[self._first] for of in self._outputs.values()]
        had = {of[self._first].key for of in self._begun}
        self._turns = {self._first: self._turns_of(firsts, had)}
        self._missing = self._study.sample.pairs - len(drawn)

    def sample(self) -> list[Pair]:
        """Draw the outputs of further systems for the originals drawn before, then further originals."""
        outputs = list(self._begun)
        while len(outputs) - len(self._begun) < self._missing and (first := self._take(self._turns[self._first])):
            outputs.append(self._outputs[_original(first.pair)])
        every = (candidate for of_original in outputs for candidate in of_original.values())
        return [candidate.pair for candidate in every if candidate.key not in self._drawn]


def _original(pair: Pair) -> tuple[str, str, int]:
    return pair.original, pair.language, pair.seed


def compared(context_fields: Collection[str], pair: Pair) -> tuple[list[Hashable], frozenset[str]]:
    """The groups in which a near-duplicate of a pair is sought, and the words by which.

    Of a text with something beside it the text alone is compared, with those that have the same beside them.
    """
    groups = (pair.transformation, Queue.of(pair))
    if not pair.fields:
        return list(groups), words_of(pair.original)
    fields = fields_of(pair)
    context = tuple(field.text for field in fields if field.name in context_fields)
    text = "\n".join(field.text for field in fields if field.name not in context_fields)
    return [(group, context) for group in groups], words_of(text)


def _stays(records: CampaignRecords, pairs: Sequence[Pair]) -> bool:
    """Tell whether raters may have seen the sample on disk, which then stays. Raises StudyError if `pairs` differ."""
    how = offered(records)
    if not records.has(PAIRS) or not how:
        return False
    refuse_other_sample(records)
    if _texts((*records.pairs, *records.known_controls)) != _texts(pairs):
        raise StudyError(
            f"{records.path(PAIRS)} was {how}, but the study now asks for other pairs (outputs, seed, number,"
            f" controls); undo the change, add pairs to it with `{WAVES.command(records.study)}`, or give the new"
            " study another name"
        )
    return True


def _refuse_other_settings(records: CampaignRecords) -> None:
    """Raise StudyError if the study's settings differ from those of an extended sample."""
    refuse_other_sample(records)
    last, settings = records.waves[-1], all_settings(records.study)
    changed = [name for name, was in last.settings.items() if name != "sample" and settings.get(name, was) != was]
    changed += [
        f"sample.{name}" for name, was in last.settings["sample"].items() if settings["sample"].get(name) != was
    ]
    if changed:
        raise StudyError(
            f"{records.study.file}: {' and '.join(changed)} changed after the sample's wave {last.number}; undo the"
            f" change, or add pairs with `{WAVES.command(records.study)}`"
        )


def _texts(pairs: Iterable[Pair]) -> set[tuple[str, ...]]:
    """Return the texts that raters see of pairs, with ids: an output may change under the same key."""
    return {(pair.pair_id, pair.control, *(field.text for field in fields_of(pair))) for pair in pairs}


_FIXED = ("seed", "without")  # of `sample`: the order of the pairs and what verdicts cover depend on them


def extend_sample(study: Study, reason: str) -> Wave:
    """Add to an offered sample the pairs that the study asks for now and it lacks; return the wave.

    For each transformation it adds the pairs that are missing to `sample.pairs`, of all outputs, data sets, languages
    and seeds that the study has; strata that have given less so far go first. Where a run was cut off, its wave is
    drawn again. Raises StudyError for a sample that nobody was offered (it is drawn anew by `draw_sample`), for one
    whose outputs, generator, prompts, seed or `without` changed, and where there is nothing to add.
    """
    with alone(study):
        records, reason = CampaignRecords(study), trim(reason)
        if not reason:
            raise StudyError("--extend: give the reason why the sample grows; it is stored with the sample")
        study.refuse_unfit("sample --extend")
        if study.raters.blocks:
            raise StudyError(
                f"{study.file}: raters.blocks fix beforehand how many pairs a verdict can rest on, so none can be"
                " added; make a new study of further pairs"
            )
        path, pairs, waves = records.path(PAIRS), records.pairs, records.waves
        if not offered(records):
            raise StudyError(
                f"the pairs of {path} were never offered to raters, so there is nothing to extend; run"
                f" `{study.command(COMMAND)}` to draw a new sample of any size"
            )
        refuse_other_sample(records, cut_off=True)
        if waves and not is_complete(records, waves[-1]):
            waves = waves[:-1]
        number = len(waves) + 2
        sample = [pair for pair in pairs if pair.wave < number]
        controls = [pair for pair in records.known_controls if pair.wave < number]
        if mismatched := mismatch(records, sample):
            raise StudyError(*mismatched)
        _refuse_other_draw(records, waves)
        drawn = draw(study, [*sample, *controls])
        drawn = replace(drawn, supply=_with_earlier(records, drawn.supply))
        if not drawn.pairs:
            raise StudyError(
                f"{study.file}: {path} has all pairs that the study asks for, or no outputs are left to draw; raise"
                " sample.pairs, or add transformations, data sets or seeds and generate them"
            )
        return _write(records, reason, number, waves, [sample, controls], drawn)


def _refuse_other_draw(records: CampaignRecords, waves: Sequence[Wave]) -> None:
    """Raise StudyError where the study would draw from other outputs, or in another order, than before."""
    study = records.study
    noted: dict[str, Any] = records.manifest.get("stages", {}).get("sample", {}).get("settings", {})
    was, settings = (waves[-1].settings if waves else noted).get("sample", {}), all_settings(study)["sample"]
    changed = [f"sample.{name} (was {was[name]})" for name in _FIXED if was.get(name, settings[name]) != settings[name]]
    if changed:
        raise StudyError(
            f"{study.file}: a further wave must be drawn like the first, but {' and '.join(changed)} changed; undo the"
            " change, or give the new study another name"
        )


def _with_earlier(records: CampaignRecords, supplies: Sequence[Supply]) -> list[Supply]:
    """Return the supplies with the outputs that earlier waves were drawn from, also of what the study has no more.

    Raises StudyError where these outputs changed: the ratings are not about the new ones.
    """
    earlier = {(supply.transformation, supply.language): supply for supply in records.supply}
    together = []
    for supply in supplies:
        recorded = earlier.pop((supply.transformation, supply.language), supply)
        outputs = dict(supply.outputs)
        for dataset, was in recorded.outputs.items():
            current = outputs.get(dataset, {})
            if changed := [seed for seed in was if current.get(seed, was[seed]) != was[seed]]:
                raise StudyError(
                    f"{records.study.file}: outputs of {supply.transformation} ({dataset}, {supply.language}, seed"
                    f" {changed[0]}) changed after the sample was drawn from them; restore them, or give the new study"
                    " another name"
                )
            outputs[dataset] = was | current
        together.append(supply.model_copy(update={"outputs": outputs}))
    return [*together, *earlier.values()]


def _write(
    records: CampaignRecords,
    reason: str,
    number: int,
    waves: Sequence[Wave],
    existing: Sequence[Sequence[Pair]],
    drawn: SampleDrawing,
) -> Wave:
    """Record the wave, then write its files; equal rows give equal bytes on any machine."""
    new = {"pairs": drawn.pairs, "controls": drawn.controls}
    rows = {
        name: [*rows_before, *(pair.model_copy(update={"wave": number}) for pair in added)]
        for rows_before, (name, added) in zip(existing, new.items(), strict=True)
    }
    hashes = dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        for name, new_rows in rows.items():
            copy = Path(folder) / f"{name}.parquet"
            write_table(copy, new_rows, Pair)
            hashes[f"{name}_sha256"] = file_hash(copy)
    study, files = records.study, {"pairs": PAIRS, "controls": CONTROLS}
    was = {f"{name}_before": records.sha256(file) for name, file in files.items()}
    cut_off = next((wave for wave in records.waves if wave.number == number), None)
    if cut_off is not None:  # one of the files may be the new one already
        was = {name: getattr(cut_off, name) for name in was}
    wave = Wave(
        number=number,
        at=datetime.now(UTC),
        reason=reason,
        pairs=len(drawn.pairs),
        settings=all_settings(study),
        **was,
        **hashes,
    )
    Manifest.of(study).write_models(WAVES.name, [*waves, wave])
    Manifest.of(study).write_models(SUPPLY.name, drawn.supply)
    for name in ("controls", "pairs"):
        Manifest.of(study).write_table(files[name].name, rows[name], Pair)
    return wave


_MAKER = ["generator_hash", "prompt_hash"]
MAKERS = ["transformation", "generator_kind", *_MAKER]  #: pairs that are equal in these have the same origin


def mismatch(records: CampaignRecords, pairs: Collection[Pair]) -> tuple[str, ...]:
    """Return why pairs are no longer the study's: the first reason, or the faults of a file; empty if they are.

    Its settings, and its outputs or texts as far as they are on this machine, are compared with the pairs' own facts.
    """
    if not pairs:
        return ()
    transforms = records.study.judging.transforms
    reasons = _other_outputs(records.study, pairs) if transforms else _other_items(records, pairs)
    try:
        reason = next(reasons, "")
    except PlumblineError as error:
        return error.args
    return (f"{reason}, or give the new study another name",) if reason else ()


def _other_outputs(study: Study, pairs: Collection[Pair]) -> Iterator[str]:
    """Yield why pairs are no longer those of the study's generator, prompts and outputs."""
    plan = Plan(study)
    origins = set(map(operator.attrgetter(*MAKERS), pairs))
    for name, kind, *hashes in sorted(origins):
        source = "another generator or other prompts" if hashes[1] else "another function or file of outputs"
        maker = plan.makers.get(name)
        if maker is None or hashes != [maker.hash, plan.prompt_hashes[name]]:
            yield (
                f"{study.file}: the sample's pairs of {name} were made by {source} than the study has now; undo the"
                " change"
            )
        elif kind != maker.kind:
            yield (
                f"{study.file}: the sample's pairs of {name} come from a generator of kind {kind}, but the study's is"
                f" now of kind {maker.kind}; undo the change"
            )
        on_disk = set[tuple[str, str]]()
        for file in (study.transformation_file(name, seed) for seed in study.seeds):
            for table in read_batches(file, TransformedText, study.command(GENERATE), _MAKER) if file.exists() else ():
                on_disk.update(table.select(_MAKER).to_pandas().drop_duplicates().itertuples(index=False, name=None))
        if on_disk and tuple(hashes) not in on_disk:
            yield (
                f"{study.outputs / name}: these outputs come from {source} than the sample's pairs; restore the outputs"
            )


def _other_items(records: CampaignRecords, pairs: Collection[Pair]) -> Iterator[str]:
    """Yield why pairs are no longer the study's items."""
    study = records.study
    if names := sorted({pair.transformation for pair in pairs} - study.kinds.keys()):
        yield (
            f"{study.file}: the sample has items of {names[0]!r}, which the study's subject does not have now; undo the"
            " change"
        )
    file = study.judging.file_of(study)
    if file is not None and file.is_file():
        keys = {item.key for item in read_items(study, records.rubric)[0]}
        if removed := [pair for pair in pairs if pair.key not in keys]:
            yield (
                f"{file}: no longer has {count(len(removed), 'text')} of the sample, such as"
                f" {fields_of(removed[0])[0].text[:60]!r} ({removed[0].transformation}); restore the file"
            )
