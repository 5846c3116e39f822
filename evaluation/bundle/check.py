"""Check that a bundle is as it was exported, and that it follows from its ratings.

Hashes show that a member was changed. If the manifest was rewritten as well, computing again shows it: agreement,
verdicts and pairs' means from the ratings, by the functions that first computed them; marks on ratings from the
decisions; texts' hashes from the texts. Both checks run, so that faults are named precisely. Changing ratings and
everything that follows from them makes another bundle with another identity: signatures protect against that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.campaign_records import CampaignRecords
from annotation.judges.decisions import beside, judging_of, of_verdicts, other_judged
from annotation.judges.powered import Judging
from annotation.names import SIMULATED
from annotation.ratings.ratings import counting_ratings, kept_hash, marked, withdrawn_hash
from annotation.records import Supply
from annotation.verdicts.preregistration import other_rules, pool_hash, rules_of
from annotation.verdicts.verification import differences
from evaluation.bundle import records
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import COPY, BundledJudged, BundledJudgement, Fault
from plumbline.errors import DataError
from plumbline.identity import identity
from plumbline.records import text_id
from plumbline.study.engines import JUDGE_SETTINGS

_OF_OUTPUTS = ("transformation", "pool", "task_type", "language", "output_language")
OF_JUDGES = (records.JUDGED, records.JUDGEMENTS, records.REFUSED)


def decides(bundle: Bundle) -> bool:
    """Return whether people and judges decided the verdicts together."""
    return bundle.evidence.study.acceptance.judges == "decide"


def judging(bundle: Bundle) -> Judging:
    """Return the judges' outputs and judgements. Raises DataError for damaged members."""
    judged = bundle.table(records.JUDGED, BundledJudged).to_pandas()
    judgements = bundle.table(records.JUDGEMENTS, BundledJudgement).to_pandas()
    judgements = judgements.merge(judged[["pair_id", *_OF_OUTPUTS]], on="pair_id", how="left")
    refused = bundle.words(records.REFUSED).get("refused", "")
    return judging_of(judged, judgements, bundle.evidence.collected, str(refused))


def rules_in(bundle: Bundle) -> dict[str, Any]:
    """Return the study's rules as far as the bundle has them: of judges' prompts and files only the hashes."""
    seen = bundle.evidence
    if not decides(bundle) or not bundle.has(records.JUDGED):
        return rules_of(seen.study, seen.rubric, {"each": [], "pool": ""})
    fixed: dict[str, Any] = next(
        (rules.rules["judges"] for rules in reversed(seen.rules) if "judges" in rules.rules), {}
    )
    hashes = {judge.get("name"): judge for judge in fixed.get("each", [])}
    judges = bundle.settings.get("judges", [])
    each = [
        {**hashes.get(judge["name"], {}), **{name: judge[name] for name in JUDGE_SETTINGS if name in judge}}
        for judge in judges
    ]
    table = bundle.table(records.JUDGED, BundledJudged, ("pair_id", "stratum"))
    strata = dict(zip(table["pair_id"].to_pylist(), table["stratum"].to_pylist(), strict=True))
    return rules_of(seen.study, seen.rubric, {"each": each, "pool": pool_hash(strata)})


