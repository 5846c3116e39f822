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

from annotation.pseudonyms import SIMULATED
from annotation.ratings.ratings import marked
from annotation.verdicts.preregistration import other_rules
from annotation.verdicts.verdicts import rule_id
from annotation.verdicts.verification import differences
from evaluation.bundle import members
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.judged import other_judgements, rules_in
from evaluation.bundle.told import other_makers, other_manifest, other_records, other_supply, other_texts
from evaluation.bundle.withheld import COPY
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.records import text_id

_MARKS = ("excluded", "withdrawn", "surplus")
Fault = tuple[str, str]  # a member, and what is wrong with it


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
        yield members.TRANSFORMATIONS, "holds other transformations than the study"
    for name, one in bundle.transformations.items():
        due = identity("prompts-v1", [prompt.text for prompt in one.prompts]) if one.prompts else ""
        if due != one.prompt_hash:
            yield members.TRANSFORMATIONS, f"has other prompts of {name} than its hash says"
    if [one.name for one in study.datasets] != [one.name for one in bundle.manifest.datasets]:
        yield members.STUDY, "has other data sets than the manifest"


def _rules(bundle: Bundle) -> Iterator[Fault]:
    """Rules that are not those that were fixed, and verdicts by other ones."""
    seen = bundle.evidence
    ratings = seen.collected.ratings
    for what in other_rules(rules_in(bundle), seen.rules, ratings):
        yield "rules.json", f"fixed other rules than the study has: {what}"
    rule, rubric = rule_id(seen.study), seen.rubric.identity()
    for one in bundle.verdicts:
        if one.rule_id != rule or one.rubric_hash not in ("", rubric):
            yield members.VERDICTS, f"has a verdict on {one.transformation} by other rules or questions"
    counts = dict(Counter(one.decision for one in bundle.verdicts))
    if seen.looks and dict(seen.looks[-1].decisions) != counts:
        yield "looks.json", "notes other decisions last than the verdicts have"
    if bool(ratings["simulated"].any()) != bundle.manifest.simulated:
        yield "manifest.json", "says otherwise than the ratings whether they are simulated"
    programs = ratings["rater_id"].str.startswith(SIMULATED)
    if (programs & ~ratings["simulated"]).any():
        yield members.RATINGS, f"calls ratings of a program ({SIMULATED}...) a person's"


def _marks(bundle: Bundle) -> Iterator[Fault]:
    """Ratings that do not carry what was decided about raters and pairs."""
    seen = bundle.evidence
    own, pairs = seen.collected.plain_ratings, set(seen.collected.pairs["pair_id"])
    if strange := sorted(set(own["pair_id"]) - pairs):
        yield members.RATINGS, f"has ratings of pair {strange[0]}, which is not among the pairs"
    decided = [*seen.decisions, *seen.withdrawals]
    due = marked(own, decided, seen.study.raters.per_pair, seen.collected.withdrawn)
    for name in _MARKS:
        other = (own[name].to_numpy(object) != due[name].to_numpy(object)).nonzero()[0]
        if len(other):
            row = own.iloc[int(other[0])]
            what = f"{row['rater_id']}'s rating of pair {row['pair_id']}"
            yield members.RATINGS, f"says of {what} {name} {row[name]!r}, which the decisions do not"


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
            member = members.outputs_of(name, seed)
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
                    yield member, f"or {members.PAIRS} was edited: the output of pair {pair.pair_id} is another there"
                if row is not None and pair.original and text_id(pair.original, pair.language) != row["text_id"]:
                    yield members.PAIRS, f"was edited: the original of pair {pair.pair_id} is another text"


def _covered(table: pa.Table) -> dict[str, set[str]]:
    """The texts of each data set for which there are outputs."""
    datasets = table["datasets"].combine_chunks()
    names, ids = pc.list_flatten(datasets), table["text_id"].combine_chunks().take(pc.list_parent_indices(datasets))
    return {name: set(ids.filter(pc.equal(names, name)).to_pylist()) for name in pc.unique(names).to_pylist()}


def _texts(bundle: Bundle) -> Iterator[Fault]:
    """Texts that do not have the hashes by which outputs are theirs."""
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), members.texts_of(source.name)
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
        yield members.SCORES, f"has scores of {other!r}, which is none of the data sets"


_TOLD = (other_records, other_makers, other_supply, other_manifest, other_texts)
_LOOKS = (_prompts, _rules, _marks, _computed, other_judgements, _outputs, _texts, _scores, *_TOLD)
