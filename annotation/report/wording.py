"""Questions and rules of all kinds in the words of the methods section."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from annotation.human.records import HumanTask
from annotation.ratings.ratings import untimed
from annotation.report.material import CampaignMaterial
from annotation.rubric import Rubric
from annotation.verdicts.by_task import answers_of
from annotation.verdicts.tables import display
from generation.jobs import generator_hash
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.transformations import EIGHT
from plumbline.words import count

# Sentences on texts that no generator made.
_FILE = "The outputs of {lower} come from the file {model} ({digest})."
_MADE_BY = {
    "function": "The outputs of {lower} were made by the function {model} (its hash begins with {digest}).",
    "texts": "The texts of {lower} come from the file {model}.",
    "human": "The items of {name} are from the data set {model} (revision, or hash of its file: {digest}).",
    "items": "The items of {lower} are those of the data set, whose hash begins with {digest}.",
}

# The places where ratings are given, by their source in records.
SOURCE_NAMES = {
    "argilla": "Argilla",
    "mturk": "Amazon Mechanical Turk",
    "prolific": "Prolific",
    "link": "a platform that sends people by link",
    "rehearsal": "REHEARSAL, a made-up crowd",
    "simulated": "a simulation",
}


def listed(things: Sequence[str]) -> str:
    """Join names as `a, b and c`."""
    return " and ".join(filter(None, [", ".join(things[:-1]), *things[-1:]]))


def made_by(material: CampaignMaterial) -> list[str]:
    """Return sentences on the generator and prompts of the texts, on other makers, and on departures from HTEB."""
    generated = [verdict for verdict in material.verdicts if verdict.prompt_hash]
    makers = {(verdict.model, verdict.generator_hash) for verdict in generated}
    if not makers:
        return _others(material)
    prompts = {display(verdict.transformation, pooled=False).lower(): verdict.prompt_hash[:8] for verdict in generated}
    hashes = listed([f"{name} {digest}" for name, digest in prompts.items()])
    spec = material.study.generator
    generator = listed(sorted(model for model, _ in makers))
    if makers == {(spec.model, generator_hash(spec))}:  # else the study now names another generator
        sampling = spec.sampling
        how = f" (temperature {sampling.temperature:g}, top_p {sampling.top_p:g}, up to {sampling.max_tokens:,} tokens)"
        if spec.kind == "recorded":  # the study does not know how these were sampled
            how = "; its outputs were recorded earlier"
        generator += (f", revision {spec.revision}" if spec.revision else "") + how
    return [f"The generator was {generator}.", f"The hashes of the prompts begin with: {hashes}.", *_others(material)]


def _others(material: CampaignMaterial) -> list[str]:
    """Return sentences on texts without a generator, and on transformations that are not HTEB's."""
    sentences = [
        _MADE_BY.get(kind, _FILE).format(
            name=display(name, pooled=False), lower=display(name, pooled=False).lower(), model=model, digest=digest
        )
        for name, model, kind, digest in dict.fromkeys(
            (verdict.transformation, verdict.model, verdict.generator_kind, verdict.generator_hash[:8])
            for verdict in material.verdicts
            if not verdict.prompt_hash
        )
    ]
    kinds = material.study.transforming
    names = dict.fromkeys(verdict.transformation for verdict in material.verdicts)
    new = [name for name in names if name in kinds and name not in EIGHT]
    if new:
        axes = [f"{display(name, pooled=False).lower()} (axis {kinds[name].axis})" for name in new]
        sentences.append(f"This study adds {listed(axes)} to HTEB's transformations.")
    changed = [display(name, pooled=False) for name in new if kinds[name].meaning == "changed"]
    if changed:
        sentences.append(f"{listed(changed)} {'is' if len(changed) == 1 else 'are'} meant to change the meaning.")
    return sentences


_SHARES = (
    "intervals of labels' shares are Wilson's, for the effective number of answers (Franco et al. 2019, J. Survey Stat."
    " Methodol. 7, 334-364)."
)
LABELS = (
    "Agreement on labels is Gwet's AC1 (Gwet 2008, Br. J. Math. Stat. Psychol. 61, 29-48), Fleiss' kappa (Fleiss 1971,"
    " Psychological Bulletin 76, 378-382) and Krippendorff's alpha with the nominal metric; for several labels,"
    f" alpha with MASI's distance (Passonneau 2006, LREC); {_SHARES}"
)
OF_TASKS = (
    "Raters' agreement and accuracy on tasks are in the report on people and models (plumbline human-report);"
    f" {_SHARES}"
)

