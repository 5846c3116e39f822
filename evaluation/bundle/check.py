"""Whether a bundle is what was exported, and says what follows from the ratings in it.

Hashes tell that a member was changed. Whoever changes one and writes the manifest anew is found by computing again:
agreement, verdicts and pairs' means from the ratings, by the functions that reached them; marks on ratings from the
decisions; texts' hashes from the texts. Both are done, so that what is wrong is named as closely as it can be. Who
changes ratings, and all that follows from them, makes another bundle, with another identity: that is what a signature
is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from annotation.names import SIMULATED
from annotation.ratings.exclusions import kept_hash, withdrawn_hash
from annotation.ratings.ratings import counting_ratings, marked
from annotation.sampling.candidates import Supply
from annotation.verdicts.preregistration import other_rules
from annotation.verdicts.verdicts import rule_id
from annotation.verdicts.verification import differences
from evaluation.bundle import tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.judged import other_judgements, rules_in
from evaluation.bundle.portable import COPY
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.records import text_id
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
            yield tables.VERDICTS, f"has verdicts with other {name} than each other, and they are reached together"
        last = getattr(seen.looks[-1], name) if seen.looks else ""
        if last and last != due[name]:
            yield "looks.json", f"notes another {name} last than the verdicts have"
    if seen.waves and seen.waves[-1].pairs_sha256 != due["pairs_sha256"]:
        yield "waves.json", "notes another pairs_sha256 last than the verdicts have"
    if any(one.withdrawn_hash != withdrawn_hash(seen.collected.withdrawn) for one in verdicts):
        yield tables.VERDICTS, "has another withdrawn_hash than the withdrawn pairs"
    if any(one.kept_hash != kept_hash(seen.decisions) for one in verdicts):
        yield tables.VERDICTS, "has another kept_hash than the raters whom people keep"
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
            yield tables.PAIRS, f"has pair {pair.pair_id} of {what}, of which there are no outputs"
            return
        for name in ("generator_hash", "prompt_hash"):
            if getattr(pair, name) != getattr(made, name):
                yield tables.PAIRS, f"has pair {pair.pair_id} with another {name} than {tables.TRANSFORMATIONS}"
                return
    for one in bundle.verdicts:
        if one.generator_kind != kinds.get(one.transformation, one.generator_kind):
            yield tables.VERDICTS, f"says that {one.transformation} was made by {one.generator_kind!r}"


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
            yield "manifest.json", f"says another {name} than {tables.STUDY}"
    ratings = bundle.evidence.collected.plain_ratings
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    if len(times) and said.rated != (first_last := (f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}")):
        yield "manifest.json", f"says rated {' to '.join(said.rated)}, and the ratings are of {' to '.join(first_last)}"
    if not said.comments and (ratings["comment"] != "").any():
        yield "manifest.json", "says that raters' free words are not in it, and they are"
    for source, spec in zip(said.datasets, bundle.study().datasets, strict=False):  # others are named by `_prompts`
        kind = "local" if isinstance(spec, LocalDataset) else "mteb"
        if source.kind != kind:
            yield "manifest.json", f"says that {source.name} is {source.kind}, and {tables.STUDY} that it is {kind}"
        if spec.task not in (None, source.task):
            yield "manifest.json", f"says task {source.task} of {source.name}, and {tables.STUDY} {spec.task}"
        pinned = "" if isinstance(spec, LocalDataset) or not spec.revision else f"{spec.path}@{spec.revision}"
        if pinned and source.revision != pinned:
            yield "manifest.json", f"says revision {source.revision} of {source.name}, and {tables.STUDY} {pinned}"


def other_texts(bundle: Bundle) -> Iterator[Fault]:
    """Texts and pairs whose data set, task or languages are others than the manifest says."""
    tasks = {source.name: source.task for source in bundle.manifest.datasets}
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), tables.texts_of(source.name)
        for name, due in (("dataset", source.name), ("task_type", source.task)):
            if other := _other(table, name, due):
                yield member, f"has texts with {name} {other!r}, and the manifest says {due!r}"
        if tuple(sorted(pc.unique(table["language"]).to_pylist())) != tuple(sorted(source.languages)):
            yield member, f"has texts in other languages than {', '.join(source.languages)}, which the manifest says"
    for pair in bundle.evidence.collected.sample_pairs:
        if tasks.get(pair.dataset) != pair.task_type:
            yield tables.PAIRS, f"says that pair {pair.pair_id} is of {pair.dataset!r} ({pair.task_type})"
            return


def _other(table: pa.Table, name: str, due: str) -> str:
    """The first value of a column that is not the one due; empty where there is none."""
    return next((str(value) for value in pc.unique(table[name]).to_pylist() if value != due), "")


_MARKS = ("excluded", "withdrawn", "surplus")


def open_checked(path: Path, step: Callable[[], object] = lambda: None) -> Bundle:
    """A bundle in which nothing is wrong. Raises DataError with the first thing that is."""
    bundle = Bundle.open(path)
    for member, what in faults(bundle, step):
        raise DataError(f"{path}: {member} {what}; get it again from where it came from")
    return bundle


def faults(bundle: Bundle, step: Callable[[], object] = lambda: None) -> Iterator[Fault]:
    """All that is wrong, the members' hashes first; `step` is called for each of `steps`."""
    found = list(_other_members(bundle, step))
    yield from found
    missing = {name for name, what in found if what == _MISSING}
    if missing:
        return  # nothing can be computed of what is not there
    unread = set[str]()
    for look in _LOOKS:
        try:
            yield from look(bundle)
        except DataError as error:
            if not found and str(error) not in unread:  # else it was named already
                yield "a member", f"cannot be read: {error}"
            unread.add(str(error))
        step()