def other_judgements(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of judged outputs and judgements, and of verdicts that do not follow from them."""
    if not decides(bundle):
        return
    if lost := [name for name in OF_JUDGES if not bundle.has(name)]:
        yield lost[0], "is missing, although judges contributed to the verdicts"
        return
    of_judges = judging(bundle)
    yield from _other_outputs(bundle, of_judges.judged)
    yield from _other_askings(bundle, of_judges)
    people = [
        verdict.model_copy(update={"decision": verdict.decision_people})
        for verdict in bundle.verdicts
        if verdict.decision_people
    ]
    try:
        decided = beside(bundle.evidence, people, of_judges)
    except ValueError as error:  # frames that cannot be judgements: scores off the scale, one twice
        yield records.JUDGEMENTS, f"has invalid judgements: {error}"
        return
    for verdict in other_judged(bundle.verdicts, of_verdicts(decided, bundle.verdicts)):
        what = f"{verdict.transformation} in {verdict.language}"
        yield records.VERDICTS, f"does not follow from the judgements, which give other means with judges for {what}"


def _other_outputs(bundle: Bundle, judged: pd.DataFrame) -> Iterator[Fault]:
    """Yield faults of judged outputs that the bundle lacks or whose texts differ."""
    sampled = {pair.pair_id: pair.key for pair in bundle.evidence.collected.sample_pairs}
    if lost := set(sampled) - set(judged["pair_id"]):
        yield records.JUDGED, f"lacks pair {min(lost)} of the sample"
    units = judged[["transformation", "seed"]].drop_duplicates().itertuples(index=False, name=None)
    for name, seed in units:
        of_unit = judged[(judged["transformation"] == name) & (judged["seed"] == seed)]
        table = bundle.outputs(name, seed, ("key", "output", "status"))
        table = table.filter(pc.is_in(table["key"], value_set=pa.array(of_unit["key"], pa.string())))
        texts = dict(zip(table["key"].to_pylist(), table["output"].to_pylist(), strict=True))
        for pair_id, key in zip(of_unit["pair_id"], of_unit["key"], strict=True):
            text = texts.get(key)
            if text is None or (text and identity("pair-v1", key, text) != pair_id):  # without words: withheld ones
                yield records.JUDGED, f"or outputs/{name}/{seed}.parquet was edited: the output of {pair_id} differs"
                break


def _other_askings(bundle: Bundle, of_judges: Judging) -> Iterator[Fault]:
    """Yield faults of judgements on other outputs, by unknown judges, or by several settings."""
    judgements = of_judges.judgements
    if strange := set(judgements["pair_id"]) - set(of_judges.judged["pair_id"]):
        yield records.JUDGEMENTS, f"has judgements of {min(strange)}, which is not among the judged outputs"
    kinds = {judge["name"]: judge["kind"] for judge in bundle.settings.get("judges", [])}
    counts = Counter(zip(judgements["judge"], judgements["kind"], strict=True))
    if others := [name for name, kind in counts if kinds.get(name) != kind]:
        yield (
            records.JUDGEMENTS,
            f"has judgements by {others[0]!r}, which is not a judge of the study, or is one of another kind",
        )
    hashes = judgements.groupby("judge")["judge_hash"].nunique()
    if (hashes > 1).any():
        yield records.JUDGEMENTS, f"has judgements by {hashes.idxmax()!r} with several settings"


def judges_line(bundle: Bundle) -> str:
    """Return a line on the recomputed judgements; empty if people alone decided."""
    if not decides(bundle):
        return ""
    of_judges = judging(bundle)
    number = f"{len(of_judges.judgements):,} judgements of {len(of_judges.judged):,} outputs"
    names = ", ".join(of_judges.judges)
    return f"the judges' part of the verdicts matches the values computed again from {number} by {names}"


_HASHES = ("pairs_sha256", "ratings_sha256", "rule_id", "rubric_hash")


def other_records(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of rules and looks that verdicts require, and of hashes that differ between records."""
    seen, verdicts = bundle.evidence, bundle.verdicts
    if not verdicts:
        return
    rules = rules_in(bundle)
    if not seen.rules:
        yield "rules.json", f"is empty, but the verdicts follow rule {verdicts[0].rule_id}: somebody removed its entry"
    for fixed in seen.rules:  # the rubric is not in those of earlier versions
        if lacking := [name for name in ("acceptance", "raters") if name in rules and name not in fixed.rules]:
            yield "rules.json", f"has rules of {fixed.fixed_at:%Y-%m-%d} without {lacking[0]!r}: somebody removed it"
    if not seen.looks:
        yield "looks.json", "is empty, although the first run that computes verdicts adds an entry"
    due = {name: getattr(verdicts[0], name) for name in _HASHES}
    for name in _HASHES:
        if len({getattr(verdict, name) for verdict in verdicts}) > 1:
            yield records.VERDICTS, f"has verdicts with different {name}, although all are computed together"
        last = getattr(seen.looks[-1], name) if seen.looks else ""
        if last and last != due[name]:
            yield "looks.json", f"has a last entry whose {name} differs from the verdicts'"
    if seen.waves and seen.waves[-1].pairs_sha256 != due["pairs_sha256"]:
        yield "waves.json", "has a last entry whose pairs_sha256 differs from the verdicts'"
    if any(verdict.withdrawn_hash != withdrawn_hash(seen.collected.withdrawn) for verdict in verdicts):
        yield records.VERDICTS, "has a withdrawn_hash that does not match the withdrawn pairs"
    if any(verdict.kept_hash != kept_hash(seen.decisions) for verdict in verdicts):
        yield records.VERDICTS, "has a kept_hash that does not match the decisions to keep raters"
    counted = len(counting_ratings(seen.collected.sample_ratings, seen.study.raters.per_pair))
    if seen.looks and seen.looks[-1].n_ratings != counted:
        yield (
            "looks.json",
            f"has a last entry with n_ratings {seen.looks[-1].n_ratings}, but {counted} ratings count in verdicts",
        )


def other_makers(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of pairs and verdicts whose unit or generator is not the study's."""
    study, kinds = bundle.evidence.study, dict[str, str]()
    for pair in bundle.evidence.collected.sample_pairs:
        kinds.setdefault(pair.transformation, pair.generator_kind)
        transformation = bundle.transformations.get(pair.transformation)
        if transformation is None or pair.seed not in study.seeds:
            what = f"{pair.transformation!r} with seed {pair.seed}"
            yield records.PAIRS, f"has pair {pair.pair_id}, but there are no outputs of {what}"
            return
        for name in ("generator_hash", "prompt_hash"):
            if getattr(pair, name) != getattr(transformation, name):
                yield (
                    records.PAIRS,
                    f"has pair {pair.pair_id} whose {name} differs from that in {records.TRANSFORMATIONS}",
                )
                return
    for verdict in bundle.verdicts:
        of_pairs = kinds.get(verdict.transformation, verdict.generator_kind)
        if verdict.generator_kind != of_pairs:
            yield (
                records.VERDICTS,
                f"has the generator kind {verdict.generator_kind!r} for {verdict.transformation}, but the pairs have"
                f" {of_pairs!r}",
            )


def other_supply(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of the sample's counts that contradict the outputs.

    Failed outputs may have been asked for again since, and data sets or seeds added: so there may be more outputs now,
    and more usable ones, but never fewer.
    """
    supplies = bundle.evidence.supply
    if not supplies:  # of an earlier version; verdicts with a share of failed outputs do not follow then
        return
    study, counted = bundle.evidence.study, set[tuple[str, str]]()
    for name in study.transformations:
        now = _states(bundle, name)
        for supply in (supply for supply in supplies if supply.transformation == name):
            counted.add((name, supply.language))
            yield from (
                ("sample.json", f"has wrong counts for {name} in {supply.language}: {what}")
                for what in _ruled_out(supply, now)
            )
    for supply in supplies:
        if (supply.transformation, supply.language) not in counted:
            yield "sample.json", f"counts outputs of {supply.transformation!r}, which is not in the study"
    for pair in bundle.evidence.collected.sample_pairs:
        if (pair.transformation, pair.language) not in counted:
            yield "sample.json", f"lacks counts for {pair.transformation} in {pair.language}, which has pairs"
            return


def _states(bundle: Bundle, name: str) -> Counter[tuple[str, str]]:
    """Return the number of a transformation's outputs by language of the original and status, over all seeds."""
    states = Counter[tuple[str, str]]()
    for seed in bundle.evidence.study.seeds:
        table = bundle.outputs(name, seed, ("source_language", "status"))
        states.update(zip(table["source_language"].to_pylist(), table["status"].to_pylist(), strict=True))
    return states


def _ruled_out(supply: Supply, now: Counter[tuple[str, str]]) -> Iterator[str]:
    ok, failed = now[supply.language, "ok"], now[supply.language, "failed"]
    usable, then = supply.ok + supply.kept_out, supply.ok + supply.kept_out + supply.failed + supply.unanswered
    counts = {"ok": supply.ok, "kept_out": supply.kept_out, "failed": supply.failed, "unanswered": supply.unanswered}
    if less := [name for name, count in counts.items() if count < 0]:
        yield f"{less[0]} is {counts[less[0]]}, but a count cannot be negative"
    if usable > ok or then > ok + failed:
        yield f"{usable} usable of {then} outputs, but the bundle has {ok} of {ok + failed}"
    if failed > supply.failed + supply.unanswered + max(0, ok + failed - then):
        yield f"{supply.failed} failed, but the bundle has {failed}"
    decided = usable + supply.failed
    if decided and abs(supply.failed_share - supply.failed / decided) > 1e-9:
        yield f"failed_share {supply.failed_share:g}, but its counts give {supply.failed / decided:g}"
    if any(not 0 <= number <= usable for number in supply.flagged.values()):
        yield f"more outputs with an error type than the {usable} usable ones"


def other_manifest(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of the manifest that contradict the study or the ratings."""
    manifest, settings = bundle.manifest, bundle.settings
    due = {"study": settings.get("name"), "description": settings.get("description", "")}
    due["generator"] = settings.get("generator", {})
    for name, value in due.items():
        if getattr(manifest, name) != value:
            yield "manifest.json", f"has another {name} than {records.STUDY}"
    ratings = bundle.evidence.collected.plain_ratings
    times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
    if len(times) and manifest.rated != (first_last := (f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}")):
        yield (
            "manifest.json",
            f"gives rating dates from {' to '.join(manifest.rated)}, but the ratings are from"
            f" {' to '.join(first_last)}",
        )
    if not manifest.comments and (ratings["comment"] != "").any():
        yield "manifest.json", "says that raters' comments are left out, but the ratings have comments"
    for source, spec in zip(manifest.datasets, bundle.study().datasets, strict=False):  # others are named by `_prompts`
        kind = "mteb" if spec.mteb else "local"
        if source.kind != kind:
            yield "manifest.json", f"says that {source.name} is {source.kind}, but {records.STUDY} says {kind}"
        if spec.task not in (None, source.task):
            yield "manifest.json", f"says task {source.task} for {source.name}, but {records.STUDY} says {spec.task}"
        pinned = f"{spec.path}@{spec.revision}" if spec.revision else ""
        if pinned and source.revision != pinned:
            yield (
                "manifest.json",
                f"says revision {source.revision} for {source.name}, but {records.STUDY} says {pinned}",
            )


def other_texts(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of texts and pairs whose data set, task or languages contradict the manifest."""
    tasks = {source.name: source.task for source in bundle.manifest.datasets}
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), records.texts_of(source.name)
        for name, due in (("dataset", source.name), ("task_type", source.task)):
            if value := _other(table, name, due):
                yield member, f"has texts with {name} {value!r}, but the manifest says {due!r}"
        if tuple(sorted(pc.unique(table["language"]).to_pylist())) != tuple(sorted(source.languages)):
            yield member, f"has texts in languages other than the manifest's {', '.join(source.languages)}"
    for pair in bundle.evidence.collected.sample_pairs:
        if tasks.get(pair.dataset) != pair.task_type:
            yield (
                records.PAIRS,
                f"has pair {pair.pair_id} of data set {pair.dataset!r} and task {pair.task_type}, which contradicts the"
                " manifest",
            )
            return


def _other(table: pa.Table, name: str, due: str) -> str:
    """Return the first value of a column that is not the expected one; empty if there is none."""
    return next((str(value) for value in pc.unique(table[name]).to_pylist() if value != due), "")


_MARKS = ("excluded", "withdrawn", "surplus")


def open_checked(path: Path, step: Callable[[], object] = lambda: None) -> Bundle:
    """Open a bundle without faults. Raises DataError with the first fault."""
    bundle = Bundle.open(path)
    for member, what in faults(bundle, step):
        raise DataError(f"{path}: {member} {what}; get it again from its source")
    return bundle


def faults(bundle: Bundle, step: Callable[[], object] = lambda: None) -> Iterator[Fault]:
    """Yield all faults, the members' hashes first; `step` is called for each of `steps`."""
    members = list(_other_members(bundle, step))
    yield from members
    missing = {name for name, what in members if what == _MISSING}
    if missing:
        return  # missing members cannot be checked further
    unread = set[str]()
    for look in _LOOKS:
        try:
            yield from look(bundle)
        except DataError as error:
            if not members and str(error) not in unread:  # otherwise already reported
                yield "a member", f"cannot be read: {error}"
            unread.add(str(error))
        step()


def steps(bundle: Bundle) -> int:
    """Return the number of steps that `faults` takes."""
    return len(bundle.manifest.members) + len(_LOOKS)


_MISSING = "is missing"


def _other_members(bundle: Bundle, step: Callable[[], object]) -> Iterator[Fault]:
    """Yield faults of members that do not match the manifest."""
    present, listed = set(bundle.archive.names), bundle.manifest.members
    for name in sorted(present - set(listed)):
        yield name, "is not in the manifest: somebody added it"
    for name, member in sorted(listed.items()):
        step()
        if name not in present:
            yield name, _MISSING
        elif bundle.archive.size(name) != member.size or bundle.archive.sha256(name) != member.sha256:
            yield name, "was edited: its hash differs from the manifest's"


def _prompts(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of prompts whose hash differs, and of transformations and data sets that are not the study's."""
    study = bundle.study()
    if list(bundle.transformations) != list(study.transformations):
        yield records.TRANSFORMATIONS, "has other transformations than the study"
    for name, transformation in bundle.transformations.items():
        due = (
            identity("prompts-v1", [prompt.text for prompt in transformation.prompts]) if transformation.prompts else ""
        )
        if due != transformation.prompt_hash:
            yield records.TRANSFORMATIONS, f"has prompts of {name} that do not match their hash"
    if [dataset.name for dataset in study.datasets] != [dataset.name for dataset in bundle.manifest.datasets]:
        yield records.STUDY, "has other data sets than the manifest"


def _rules(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of rules that are not those fixed, and of verdicts by other rules."""
    seen = bundle.evidence
    ratings = seen.collected.ratings
    for what in other_rules(rules_in(bundle), seen.rules, ratings):
        yield "rules.json", f"has other rules than the study: {what}"
    rule, rubric = CampaignRecords.open(seen.study).rule_id, seen.rubric.identity()
    for verdict in bundle.verdicts:
        if verdict.rule_id != rule or verdict.rubric_hash not in ("", rubric):
            yield (
                records.VERDICTS,
                f"has a verdict on {verdict.transformation} whose rules or questions differ from the study's",
            )
    counts = dict(Counter(verdict.decision for verdict in bundle.verdicts))
    if seen.looks and dict(seen.looks[-1].decisions) != counts:
        yield "looks.json", "has a last entry whose decisions differ from the verdicts'"
    if bool(ratings["simulated"].any()) != bundle.manifest.simulated:
        yield "manifest.json", "contradicts the ratings on whether they are simulated"
    programs = ratings["rater_id"].str.startswith(SIMULATED)
    if (programs & ~ratings["simulated"]).any():
        yield records.RATINGS, f"marks ratings by a program ({SIMULATED}...) as ratings by a person"


def _marks(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of ratings whose marks do not match the decisions on raters and pairs."""
    seen = bundle.evidence
    ratings, pairs = seen.collected.plain_ratings, set(seen.collected.pairs["pair_id"])
    if strange := sorted(set(ratings["pair_id"]) - pairs):
        yield records.RATINGS, f"has ratings of pair {strange[0]}, which is not among the pairs"
    decided = [*seen.decisions, *seen.withdrawals]
    due = marked(ratings, decided, seen.study.raters.per_pair, seen.collected.withdrawn)
    for name in _MARKS:
        rows = (ratings[name].to_numpy(object) != due[name].to_numpy(object)).nonzero()[0]
        if len(rows):
            row = ratings.iloc[int(rows[0])]
            what = f"{row['rater_id']}'s rating of pair {row['pair_id']}"
            yield records.RATINGS, f"has {name} = {row[name]!r} for {what}, which contradicts the decisions"


def _computed(bundle: Bundle) -> Iterator[Fault]:
    """Yield the first difference each of verdicts, means and agreement from what the ratings give."""
    named = set[str]()
    for file, what in differences(bundle.evidence, bundle.verdicts, bundle.means, bundle.groups):
        if file not in named:
            named.add(file)
            yield file, f"does not follow from the ratings: {what}"


def _outputs(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of rated pairs whose outputs differ, and of data sets that outputs do not cover."""
    study, pairs = bundle.evidence.study, bundle.evidence.collected.sample_pairs
    due = {dataset.name: set(bundle.texts(dataset.name)["text_id"].to_pylist()) for dataset in bundle.manifest.datasets}
    for name in study.transformations:
        for seed in study.seeds:
            member = records.outputs_of(name, seed)
            table = bundle.outputs(name, seed, ("key", "text_id", "datasets", "output", "status", COPY))
            if _covered(table) != due:
                yield member, "does not cover exactly the texts of the data sets"
            has_text = pc.xor(pc.not_equal(table["output"], ""), pc.not_equal(table[COPY], ""))
            if not pc.all(pc.equal(has_text, pc.equal(table["status"], "ok")), min_count=0).as_py():
                yield member, "has outputs whose status contradicts their text"
            rated = [pair for pair in pairs if (pair.transformation, pair.seed) == (name, seed)]
            if not rated:
                continue
            rows = table.filter(
                pc.is_in(table["key"], value_set=pa.array([pair.key for pair in rated], pa.string()))
            ).to_pylist()
            by_key = {row["key"]: row for row in rows}
            for pair in rated:
                row = by_key.get(pair.key)
                if row is None or row["output"] != pair.transformed:
                    yield member, f"or {records.PAIRS} was edited: the output of pair {pair.pair_id} differs"
                if row is not None and pair.original and text_id(pair.original, pair.language) != row["text_id"]:
                    yield records.PAIRS, f"was edited: the original text of pair {pair.pair_id} differs"


def _covered(table: pa.Table) -> dict[str, set[str]]:
    """Return the texts of each data set that have outputs."""
    datasets = table["datasets"].combine_chunks()
    names, ids = pc.list_flatten(datasets), table["text_id"].combine_chunks().take(pc.list_parent_indices(datasets))
    return {name: set(ids.filter(pc.equal(names, name)).to_pylist()) for name in pc.unique(names).to_pylist()}


def _texts(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of texts that do not match their hashes."""
    for source in bundle.manifest.datasets:
        table, member = bundle.texts(source.name), records.texts_of(source.name)
        ids = table["text_id"].to_pylist()
        if len(set(ids)) != source.n_texts:
            yield member, f"has {len(set(ids))} texts, but the manifest says {source.n_texts}"
        if source.texts == "reference":
            continue
        hashes: dict[tuple[str, str], str] = {}
        for digest, text, code in zip(ids, table["text"].to_pylist(), table["language"].to_pylist(), strict=True):
            due = hashes.get((text, code))
            if due is None:
                due = hashes[text, code] = text_id(text, code)
            if digest != due:
                yield member, f"was edited: the text {text[:40]!r} does not match its hash"
                break


def _scores(bundle: Bundle) -> Iterator[Fault]:
    """Yield faults of the maker's scores: checked early, as they are shown after hours of work."""
    for name in sorted(set(bundle.scores["dataset"]) - {dataset.name for dataset in bundle.manifest.datasets}):
        yield records.SCORES, f"has scores on {name!r}, which is not one of the data sets"


_TOLD = (other_records, other_makers, other_supply, other_manifest, other_texts)
_LOOKS = (_prompts, _rules, _marks, _computed, other_judgements, _outputs, _texts, _scores, *_TOLD)
