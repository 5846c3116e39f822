"""The methods section of a paper: the sentences of `methods.jinja` over facts from the records.

The report shows it, and the sheets take single blocks of it.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from annotation.campaign.counting import dated_words
from annotation.campaign.rubric import CHECKS, Rubric
from annotation.human.forms import form_of
from annotation.human.records import HumanTask
from annotation.questions.wordings import addressed_lines
from annotation.ratings.signs import controls_missed
from annotation.records import Verdict
from annotation.report.material import CampaignMaterial
from annotation.sampling.candidates import NEAR
from annotation.verdicts.looks import WHY_UNBIASED
from annotation.verdicts.preregistration import amendments, fixed_text
from annotation.verdicts.rules import unchecked
from annotation.verdicts.systems import by_test, scope_of
from annotation.verdicts.tables import display, unbiased_frame, wrong
from generation.jobs import generator_hash
from plumbline.exhibits import templates
from plumbline.exhibits.templates import listed
from plumbline.languages import language_name
from plumbline.records import REHEARSAL, SANDBOX
from plumbline.statistics.agreement import number_of_raters
from plumbline.statistics.estimates import RESAMPLES
from plumbline.study.transformations import EIGHT
from plumbline.words import count

#: Blocks, in order.
PARAGRAPHS = ("sample", "raters", "quality", "acceptance", "systems", "agreement", "makers", "crowd")
#: The places where ratings are given, by their source in records.
SOURCE_NAMES = {
    "argilla": "Argilla",
    "mturk": "Amazon Mechanical Turk",
    "prolific": "Prolific",
    "link": "a platform that sends people by link",
    "rehearsal": "REHEARSAL, a made-up crowd",
    "simulated": "a simulation",
}
#: The kinds of intervals of means, by `Summary.interval`.
INTERVALS = {
    "pairs": "intervals over pairs by the empirical likelihood on a bounded scale, with raters taken as fixed (Owen"
    " 1990, Ann. Stat. 18, 90-120)",
    "pairs_and_raters": "intervals with both pairs and raters as samples: the wider of those by the empirical"
    " likelihood over pairs (Owen 1990, Ann. Stat. 18, 90-120) and t intervals over both (Cochran and Cox 1957,"
    " Experimental Designs, 2nd ed., section 4.14)",
    "blocks": "repeated intervals over the pairs of complete blocks, which are valid at all looks together: the"
    " empirical likelihood on a bounded scale (Owen 1990, Ann. Stat. 18, 90-120), at levels by alpha spending"
    " (Lan and DeMets 1983, Biometrika 70, 659-663)",
}
#: What P and the intervals are by, by `Summary.interval`.
P_BY = {
    "pairs": "P and the intervals are by one test over the means of pairs.",
    "pairs_and_raters": "Raters are a sample too: each end of an interval is the outer one of two intervals, that over"
    " the means of pairs and the t interval over pairs and raters. P is the less sure of two P, that over the means of"
    " pairs and that by the t distribution with the t interval's degrees of freedom; it is 0.5 where only one of them"
    " is above 0.5.",
    "blocks": "P and the intervals are by one test over the means of pairs, valid at the looks after all blocks"
    " together; after a stop P is in the order of the looks (Tsiatis, Rosner and Mehta 1984, Biometrics 40, 797-803).",
}


def methods(material: CampaignMaterial) -> list[str]:
    """Return the methods section, one string of plain text for each paragraph."""
    blocks = methods_blocks(material)
    return [blocks[name] for name in PARAGRAPHS if blocks[name]]


def methods_blocks(material: CampaignMaterial) -> dict[str, str]:
    """Return the blocks of the methods section by name: those of PARAGRAPHS, and `controls`, a part of the sample's."""
    return templates.blocks("annotation/report/methods.jinja", methods_facts(material))


