"""What a bundle tells of itself beside its numbers, held against what these are of.

That rules were fixed and results looked at, what the sample was drawn from, and what the manifest says of the study and
its data sets: nothing of it decides, but readers believe it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from annotation.ratings.exclusions import kept_hash, withdrawn_hash
from annotation.ratings.ratings import counting_ratings
from annotation.sampling.candidates import Supply
from evaluation.bundle import members
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.judged import rules_in
from plumbline.study.datasets import LocalDataset

Fault = tuple[str, str]
_HASHES = ("pairs_sha256", "ratings_sha256", "rule_id", "rubric_hash")


def other_records(bundle: Bundle) -> Iterator[Fault]:
    """Rules and looks that verdicts cannot be without, and hashes that are others in another record."""
    seen, verdicts = bundle.evidence, bundle.verdicts
    if not verdicts:
        return
    asked = rules_in(bundle)
    if not seen.rules:
        yield "rules.json", f"is empty, and the verdicts follow rule {verdicts[0].rule_id}: its proof was taken out"
    for one in seen.rules:  # the rubric is not in those of earlier versions
        if lacking := [name for name in ("acceptance", "raters") if name in asked and name not in one.rules]:
            yield "rules.json", f"has rules of {one.fixed_at:%Y-%m-%d} without {lacking[0]!r}: somebody took it out"
    if not seen.looks:
        yield "looks.json", "is empty, and verdicts were reached: each time is noted there"
    due = {name: getattr(verdicts[0], name) for name in _HASHES}
    for name in _HASHES:
        if len({getattr(one, name) for one in verdicts}) > 1:
            yield members.VERDICTS, f"has verdicts with other {name} than each other, and they are reached together"
        last = getattr(seen.looks[-1], name) if seen.looks else ""
        if last and last != due[name]:
            yield "looks.json", f"notes another {name} last than the verdicts have"
    if seen.waves and seen.waves[-1].pairs_sha256 != due["pairs_sha256"]:
        yield "waves.json", "notes another pairs_sha256 last than the verdicts have"
    if any(one.withdrawn_hash != withdrawn_hash(seen.collected.withdrawn) for one in verdicts):
        yield members.VERDICTS, "has another withdrawn_hash than the withdrawn pairs"
    if any(one.kept_hash != kept_hash(seen.decisions) for one in verdicts):
        yield members.VERDICTS, "has another kept_hash than the raters whom people keep"
    counted = len(counting_ratings(seen.collected.sample_ratings, seen.study.raters.per_pair))
    if seen.looks and seen.looks[-1].n_ratings != counted:
        yield "looks.json", f"notes {seen.looks[-1].n_ratings} ratings last, and {counted} count"


def other_makers(bundle: Bundle) -> Iterator[Fault]:
    """Pairs of no unit of the study or of another maker, and verdicts that name another maker than their pairs."""
    study, kinds = bundle.evidence.study, dict[str, str]()
    for pair in bundle.evidence.collected.sample_pairs:
        kinds.setdefault(pair.transformation, pair.generator_kind)
        made = bundle.transformations.get(pair.transformation)
        if made is None or pair.seed not in study.seeds:
            what = f"{pair.transformation!r} with seed {pair.seed}"
            yield members.PAIRS, f"has pair {pair.pair_id} of {what}, of which there are no outputs"
            return
        for name in ("generator_hash", "prompt_hash"):
            if getattr(pair, name) != getattr(made, name):
                yield members.PAIRS, f"has pair {pair.pair_id} with another {name} than {members.TRANSFORMATIONS}"
                return
    for one in bundle.verdicts:
        if one.generator_kind != kinds.get(one.transformation, one.generator_kind):
            yield members.VERDICTS, f"says that {one.transformation} was made by {one.generator_kind!r}"


def other_supply(bundle: Bundle) -> Iterator[Fault]:
    """Counts of what the sample was drawn from that the outputs rule out.

    Failed outputs may have been asked for again since, and data sets or seeds have come: so there may be more usable
    and more outputs in all than then, never fewer.
    """
    found = bundle.evidence.supply
    if not found:  # of an earlier version; verdicts with a share of failed outputs do not follow then
        return
    study, there = bundle.evidence.study, set[tuple[str, str]]()
    for name in study.transformations:
        now = _states(bundle, name)
        for one in (one for one in found if one.transformation == name):
            there.add((name, one.language))
            yield from (("sample.json", f"says of {name} in {one.language} {what}") for what in _ruled_out(one, now))
    for one in found:
        if (one.transformation, one.language) not in there:
            yield "sample.json", f"counts outputs of {one.transformation!r}, which the study does not have"
    for pair in bundle.evidence.collected.sample_pairs:
        if (pair.transformation, pair.language) not in there:
            yield "sample.json", f"says nothing of {pair.transformation} in {pair.language}, of which pairs were drawn"
            return


def _states(bundle: Bundle, name: str) -> Counter[tuple[str, str]]:
    """How many outputs of a transformation there are, by language of the original and status, over all seeds."""
    found = Counter[tuple[str, str]]()
    for seed in bundle.evidence.study.seeds:
        table = bundle.outputs(name, seed, ("source_language", "status"))
        found.update(zip(table["source_language"].to_pylist(), table["status"].to_pylist(), strict=True))
    return found


def _ruled_out(one: Supply, now: Counter[tuple[str, str]]) -> Iterator[str]:
    ok, failed = now[one.language, "ok"], now[one.language, "failed"]
    usable, then = one.ok + one.kept_out, one.ok + one.kept_out + one.failed + one.unanswered
    counts = {"ok": one.ok, "kept_out": one.kept_out, "failed": one.failed, "unanswered": one.unanswered}
    if less := [name for name, count in counts.items() if count < 0]:
        yield f"{less[0]} {counts[less[0]]}, which no count is"
    if usable > ok or then > ok + failed:
        yield f"{usable} usable of {then} outputs, and there are {ok} of {ok + failed}"
    if failed > one.failed + one.unanswered + max(0, ok + failed - then):
        yield f"{one.failed} failed, and there are {failed}"
    decided = usable + one.failed
    if decided and abs(one.failed_share - one.failed / decided) > 1e-9:
        yield f"failed_share {one.failed_share:g}, and its counts say {one.failed / decided:g}"
    if any(not 0 <= number <= usable for number in one.flagged.values()):
        yield f"more outputs with an error type than the {usable} usable ones"


def other_manifest(bundle: Bundle) -> Iterator[Fault]:
    """What the manifest says otherwise than the study and the ratings."""
    said, settings = bundle.manifest, bundle.settings
    due = {"study": settings.get("name"), "description": settings.get("description", "")}
    due["generator"] = settings.get("generator", {})
    for name, value in due.items():
        if getattr(said, name) != value:
            yield "manifest.json", f"says another {name} than {members.STUDY}"
    ratings = bundle.evidence.collected.plain_ratings
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    if len(times) and said.rated != (first_last := (f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}")):
        yield "manifest.json", f"says rated {' to '.join(said.rated)}, and the ratings are of {' to '.join(first_last)}"
    if not said.comments and (ratings["comment"] != "").any():
        yield "manifest.json", "says that raters' free words are not in it, and they are"
    for source, spec in zip(said.datasets, bundle.study().datasets, strict=False):  # others are named by `_prompts`
        kind = "local" if isinstance(spec, LocalDataset) else "mteb"
        if source.kind != kind:
            yield "manifest.json", f"says that {source.name} is {source.kind}, and {members.STUDY} that it is {kind}"
        if spec.task not in (None, source.task):
            yield "manifest.json", f"says task {source.task} of {source.name}, and {members.STUDY} {spec.task}"
        pinned = "" if isinstance(spec, LocalDataset) or not spec.revision else f"{spec.path}@{spec.revision}"
        if pinned and source.revision != pinned:
            yield "manifest.json", f"says revision {source.revision} of {source.name}, and {members.STUDY} {pinned}"


def other_texts(bundle: Bundle) -> Iterator[Fault]:
    """Texts and pairs whose data set, task or languages are others than the manifest says."""
    tasks = {source.name: source.task for source in bundle.manifest.datasets}
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), members.texts_of(source.name)
        for name, due in (("dataset", source.name), ("task_type", source.task)):
            if other := _other(table, name, due):
                yield member, f"has texts with {name} {other!r}, and the manifest says {due!r}"
        if tuple(sorted(pc.unique(table["language"]).to_pylist())) != tuple(sorted(source.languages)):
            yield member, f"has texts in other languages than {', '.join(source.languages)}, which the manifest says"
    for pair in bundle.evidence.collected.sample_pairs:
        if tasks.get(pair.dataset) != pair.task_type:
            yield members.PAIRS, f"says that pair {pair.pair_id} is of {pair.dataset!r} ({pair.task_type})"
            return


def _other(table: pa.Table, name: str, due: str) -> str:
    """The first value of a column that is not the one due; empty where there is none."""
    return next((str(value) for value in pc.unique(table[name]).to_pylist() if value != due), "")