def steps(bundle: Bundle) -> int:
    """How many steps `faults` takes."""
    return len(bundle.manifest.members) + len(_LOOKS)


_MISSING = "is missing"


def _other_members(bundle: Bundle, step: Callable[[], object]) -> Iterator[Fault]:
    """Members that are not those of the manifest."""
    there, said = set(bundle.archive.names), bundle.manifest.members
    for name in sorted(there - set(said)):
        yield name, "is not in the manifest: somebody added it"
    for name, member in sorted(said.items()):
        step()
        if name not in there:
            yield name, _MISSING
        elif bundle.archive.size(name) != member.size or bundle.archive.sha256(name) != member.sha256:
            yield name, "is not what was exported (its hash is another): somebody edited it"


def _prompts(bundle: Bundle) -> Iterator[Fault]:
    """Prompts whose hash is another, and transformations that the study does not have."""
    study = bundle.study()
    if list(bundle.transformations) != list(study.transformations):
        yield tables.TRANSFORMATIONS, "holds other transformations than the study"
    for name, one in bundle.transformations.items():
        due = identity("prompts-v1", [prompt.text for prompt in one.prompts]) if one.prompts else ""
        if due != one.prompt_hash:
            yield tables.TRANSFORMATIONS, f"has other prompts of {name} than its hash says"
    if [one.name for one in study.datasets] != [one.name for one in bundle.manifest.datasets]:
        yield tables.STUDY, "has other data sets than the manifest"


def _rules(bundle: Bundle) -> Iterator[Fault]:
    """Rules that are not those that were fixed, and verdicts by other ones."""
    seen = bundle.evidence
    ratings = seen.collected.ratings
    for what in other_rules(rules_in(bundle), seen.rules, ratings):
        yield "rules.json", f"fixed other rules than the study has: {what}"
    rule, rubric = rule_id(seen.study), seen.rubric.identity()
    for one in bundle.verdicts:
        if one.rule_id != rule or one.rubric_hash not in ("", rubric):
            yield tables.VERDICTS, f"has a verdict on {one.transformation} by other rules or questions"
    counts = dict(Counter(one.decision for one in bundle.verdicts))
    if seen.looks and dict(seen.looks[-1].decisions) != counts:
        yield "looks.json", "notes other decisions last than the verdicts have"
    if bool(ratings["simulated"].any()) != bundle.manifest.simulated:
        yield "manifest.json", "says otherwise than the ratings whether they are simulated"
    programs = ratings["rater_id"].str.startswith(SIMULATED)
    if (programs & ~ratings["simulated"]).any():
        yield tables.RATINGS, f"calls ratings of a program ({SIMULATED}...) a person's"