RANKINGS = (
    "Agreement on rankings is the mean over pairs of Kendall's tau-b of every two raters of a pair (Kendall 1945,"
    " Biometrika 33, 239-251; Ehrenberg 1952, Biometrika 39, 82-87), 0 by chance, and of Kendall's W corrected for ties"
    " (Kendall and Babington Smith 1939, Ann. Math. Stat. 10, 275-287), which by chance is 1 over the number of raters;"
    " intervals are t intervals over pairs. Equal labels share the mean of their ranks."
)


def verb(number: int, thing: str, single: str, several: str) -> str:
    """Return a number with its noun and verb: `1 rater was`, `2 raters were`."""
    return f"{count(number, thing)} {single if number == 1 else several}"


def other_questions(rubric: Rubric, plain: Collection[str], tasks: Sequence[HumanTask] = ()) -> list[str]:
    """Return a sentence for each question off the rubric's scale, or for each of people's `tasks`."""
    if tasks:
        return [_asked(task, rubric) for task in tasks]
    sentences = []
    for question, scale in zip(rubric.questions, rubric.asked(), strict=True):
        if scale.name in plain:
            continue
        kinds = {"label": "one of", "multi_label": "any of", "ranking": "the order of"}
        what = f"{kinds[scale.kind]} {', '.join(scale.labels)}" if scale.labels else "a text"
        what = f"a rating from {scale.scale[0]} to {scale.scale[-1]}" if scale.kind == "rating" else what
        where = f", only for {listed([display(pool) for pool in scale.pools])}" if scale.pools else ""
        need = "" if scale.required else " (optional)"
        sentences.append(f"{scale.name} (“{question.title['en']}”) asked for {what}{where}{need}.")
    return sentences


def _asked(task: HumanTask, rubric: Rubric) -> str:
    """Return a sentence on a task's question; candidates, or their order, are mentioned once."""
    title = next(question.title["en"] for question in rubric.questions if question.name == task.task)
    *names, last = answers_of(task)
    more = ", several of which may be chosen" if task.asked == "labels" else ""
    more = ", for each candidate" if task.asked in ("graded", "binary") else more
    more = f", and for an order of {count(task.candidates, 'candidate')}" if task.asked == "ranked" else more
    return f"{task.task} (“{title}”) asked for {', '.join(names)} or {last}{more}."


def several_rules(rule: AcceptanceSpec) -> str:
    """Return a study's own rules in words."""
    parts = []
    for criterion in rule.rules:
        end = (
            "lower end of the 95% interval of the "
            if criterion.at_least is not None
            else "upper end of the 95% interval of the "
        )
        of_label = f" of {criterion.label}" if criterion.label else ""
        what = f"{end if criterion.by == 'interval' else ''}{criterion.statistic}{of_label}"
        where = f" ({listed([display(pool) for pool in criterion.pools])})" if criterion.pools else ""
        if instead := [] if criterion.pools else _judged_otherwise(criterion.question, rule):
            where = f" (except for {listed([display(pool) for pool in instead])})"
        limit = f"at {'least' if criterion.at_least is not None else 'most'} {criterion.limit:g}"
        parts.append(f"{what} of {criterion.question} {limit}{where}")
    used = {criterion.by for criterion in rule.rules}
    favourable = "even the more favourable end of an interval"
    missed = f"a value, or {favourable}," if "value" in used else favourable
    last = (
        f"rejected if {missed} misses its limit, and undecided otherwise"
        if "interval" in used
        else "rejected otherwise"
    )
    which = "all of these hold" if rule.combine == "all" else "any of these holds"
    return f"accepted if {which}: {'; '.join(parts)}; {last}"


def _judged_otherwise(question: str, rule: AcceptanceSpec) -> list[str]:
    """Return the pools with rules of their own about a question, which replace the general ones."""
    return sorted({pool for criterion in rule.rules if criterion.question == question for pool in criterion.pools})


def dated_words(rated: pd.DataFrame) -> str:
    """Return the days between which ratings were given; files without times are set aside."""
    unknown = untimed(rated)
    if unknown.all():
        return "of unknown time"
    days = [f"{rated.loc[~unknown, 'submitted_at'].agg(end):%Y-%m-%d}" for end in ("min", "max")]
    dated = f"dated {days[0]}" if days[0] == days[1] else f"dated {days[0]} to {days[1]}"
    return f"{dated} (not counting ratings from files without times)" if unknown.any() else dated