def methods_facts(material: CampaignMaterial) -> dict[str, Any]:
    """Return what the methods section says, by the names in its template."""
    study, rule, judging = material.study, material.study.acceptance, material.study.judging
    originals, outputs = languages_of(material)
    statistics = {criterion.statistic for criterion in rule.rules} or {"mean"}
    other_pools = defaultdict[str, set[str]](set)
    for criterion in rule.rules:
        other_pools[criterion.question].update(criterion.pools)
    return {
        "study": study,
        "judging": judging,
        "judged": study.called.judged,
        "group_words": f"{study.called.judged}s" if judging.transforms else judging.group_words,
        "item": study.called.item,
        "an_item": study.called.an_item,
        "known": study.called.known,
        "imported": material.imported,
        "seed": study.sample.seed,
        "near": NEAR,
        "pairs": material.pairs,
        "languages": sorted({language_name(code) for code in (*originals, *outputs)}),
        "original_languages": sorted(map(language_name, originals)),
        "output_languages": sorted(map(language_name, outputs)),
        "addressed": addressed_lines(study, material.asked, material.texts),
        "rule": rule,
        "statistics": sorted(statistics),
        "other_pools": {question: sorted(names) for question, names in other_pools.items()},
        "pool_names": lambda pools: listed(map(display, pools)),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "intervals": INTERVALS,
        "scaled": len(material.questions),
        "resamples": RESAMPLES,
        "crowd": [campaign for campaign in material.crowd if campaign.mode != "test"],
        "source_names": SOURCE_NAMES,
        **_sample_facts(material),
        **_rating_facts(material),
        **_quality_facts(material),
        **_verdict_facts(material),
        **_systems_facts(material),
        **_maker_facts(material),
    }  # fmt: skip


def _sample_facts(material: CampaignMaterial) -> dict[str, Any]:
    item, counts = material.study.called.item, Counter(pair.transformation for pair in material.pairs)
    low, high = min(counts.values(), default=0), max(counts.values(), default=0)
    total = {name: sum(getattr(supply, name) for supply in material.supply)
             for name in ("ok", "failed", "unanswered", "kept_out")}  # fmt: skip
    tally = material.asked_for  # without controls that are drawn for a pilot that there was not
    kinds = tally.kinds if tally else Counter[str](pair.control for pair in material.controls)
    named = {
        "positive": ("positive control", "almost identical texts"),
        "negative": ("negative control", "unrelated texts"),
        "known": ("known item", "with right answers from a file"),
        "repeat": ("repeat", f"{item}s of the sample, shown a second time"),
    }
    missed, answered = controls_missed(
        material.control_ratings,
        pd.DataFrame([pair.model_dump() for pair in material.controls]),
        material.rubric.quality,
        material.rubric.expected,
    ) if material.controls else (0, 0)  # fmt: skip
    return {
        "groups": [display(name, pooled=False).lower() for name in counts],
        "per_group": f"{low:,}" if low == high else f"{low:,} to {high:,}",
        "waves": [f"{count(wave.pairs, item)} on {wave.at:%Y-%m-%d} ({wave.reason})" for wave in material.waves],
        "supply": total | {
            "all": total["ok"] + total["failed"] + total["kept_out"],
            "flags": sorted({flag for supply in material.supply for flag in supply.without}),
        },
        "controls": [f"{count(kinds[kind], name)} ({sense})" for kind, (name, sense) in named.items() if kinds[kind]],
        "control_ratings": int((material.control_ratings["status"] == "submitted").sum()),
        "missed": missed,
        "answered": answered,
        "wrong": _wrong(material),
    }  # fmt: skip


def _rating_facts(material: CampaignMaterial) -> dict[str, Any]:
    rubric, rated, per_pair = material.asked, material.counting, material.study.raters.per_pair
    plain = {question.name for question in rubric.asked() if question.has_points and question.scale == rubric.scale}
    return {
        "rubric": rubric,
        "rated_questions": [
            f"{question.name} (“{question.title['en']}”)" for question in rubric.questions if question.name in plain
        ],
        "other_questions": other_questions(rubric, plain, material.tasks),
        "together": material.study.sample.together and rated["order"].astype(str).str.isdigit().any(),
        "ratings": len(rated),
        "rated_by": rated_by(material),
        "raters_known": number_of_raters(rated["rater_id"]) is not None,
        "collected_from": collected_from(material),
        "dated": dated_words(rated) if len(rated) else "",
        "per_pair": per_pair,
        "full": int((rated.groupby("pair_id")["rater_id"].nunique() >= per_pair).sum()),
        "staying": len(material.staying),
        "surplus": len(material.surplus),
    }


