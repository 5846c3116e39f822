"""Which pairs people rate: a seeded random sample of each transformation's outputs, spread over data sets.

A hash of seed and identity orders the candidates, so that the sample depends on nothing else, and an
output that is added later moves none of the others.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from annotation.agreement import POOLS
from annotation.rubric import load_rubric
from generation.exceptions import DataError, StudyError
from generation.jobs import Plan
from generation.manifest import read_manifest
from generation.records import Pair, Text, TransformedText, identity
from generation.run import COMMAND, read_transformed
from generation.store import read_records, write_table
from generation.study import Study
from generation.transformations import TRANSFORMATIONS


def draw_sample(study: Study) -> list[Pair]:
    """Draw the study's pairs and write `pairs.parquet`.

    For each transformation `sample.pairs` outputs that did not fail and that this study's generator and prompts
    made, over all seeds, in equal shares of the data sets as far as they reach (a text of several data sets
    counts for the first); fewer where there are fewer. Drawn again from the same outputs the sample is the
    same. Raises StudyError where another sample is published already.
    """
    load_rubric(study)  # a rule that the scale cannot hold is refused before anybody rates
    plan = Plan(study)
    texts = read_records(study.folder / "texts.parquet", Text, COMMAND)
    origin: dict[str, Text] = {}
    for text in texts:
        origin.setdefault(text.text_id, text)
    tasks = {spec.name: spec.task for spec in study.datasets}
    pairs = []
    for name in study.transformations:
        wanted = {job.key for seed in study.seeds for job in plan.jobs(texts, name, seed)}
        rows = [row for seed in study.seeds for row in read_transformed(study, name, seed)]
        usable = [row for row in rows if row.status == "ok" and row.key in wanted]
        if not usable:
            raise DataError(f"no usable outputs of {name} in {study.folder}; run `{COMMAND}` first")
        chosen = _choose(usable, {row.key: origin[row.text_id].dataset for row in usable}, study)
        pairs += [_pair(row, origin[row.text_id], tasks[origin[row.text_id].dataset]) for row in chosen]
    _keep_what_was_published(study, pairs)
    write_table(study.folder / "pairs.parquet", pairs, Pair)
    return pairs


def read_pairs(study: Study) -> list[Pair]:
    """The study's sample."""
    return read_records(study.folder / "pairs.parquet", Pair, "python -m annotation sample --study ...")


def _choose(rows: Sequence[TransformedText], datasets: Mapping[str, str], study: Study) -> list[TransformedText]:
    """`sample.pairs` rows, taken in turn from the data sets, within each in the seed's random order."""
    strata: dict[str, list[TransformedText]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: _rank(study.sample.seed, row.key)):
        strata[datasets[row.key]].append(row)
    order = [spec.name for spec in study.datasets if spec.name in strata]
    chosen: list[TransformedText] = []
    while len(chosen) < study.sample.pairs and any(strata.values()):
        for name in order:
            if strata[name] and len(chosen) < study.sample.pairs:
                chosen.append(strata[name].pop(0))
    return chosen


def _rank(seed: int, key: str) -> str:
    return hashlib.sha256(f"sample-v1 {seed} {key}".encode()).hexdigest()


def _pair(row: TransformedText, text: Text, task: str) -> Pair:
    kind = TRANSFORMATIONS[row.transformation]
    return Pair(
        pair_id=identity("pair-v1", row.key, row.output),
        key=row.key,
        transformation=row.transformation,
        axis=kind.axis,
        pool=POOLS[row.transformation],
        dataset=text.dataset,
        task_type=task,
        language=row.source_language,
        output_language=kind.output_language(row.source_language, row.language),
        seed=row.seed,
        original=row.text,
        transformed=row.output,
        model=row.model,
        generator_hash=row.generator_hash,
        prompt_hash=row.prompt_hash,
    )


def _keep_what_was_published(study: Study, pairs: Sequence[Pair]) -> None:
    """Refuse to replace a sample that is before raters by another: their answers would belong to nothing."""
    path = study.folder / "pairs.parquet"
    published = "publish" in read_manifest(study).get("stages", {}) or (study.folder / "ratings.parquet").exists()
    if not path.exists() or not published:
        return
    if {pair.pair_id for pair in read_pairs(study)} != {pair.pair_id for pair in pairs}:
        raise StudyError(
            f"{path} is published, and the study now asks for other pairs (other outputs, seed or number);"
            " undo the change, or give the new study another name"
        )
