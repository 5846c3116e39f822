"""What judges said, in a bundle of a study in which they decide with people: what travels, and whether it holds.

All that verdicts rest on is in it but the judges' own words: which outputs they rate with their strata, each score with
the hashes of judge and prompt, and why judges are refused, if they are. What the rules fixed of them is held to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.judges.decisions import beside, judging_of, of_verdicts, other_judged, read_judging
from annotation.judges.powered import Judging
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import SAID, pool_hash, rules_of
from evaluation.bundle import tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.tables import BundledJudged, BundledJudgement
from plumbline.identity import identity

Fault = tuple[str, str]
_OF_OUTPUTS = ("transformation", "pool", "task_type", "language", "output_language")
OF_JUDGES = (tables.JUDGED, tables.JUDGEMENTS, tables.REFUSED)


def decides(bundle: Bundle) -> bool:
    """Whether its verdicts are people's and judges' together."""
    return bundle.evidence.study.acceptance.judges.use == "decide"


def members_of(
    evidence: Evidence, hidden: Collection[str], *, comments: bool
) -> Iterator[tuple[str, bytes | memoryview]]:
    """The members of a study in which judges decide; none of another one.

    Judges' words travel with `comments`, but on texts of data sets that are `hidden`.
    """
    if evidence.study.acceptance.judges.use != "decide":
        return
    judging = read_judging(evidence.study, evidence.collected)
    said = judging.judgements
    spoken = comments & ~said["dataset"].isin(list(hidden))
    said = said.assign(text=said["text"].where(spoken, ""))
    yield tables.JUDGED, tables.to_parquet(tables.of_frame(judging.judged, BundledJudged))
    yield tables.JUDGEMENTS, tables.to_parquet(tables.of_frame(said, BundledJudgement))
    yield tables.REFUSED, tables.to_json({"refused": judging.refused})


def judging(bundle: Bundle) -> Judging:
    """What judges were given and said. Raises DataError for members that are damaged."""
    judged = bundle.table(tables.JUDGED, BundledJudged).to_pandas()
    judgements = bundle.table(tables.JUDGEMENTS, BundledJudgement).to_pandas()
    judgements = judgements.merge(judged[["pair_id", *_OF_OUTPUTS]], on="pair_id", how="left")
    refused = bundle.words(tables.REFUSED).get("refused", "")
    return judging_of(judged, judgements, bundle.evidence.collected, str(refused))


def rules_in(bundle: Bundle) -> dict[str, Any]:
    """The study's rules, as far as the bundle tells them: of judges' prompts and files it has the hashes alone."""
    seen = bundle.evidence
    if not decides(bundle) or not bundle.has(tables.JUDGED):
        return rules_of(seen.study, seen.rubric, {"each": [], "pool": ""})
    fixed: dict[str, Any] = next((one.rules["judges"] for one in reversed(seen.rules) if "judges" in one.rules), {})
    hashes = {one.get("name"): one for one in fixed.get("each", [])}
    said = bundle.settings.get("judges", [])
    each = [{**hashes.get(one["name"], {}), **{name: one[name] for name in SAID if name in one}} for one in said]
    table = bundle.table(tables.JUDGED, BundledJudged, ("pair_id", "stratum"))
    strata = dict(zip(table["pair_id"].to_pylist(), table["stratum"].to_pylist(), strict=True))
    return rules_of(seen.study, seen.rubric, {"each": each, "pool": pool_hash(strata)})


def other_judgements(bundle: Bundle) -> Iterator[Fault]:
    """Judged outputs that are none, judgements of others and by others, and what does not follow from them."""
    if not decides(bundle):
        return
    if lost := [name for name in OF_JUDGES if not bundle.has(name)]:
        yield lost[0], "is missing, and its verdicts rest on what judges said"
        return
    found = judging(bundle)
    yield from _other_outputs(bundle, found.judged)
    yield from _other_askings(bundle, found)
    people = [
        one.model_copy(update={"decision": one.decision_people}) for one in bundle.verdicts if one.decision_people
    ]
    try:
        made = beside(bundle.evidence, people, found)
    except ValueError as error:  # frames that cannot be judgements: scores off the scale, one twice
        yield tables.JUDGEMENTS, f"cannot be what judges said: {error}"
        return
    for verdict in other_judged(bundle.verdicts, of_verdicts(made, bundle.verdicts)):
        what = f"{verdict.transformation} in {verdict.language}"
        yield tables.VERDICTS, f"does not follow from the judgements: {what} says otherwise of judges"


def _other_outputs(bundle: Bundle, judged: pd.DataFrame) -> Iterator[Fault]:
    """Judged outputs that the bundle does not have, or whose texts are others."""
    sampled = {one.pair_id: one.key for one in bundle.evidence.collected.sample_pairs}
    if lost := set(sampled) - set(judged["pair_id"]):
        yield tables.JUDGED, f"lacks pair {min(lost)} of the sample"
    units = judged[["transformation", "seed"]].drop_duplicates().itertuples(index=False, name=None)
    for name, seed in units:
        own = judged[(judged["transformation"] == name) & (judged["seed"] == seed)]
        table = bundle.outputs(name, seed, ("key", "output", "status"))
        table = table.filter(pc.is_in(table["key"], value_set=pa.array(own["key"], pa.string())))
        texts = dict(zip(table["key"].to_pylist(), table["output"].to_pylist(), strict=True))
        for pair_id, key in zip(own["pair_id"], own["key"], strict=True):
            text = texts.get(key)
            if text is None or (text and identity("pair-v1", key, text) != pair_id):  # without words: withheld ones
                yield tables.JUDGED, f"or outputs/{name}/{seed}.parquet was edited: {pair_id} is another output there"
                break


def _other_askings(bundle: Bundle, found: Judging) -> Iterator[Fault]:
    """Judgements of outputs that judges were not given, by judges that the study does not have, or asked otherwise."""
    said = found.judgements
    if strange := set(said["pair_id"]) - set(found.judged["pair_id"]):
        yield tables.JUDGEMENTS, f"has judgements of {min(strange)}, which is not among the judged"
    kinds = {one["name"]: one["kind"] for one in bundle.settings.get("judges", [])}
    told = Counter(zip(said["judge"], said["kind"], strict=True))
    if others := [name for name, kind in told if kinds.get(name) != kind]:
        yield tables.JUDGEMENTS, f"has judgements of {others[0]!r}, who is no judge of the study, or of another kind"
    hashes = said.groupby("judge")["judge_hash"].nunique()
    if (hashes > 1).any():
        yield tables.JUDGEMENTS, f"has judgements of {hashes.idxmax()!r} by several settings"


def in_words(bundle: Bundle) -> str:
    """What was computed again of judges, in a line; empty where people alone decided."""
    if not decides(bundle):
        return ""
    found = judging(bundle)
    number = f"{len(found.judgements):,} judgements of {len(found.judged):,} outputs"
    return f"what judges add ({', '.join(found.judges)}: {number}), computed again, is in the verdicts"


def of_people(acceptance: dict[str, Any]) -> dict[str, Any]:
    """Rules for a campaign that has no judges yet: where judges decided, they would be reported."""
    judges = acceptance.get("judges", {})
    return {**acceptance, "judges": {"use": "report"}} if judges.get("use") == "decide" else acceptance