def _quality_facts(material: CampaignMaterial) -> dict[str, Any]:
    last = {decision.rater_id: decision.exclude for decision in material.decisions}
    return {
        "quality": material.rubric.quality,
        "apart": " or ".join(count(points, "point") for points in material.rubric.quality.each("apart")),
        "checks": _checks(material),
        "signs": len(material.signs),
        "sign_raters": len({sign.rater_id for sign in material.signs}),
        "excluded_raters": sum(last.values()),
        "excluded_ratings": len(material.excluded),
        "changed_by_excluded": _changed(material.verdicts, "with_excluded"),
        "withdrawn": len(material.pairs) - len(material.staying),
        "withdrawn_ratings": len(material.withdrawn),
        "late": material.late_withdrawals,
        "changed_by_withdrawn": _changed(material.verdicts, "with_withdrawn"),
    }


def _verdict_facts(material: CampaignMaterial) -> dict[str, Any]:
    rule, rated = material.study.acceptance, set(material.questions)
    judged = {criterion.question for criterion in rule.rules} or rated
    agreed = [(part.kind, coefficient.name) for group in material.groups for part in group.questions
              for coefficient in part.coefficients]  # fmt: skip
    translated = {pair.transformation for pair in material.pairs if pair.pool == "translation"}
    return {
        "pooled_translation": len(translated) > 1,
        "agreement_names": " or ".join(["AC2"] * bool(judged & rated) + ["AC1"] * bool(judged - rated)),
        "unchecked": unchecked(material.verdicts),
        "unbiased": bool(material.study.raters.blocks) and len(unbiased_frame(material.verdicts)) > 0,
        "why_unbiased": WHY_UNBIASED,
        "looks": material.looks,
        "same_basis": all(look.rests_on == later.rests_on for look, later in itertools.pairwise(material.looks)),
        "fixed": fixed_text(material.rules, material.every) if material.rules else "",
        "amended": len(amendments(material.rules, material.first)),
        "kinds_agreed": {kind for kind, _ in agreed} if material.groups else None,
        "coefficients": {name for _, name in agreed},
    }


def _systems_facts(material: CampaignMaterial) -> dict[str, Any]:
    """Return how systems were compared: on the same originals, and by choices; `couples` are Holm's numbers of p."""
    done, kinds, sources = material.side_by_side, material.study.kinds, set(material.counting["source"])
    names = {*done.systems["system"].astype(str)}
    queues = {kinds[name].queue if name in kinds else "" for name in names}
    tested = done.differences.assign(question=done.differences["question"].replace(dict(done.unruled)))
    tested = tested[tested["p"].notna() | bool(done.looks)]
    scope = ["question", "language", *(["queue"] if "queue" in tested else [])]
    return {
        "systems": len(names),
        "done": done,
        "choices": material.preferred if len(material.preferred.systems) else None,
        "by_test": by_test,
        "scope_of": scope_of,
        "couples": sorted({*tested.groupby(scope).size()}),
        "ranked": done.systems["rank"].notna().any() if names else False,
        "blind": sources <= {"argilla", "mturk", "prolific", "link"} and len(queues) == 1 and "" not in queues,
        "shuffled": sources <= {"argilla"},  # nobody drew the order of a crowd's batches for each worker
    }


def _maker_facts(material: CampaignMaterial) -> dict[str, Any]:
    study, kinds = material.study, material.study.transforming
    generated = [verdict for verdict in material.verdicts if verdict.origin.prompt_hash]
    makers = {(verdict.origin.model, verdict.origin.generator_hash) for verdict in generated}
    prompts = {display(v.transformation, pooled=False).lower(): v.origin.prompt_hash[:8] for v in generated}
    names = dict.fromkeys(verdict.transformation for verdict in material.verdicts)
    new = [name for name in names if name in kinds and name not in EIGHT and not kinds[name].queue]
    return {
        "generators": sorted(model for model, _ in makers),
        # The study may name another generator by now, whose settings are not those of the outputs.
        "generator": study.generator if makers == {(study.generator.model, generator_hash(study.generator))} else None,
        "prompts": [f"{name} {digest}" for name, digest in prompts.items()],
        "other_makers": list(
            dict.fromkeys(
                (
                    display(verdict.transformation, pooled=False),
                    verdict.origin.model,
                    verdict.origin.generator_kind,
                    verdict.origin.generator_hash[:8],
                )
                for verdict in material.verdicts
                if not verdict.origin.prompt_hash
            )
        ),
        "new_kinds": [f"{display(name, pooled=False).lower()} (axis {kinds[name].axis})" for name in new],
        "meaning_changed": [display(name, pooled=False) for name in new if kinds[name].meaning == "changed"],
    }