def _marks(bundle: Bundle) -> Iterator[Fault]:
    """Ratings that do not carry what was decided about raters and pairs."""
    seen = bundle.evidence
    own, pairs = seen.collected.plain_ratings, set(seen.collected.pairs["pair_id"])
    if strange := sorted(set(own["pair_id"]) - pairs):
        yield tables.RATINGS, f"has ratings of pair {strange[0]}, which is not among the pairs"
    decided = [*seen.decisions, *seen.withdrawals]
    due = marked(own, decided, seen.study.raters.per_pair, seen.collected.withdrawn)
    for name in _MARKS:
        other = (own[name].to_numpy(object) != due[name].to_numpy(object)).nonzero()[0]
        if len(other):
            row = own.iloc[int(other[0])]
            what = f"{row['rater_id']}'s rating of pair {row['pair_id']}"
            yield tables.RATINGS, f"says of {what} {name} {row[name]!r}, which the decisions do not"


def _computed(bundle: Bundle) -> Iterator[Fault]:
    """Verdicts, means and agreement that do not follow from the ratings: the first difference of each."""
    told = set[str]()
    for file, what in differences(bundle.evidence, bundle.verdicts, bundle.means, bundle.groups):
        if file not in told:
            told.add(file)
            yield file, f"does not follow from the ratings: {what}"


def _outputs(bundle: Bundle) -> Iterator[Fault]:
    """Rated pairs whose outputs are others, and data sets that outputs do not cover."""
    study, pairs = bundle.evidence.study, bundle.evidence.collected.sample_pairs
    due = {one.name: set(bundle.texts(one.name)["text_id"].to_pylist()) for one in bundle.manifest.datasets}
    for name in study.transformations:
        for seed in study.seeds:
            member = tables.outputs_of(name, seed)
            table = bundle.outputs(name, seed, ("key", "text_id", "datasets", "output", "status", COPY))
            if _covered(table) != due:
                yield member, "covers other texts than the data sets have"
            there = pc.xor(pc.not_equal(table["output"], ""), pc.not_equal(table[COPY], ""))
            if not pc.all(pc.equal(there, pc.equal(table["status"], "ok")), min_count=0).as_py():
                yield member, "says of an output that there is one, and there is none, or the other way round"
            rated = [pair for pair in pairs if (pair.transformation, pair.seed) == (name, seed)]
            if not rated:
                continue
            own = table.filter(
                pc.is_in(table["key"], value_set=pa.array([pair.key for pair in rated], pa.string()))
            ).to_pylist()
            found = {row["key"]: row for row in own}
            for pair in rated:
                row = found.get(pair.key)
                if row is None or row["output"] != pair.transformed:
                    yield member, f"or {tables.PAIRS} was edited: the output of pair {pair.pair_id} is another there"
                if row is not None and pair.original and text_id(pair.original, pair.language) != row["text_id"]:
                    yield tables.PAIRS, f"was edited: the original of pair {pair.pair_id} is another text"


def _covered(table: pa.Table) -> dict[str, set[str]]:
    """The texts of each data set for which there are outputs."""
    datasets = table["datasets"].combine_chunks()
    names, ids = pc.list_flatten(datasets), table["text_id"].combine_chunks().take(pc.list_parent_indices(datasets))
    return {name: set(ids.filter(pc.equal(names, name)).to_pylist()) for name in pc.unique(names).to_pylist()}


def _texts(bundle: Bundle) -> Iterator[Fault]:
    """Texts that do not have the hashes by which outputs are theirs."""
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), tables.texts_of(source.name)
        ids = table["text_id"].to_pylist()
        if len(set(ids)) != source.n_texts:
            yield member, f"holds {len(set(ids))} texts, and the manifest says {source.n_texts}"
        if source.texts == "reference":
            continue
        known: dict[tuple[str, str], str] = {}
        for found, text, code in zip(ids, table["text"].to_pylist(), table["language"].to_pylist(), strict=True):
            due = known.get((text, code))
            if due is None:
                due = known[text, code] = text_id(text, code)
            if found != due:
                yield member, f"was edited: the text {text[:40]!r} has another hash"
                break


def _scores(bundle: Bundle) -> Iterator[Fault]:
    """The maker's scores, which are shown after hours of work: that they can be read."""
    for other in sorted(set(bundle.scores["dataset"]) - {one.name for one in bundle.manifest.datasets}):
        yield tables.SCORES, f"has scores of {other!r}, which is none of the data sets"


_TOLD = (other_records, other_makers, other_supply, other_manifest, other_texts)
_LOOKS = (_prompts, _rules, _marks, _computed, other_judgements, _outputs, _texts, _scores, *_TOLD)