def _checks(material: CampaignMaterial) -> list[str]:
    """Return the answers to controls and repeats that are signs of carelessness."""
    kinds, off = {pair.control for pair in material.controls}, _wrong(material)
    controls = [material.study.called.known] if kinds & set(CHECKS) else []
    repeats = ["repeats"] if "repeat" in kinds else []
    if off.startswith("wrong"):  # a repeat has no right answer
        signs = [f"answers to {name} that are {off}" for name in controls]
        return signs + [f"answers to {name} that differ from the first answer" for name in repeats]
    return [f"answers to {' or '.join(controls + repeats)} that are {off}"] if controls or repeats else []


def _wrong(material: CampaignMaterial) -> str:
    return wrong(material.rubric.quality, material.rubric.asked())


def _changed(verdicts: Sequence[Verdict], decision: str) -> str:
    """Return how many verdicts would be different by another decision of theirs, in words."""
    changed = [verdict for verdict in verdicts if getattr(verdict.review, decision) not in (None, verdict.by_rule)]
    return f"{len(changed)} of {count(len(verdicts), 'verdict')}" if changed else "no verdict"


def other_questions(rubric: Rubric, plain: Collection[str], tasks: Sequence[HumanTask] = ()) -> list[str]:
    """Return a sentence for each question that is not in `plain`, or for each of people's `tasks`."""
    sentences = []
    if tasks:
        titles = {question.name: question.title["en"] for question in reversed(rubric.questions)}
        for task in tasks:  # candidates, or their order, are mentioned once
            form = form_of(task)
            *names, last = dict.fromkeys(form.meaning(label) for label in form.questions()[0].labels)
            answers = f"{', '.join(names)} or {last}{form.also_asked}"
            sentences.append(f"{task.task} (“{titles[task.task]}”) asked for {answers}.")
        return sentences
    for question, scale in zip(rubric.questions, rubric.asked(), strict=True):
        if scale.name in plain:
            continue
        pools = f", only for {listed([display(pool) for pool in scale.pools])}" if scale.pools else ""
        need = "" if scale.required else " (optional)"
        sentences.append(f"{scale.name} (“{question.title['en']}”) asked for {scale.in_a_sentence()}{pools}{need}.")
    return sentences


def rated_by(material: CampaignMaterial) -> str:
    """Return the numbers of people and of simulated raters, in words."""
    made_up = material.counting["simulated"].astype(bool)
    people, simulated = (number_of_raters(material.counting.loc[mask, "rater_id"]) for mask in (~made_up, made_up))
    people_words = "people who are not named" if people is None else count(people, "person", "people")
    return listed([*([people_words] if people != 0 else []),
                   *([count(simulated, "simulated rater")] if simulated else [])])  # fmt: skip


def collected_from(material: CampaignMaterial) -> str:
    """Return the places where ratings were given; files are not named, since their names may be a rater's."""
    sources = {_source(source) for source in material.counting["source"].unique()}
    names = [name for source, name in SOURCE_NAMES.items() if source in sources]
    number = len(sources - {*SOURCE_NAMES})
    return listed([*names, *(["a file"] if number == 1 else [count(number, "file")] if number else [])])


def rated_here(material: CampaignMaterial) -> bool:
    """Return whether all counting ratings were given in a campaign of this study, and none came in a file."""
    sources = {_source(source) for source in material.counting["source"].unique()}
    return not material.imported and sources <= {*SOURCE_NAMES}


def _source(source: str) -> str:
    """Return a source as named in SOURCE_NAMES, or a file's name."""
    plain = source.removesuffix(SANDBOX)
    return plain.lower() if plain == REHEARSAL else plain


def languages_of(material: CampaignMaterial) -> tuple[list[str], list[str]]:
    """Return the codes of the originals' languages and of the outputs'."""
    originals, outputs = zip(*material.texts, strict=True) if material.texts else ((), ())
    return sorted(set(originals)), sorted(set(outputs))
