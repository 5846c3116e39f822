"""The methods section of a paper: sentences made from records, each true for this study or left out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from annotation.ratings.signs import controls_missed
from annotation.records import Look, Verdict
from annotation.report.material import CampaignMaterial
from annotation.report.wording import (
    LABELS,
    OF_TASKS,
    RANKINGS,
    SOURCE_NAMES,
    dated_words,
    listed,
    made_by,
    other_questions,
    several_rules,
    verb,
)
from annotation.rubric import CHECKS
from annotation.sampling.candidates import NEAR
from annotation.verdicts.looks import WHY_UNBIASED
from annotation.verdicts.preregistration import amendments, fixed_text
from annotation.verdicts.rules import unchecked
from annotation.verdicts.tables import display, unbiased_frame, wrong
from annotation.wordings import addressed_lines
from plumbline.languages import language_name
from plumbline.records import REHEARSAL, SANDBOX
from plumbline.statistics.estimates import RESAMPLES
from plumbline.study.campaign import AcceptanceSpec, QualitySpec
from plumbline.words import count


def controls_told(material: CampaignMaterial) -> str:
    """Return sentences on the controls and repeats, and on how many answers to them were wrong."""
    counts = Counter[str](pair.control for pair in material.controls)
    kinds = {
        "positive": ("positive control", "almost identical texts"),
        "negative": ("negative control", "unrelated texts"),
        "known": ("known item", "with right answers from a file"),
        "suggested": (
            material.study.called.item,
            "shown with judges' scores: the half of an experiment that counts in no verdict",
        ),
        "repeat": ("repeat", f"{material.study.called.item}s of the sample, shown a second time"),
    }
    checks = _checks(material)
    parts = [f"{count(counts[kind], name)} ({what})" for kind, (name, what) in kinds.items() if counts[kind]]
    if not parts:
        return f"There were no {checks} and no repeats."
    number = int((material.control_ratings["status"] == "submitted").sum())
    counted = verb(number, "rating", "was collected; it counts", "were collected; they count")
    text = f"The study also had {listed(parts)}. For these, {counted} in no result."
    controls = pd.DataFrame([pair.model_dump() for pair in material.controls])
    off, answered = controls_missed(
        material.control_ratings, controls, material.study.quality, material.rubric.expected
    )
    how = wrong(material.study.quality.within, {question.kind for question in material.rubric.asked()})
    missed = f" {off:,} of the {count(answered, 'rating')} of {checks} {'was' if off == 1 else 'were'} {how}."
    return text + (missed if answered else "")


def careless_told(material: CampaignMaterial) -> list[str]:
    """Return the answers to controls and repeats that are signs of carelessness."""
    within, kinds_asked = material.study.quality.within, {question.kind for question in material.rubric.asked()}
    kinds = {pair.control for pair in material.controls}
    checks = [_checks(material)] if kinds & set(CHECKS) else []
    repeats = ["repeats"] if "repeat" in kinds else []
    off = wrong(within, kinds_asked)
    if off.startswith("wrong"):  # a repeat has no right answer
        labels = [f"answers to {check} that are {off}" for check in checks]
        return labels + [f"answers to {repeat} that differ from the first answer" for repeat in repeats]
    return [f"answers to {' or '.join([*checks, *repeats])} that are {off}"] if checks or repeats else []


def _checks(material: CampaignMaterial) -> str:
    """Return the name of the checks on raters other than repeats."""
    return material.study.called.known


def looked_at(verdicts: Sequence[Verdict], rules: QualitySpec) -> str:
    """Return a sentence on verdicts that waited for a review of their raters, or that raters were not checked."""
    if note := unchecked(verdicts):
        return note
    return (
        f"A verdict stayed undecided until a person had reviewed its raters if more than {rules.failing:.0%} of its"
        f" ratings came from raters who missed more than {rules.attentive:.0%} of the controls, or if all its raters"
        " together did (one-sided binomial tests at 5%), or if raters told items apart no better than chance on every"
        " question whose ratings vary (F tests at 5%)."
    )


def items_sampled(material: CampaignMaterial) -> list[str]:
    """Return sentences on the items drawn, their source and the method."""
    counts, judging = Counter(pair.transformation for pair in material.pairs), material.study.judging
    if not counts:
        return []
    names = [display(name, pooled=False).lower() for name in counts]
    low, high = min(counts.values()), max(counts.values())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    texts, what = bool(judging.fields), judging.names.item
    spread = (
        f"{each} for each of {len(names)} {judging.groups} ({listed(names)})" if names[1:] else f"all of {names[0]}"
    )
    available = sum(supply.ok for supply in material.supply)
    languages = listed(sorted({language_name(code) for codes in material.texts for code in codes}))
    blind = [f"Raters were not told to which group a {what} belongs."] if texts and names[1:] else []
    beside = f"what is shown beside the {what}" if texts else "language of the second text"
    return [
        f"The sample has {count(len(material.pairs), what)}, drawn at random (seed {material.study.sample.seed}) from"
        f" {available:,}: {spread}, in {languages}.",
        *blind,
        f"Strata are nested: language, {beside}, and thirds by length; equally many {what}s are drawn from each"
        " stratum, or all of them if it has fewer.",
        _near_duplicates(material, f"No two {what}s of one group are near-duplicates"),
    ]


def _near_duplicates(material: CampaignMaterial, none: str) -> str:
    judging = material.study.judging
    if judging.takes_all:
        return f"{none}: of those that differ in at most {judging.spec.near:g} of their characters, one is kept."
    beside = ", unless different texts are shown beside them" if judging.beside else ""
    return f"{none} (Jaccard index of their words of at least {NEAR}){beside}."


ALIKE = "if most pairs have the same mean, they reach at least as far as Clopper and Pearson's bound on unseen pairs"
# The kinds of intervals of means, by `Summary.interval`.
INTERVALS = {
    "pairs": "t intervals over pairs, with raters taken as fixed (ratio estimator: Cochran, Sampling Techniques,"
    " 3rd ed., section 6.4)",
    "pairs_and_raters": "t intervals with both pairs and raters as samples (Cochran and Cox 1957, Experimental Designs,"
    " 2nd ed., section 4.14)",
    "anytime": "confidence sequences over the pairs in a random order fixed with the sample, up to the first pair that"
    " still waited for ratings (hedged capital: Waudby-Smith and Ramdas 2024, J. R. Stat. Soc. B 86, 1-27), which are"
    " valid at any number of looks",
    "blocks": "repeated intervals over the pairs of complete blocks, which are valid at all looks together: Student's t"
    " after Hall's transformation (Hall 1992, J. R. Stat. Soc. B 54, 221-228), at levels by alpha spending"
    " (Lan and DeMets 1983, Biometrika 70, 659-663)",
}
_SCOPES = {
    "transformation": "on the ratings of all languages together",
    "language": "separately for each language of the originals",
    "task": "separately for each language of the originals and each task",
}


def methods(material: CampaignMaterial) -> list[str]:
    """Return the methods section, one string for each paragraph."""
    parts = (sample_words, _raters, quality_words, acceptance_words, agreement_words, made_by)
    paragraphs = (" ".join(filter(None, part(material))) for part in parts)
    return [paragraph for paragraph in paragraphs if paragraph]


def _items_imported(material: CampaignMaterial) -> list[str]:
    """Return sentences on items that were imported with their ratings: nobody knows how they were chosen."""
    names = list(dict.fromkeys(display(pair.transformation, pooled=False) for pair in material.pairs))
    of_groups = f" of {len(names)} {material.study.judging.groups}" if names[1:] else ""
    return [
        f"The {count(len(material.pairs), material.study.called.item)}{of_groups} were imported with their ratings;"
        " how they were chosen is not known. Intervals and P treat them as a random sample.",
        _languages(material) if material.study.judging.transforms else "",
    ]


def sample_words(material: CampaignMaterial) -> list[str]:
    """Return sentences on the sample: its items, their source and the method."""
    if material.imported:
        return _items_imported(material)
    if not material.study.judging.transforms:
        return [*items_sampled(material), _waves(material), controls_told(material)]
    counts = Counter(pair.transformation for pair in material.pairs)
    if not counts:
        return []
    names = [display(name, pooled=False).lower() for name in counts]
    low, high = min(counts.values()), max(counts.values())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    spread = f"{each} for each of {len(names)} transformations ({listed(names)})" if names[1:] else f"all by {names[0]}"
    return [
        f"The sample has {count(len(material.pairs), 'pair')} of an original and its transformed text, drawn at random"
        f" (seed {material.study.sample.seed}): {spread}.",
        "Strata are nested: language, task type, data set, language of the output, and thirds of the originals by"
        " length; equally many pairs are drawn from each stratum, or all of them if it has fewer.",
        f"No two originals of a transformation are near-duplicates (Jaccard index of their words of at least {NEAR}).",
        _waves(material),
        _supply(material),
        _languages(material),
        controls_told(material),
    ]


def _waves(material: CampaignMaterial) -> str:
    item = material.study.called.item
    extensions = [f"{count(wave.pairs, item)} on {wave.at:%Y-%m-%d} ({wave.reason})" for wave in material.waves]
    extended = f"It was extended after raters had been asked, and earlier {item}s were kept"
    return f"{extended}: {listed(extensions)}." if extensions else ""


def _supply(material: CampaignMaterial) -> str:
    if not material.supply:
        return ""
    ok, failed = sum(supply.ok for supply in material.supply), sum(supply.failed for supply in material.supply)
    waiting = sum(supply.unanswered for supply in material.supply)
    later = f"; {verb(waiting, 'output', 'was', 'were')} still missing" if waiting else ""
    out = sum(out_of.kept_out for out_of in material.supply)
    every = ok + failed + out
    names = listed(sorted({flag for supply in material.supply for flag in supply.without}))
    kept_out = (
        f" {count(out, 'output')} ({out / every:.1%}) flagged {names} {'was' if out == 1 else 'were'} kept out; no"
        f" verdict covers {'it' if out == 1 else 'them'}."
        if out
        else ""
    )
    if not failed:
        only = "The only output so far" if waiting else "The only output"
        none = f"{only} did not fail" if every == 1 else f"None of the {count(every, 'output')} failed"
        return f"{none}{later}.{kept_out}"
    share = f"{failed:,} of {count(every, 'output')} ({failed / every:.1%})"
    return f"Failed outputs could not be drawn: {share}{later}.{kept_out}"


def _languages(material: CampaignMaterial) -> str:
    originals, outputs = (sorted(set(map(language_name, codes))) for codes in zip(*material.texts, strict=True))
    lines = [f"The originals are in {listed(originals)}, the transformed texts in {listed(outputs)}"]
    return " ".join(f"{line}." for line in lines + addressed_lines(material.study, material.asked, material.texts))


def _raters(material: CampaignMaterial) -> list[str]:
    rubric = material.asked
    plain = {
        question.name for question in rubric.asked() if question.kind == "rating" and question.scale == rubric.scale
    }
    questions = [
        f"{question.name} (“{question.title['en']}”)" for question in rubric.questions if question.name in plain
    ]
    item = material.study.called.item
    about = f"Raters were asked about each {item} by the rubric {rubric.name}."
    if questions:
        about = (
            f"Raters answered {count(len(questions), 'question')} about {material.study.called.an_item}"
            f"{', each' if questions[1:] else ''} on a"
            f" scale from {rubric.scale[0]} to {rubric.scale[-1]}, by the rubric {rubric.name}: {listed(questions)}."
        )
    marked = ["The rating page marked the words in which two texts of one language differ."]
    shown = marked if material.study.raters.difference else []
    about = " ".join([about, *other_questions(rubric, plain, material.tasks), *shown])
    rated, per_pair = material.counting, material.study.raters.per_pair
    if rated.empty:
        return [about, "There are no ratings that count."]
    dated = dated_words(rated)
    full = int((rated.groupby("pair_id")["rater_id"].nunique() >= per_pair).sum())
    first = "the first rater" if per_pair == 1 else f"the first {per_pair} raters"
    allowed = " among those who are not excluded" if len(material.excluded) else ""
    stay = " that were not withdrawn" if len(material.staying) < len(material.pairs) else ""
    late = f" ({verb(len(material.surplus), 'rating', 'came', 'came')} later)" if len(material.surplus) else ""
    return [
        about,
        f"{verb(len(rated), 'rating', 'counts', 'count')} (a rating is one rater's answer to one question about one"
        f" {item}). They were given by {rated_by(material)}, collected from {collected_from(material)} and {dated}.",
        f"For each {item}, the ratings of {first} to submit{allowed} count{late}; {full:,} of"
        f" {count(len(material.staying), item)}{stay} {'has' if len(material.staying) == 1 else 'have'} ratings"
        " from that many raters.",
    ]


def rated_by(material: CampaignMaterial) -> str:
    """Return the numbers of people and of simulated raters, in words."""
    made_up = material.counting.groupby("rater_id")["simulated"].any()
    simulated = int(made_up.sum())
    people = len(made_up) - simulated
    people_words = [count(people, "person", "people")] if people else []
    return listed([*people_words, *([count(simulated, "simulated rater")] if simulated else [])])


def collected_from(material: CampaignMaterial) -> str:
    """Return the places where ratings were given; files are not named, since their names may be a rater's."""
    sources = {_source(source) for source in material.counting["source"].unique()}
    names = [name for source, name in SOURCE_NAMES.items() if source in sources]
    files = len(sources - {*SOURCE_NAMES})
    return listed([*names, *(["a CSV file"] if files == 1 else [count(files, "CSV file")] if files else [])])


def rated_here(material: CampaignMaterial) -> bool:
    """Return whether all counting ratings were given in a campaign of this study, and none came in a file."""
    return not material.imported and {_source(source) for source in material.counting["source"].unique()} <= {
        *SOURCE_NAMES
    }


def _source(source: str) -> str:
    """Return a source as named in SOURCE_NAMES, or a file's name."""
    plain = source.removesuffix(SANDBOX)
    return plain.lower() if plain == REHEARSAL else plain


def quality_words(material: CampaignMaterial) -> list[str]:
    """Return sentences on the signs of careless answers, their numbers, and the excluded raters."""
    rules, item = material.study.quality, material.study.called.item
    same = f"the same answer on at least {rules.same_answer:.0%} of {item}s"
    apart = (
        f"ratings that are on average at least {count(rules.apart, 'point')} above or below"
        f" the other raters' mean of the same {item}s, or have a rank correlation below {rules.least_rho:g} with these"
        " means"
    )
    signs = [
        *careless_told(material),
        *([same] if material.questions else []),  # only for questions with a scale
        f"more than {rules.too_fast:.0%} of {item}s answered faster than {rules.words_a_second:g} words a second",
        *([apart] if material.questions else []),
        "and, only as hints, dashes, stock phrases and long comments",
    ]
    raters = len({sign.rater_id for sign in material.signs})
    where = f" in the answers of {count(raters, 'rater')}" if raters else ""
    number_of_signs = f"{verb(len(material.signs), 'sign', 'was', 'were')} found{where}."
    return [
        f"Answers were searched for signs of carelessness: {'; '.join(signs)}"
        f" (uniform, fast or deviating answers count as signs only from {rules.least_answers} {item}s of a rater on).",
        f"{number_of_signs} A sign excludes nobody; people decide.",
        _exclusions(material),
        *_withdrawals(material),
    ]


def _exclusions(material: CampaignMaterial) -> str:
    last = {decision.rater_id: decision.exclude for decision in material.decisions}
    raters, ratings = sum(last.values()), len(material.excluded)
    if not raters:
        return "Nobody was excluded."
    others = [verdict for verdict in material.verdicts if verdict.decision_with_excluded not in (None, verdict.alone)]
    share = f"{len(others)} of {count(len(material.verdicts), 'verdict')}" if others else "no verdict"
    counted = f"; had {'it' if ratings == 1 else 'they'} counted, {share} would be different" if ratings else ""
    return f"{verb(raters, 'rater', 'was', 'were')} excluded, with {count(ratings, 'rating')} of the sample{counted}."


def _withdrawals(material: CampaignMaterial) -> list[str]:
    """Return sentences on the pairs that people withdrew; none if none was withdrawn."""
    out = len(material.pairs) - len(material.staying)
    if not out:
        return []
    had = "it" if material.late == 1 else "they"
    late = f", {material.late:,} of them after {had} had been rated" if material.late else ""
    late = ", after it had been rated" if material.late and out == 1 else late
    others = [verdict for verdict in material.verdicts if verdict.decision_with_withdrawn not in (None, verdict.alone)]
    share = f"{len(others)} of {count(len(material.verdicts), 'verdict')}" if others else "no verdict"
    ratings = count(len(material.withdrawn), "rating")
    they = "it" if out == 1 else "they"
    stayed = f" Had {they} stayed, with {ratings}, {share} would be different." if len(material.withdrawn) else ""
    return [f"{verb(out, material.study.called.item, 'was', 'were')} withdrawn from the sample{late}.{stayed}"]


def acceptance_words(material: CampaignMaterial) -> list[str]:
    """Return sentences on the verdicts' rule and its intervals."""
    rule = material.study.acceptance
    several = len(material.questions) > 1
    every, some = ("on every question", " on any") if several else ("", "")
    reach = f"reaches {rule.threshold:g} {every}".rstrip()
    if rule.rules:
        decides = several_rules(rule)
    elif rule.rule == "mean":
        decides = f"accepted if its mean rating {reach}, and rejected otherwise"
    else:
        decides = (
            f"accepted if the lower end of the 95% interval of its mean rating {reach}, rejected if the upper end"
            f" is below {rule.threshold:g}{some}, and undecided otherwise"
        )
    pooled = {pair.transformation for pair in material.pairs if pair.pool == "translation"}
    shared = " Translation and cross-translation are judged on their pooled ratings." if len(pooled) > 1 else ""
    looks = {
        "fixed": "The rule allows one look, when all ratings are in.",
        "anytime": "The rule allows a look after every rating, and a stop as soon as it has decided.",
        "blocks": _blocks(material),
    }
    judged, item = material.study.called
    scope = _SCOPES[rule.scope].replace("originals", "originals" if material.study.judging.transforms else f"{item}s")
    by_interval = rule.rule == "lower_bound" or any(criterion.by == "interval" for criterion in rule.rules)
    shown = "" if by_interval else " They are shown but decide nothing."
    return [
        f"A {judged} is judged {scope}: it is {decides}.{shared}",
        _minimums(material),
        looked_at(material.verdicts, material.study.quality),
        _intervals(rule, shown, item),
        looks[rule.stop],
        _looks(material),
        _fixed(material),
    ]


_SPENDING = {
    "pocock": "alpha log(1 + (e - 1) t), like Pocock's",
    "quadratic": "alpha t^2 (Kim and DeMets 1987, Biometrika 74, 149-154)",
    "obrien_fleming": "2 - 2 Phi(z / sqrt(t)), like O'Brien and Fleming's",
}


def _blocks(material: CampaignMaterial) -> str:
    """Return the plan of looks after blocks and its effect on means; empty without blocks."""
    study = material.study
    if not study.raters.blocks:
        return ""
    item, ends = study.called.item, ", ".join(map(str, study.raters.blocks))
    text = (
        f"Raters were offered the {item}s of each verdict in blocks, in a random order fixed with the sample. The rule"
        f" planned a look after {ends} {item}s (or after the last, if there are fewer), as soon as all of them were"
        f" completed; no further {item} was offered once a look had decided. The error of 2.5% on each side is spent"
        f" over the looks by {_SPENDING[study.acceptance.spending]}, where t is the share of the {item}s."
    )
    if len(unbiased_frame(material.verdicts)):
        text += f" {WHY_UNBIASED} (Tsiatis, Rosner and Mehta 1984, Biometrics 40, 797-803)."
    return text


def _intervals(rule: AcceptanceSpec, shown: str, item: str) -> str:
    """Return a sentence on the judged statistics' intervals; `LABELS` cites the source for shares."""
    statistics = {criterion.statistic for criterion in rule.rules} or {"mean"}
    if rule.stop != "fixed":
        judged = " and ".join(f"{name}s" for name in ("mean", "share") if name in statistics)
        return f"The intervals of the judged {judged} are {INTERVALS[rule.stop]}.{shown}"
    parts = []
    if statistics != {"share"}:
        parts.append(f"The intervals of the judged means are {INTERVALS[rule.interval]}; {ALIKE}.")
    if "share" in statistics:
        over = f"{item}s, with raters taken as fixed" if rule.interval == "pairs" else f"both {item}s and raters"
        parts.append(f"The intervals of the judged shares are Wilson's, with their variance over {over}.")
    return " ".join(parts) + shown


def _looks(material: CampaignMaterial) -> str:
    """Return the number of times that verdicts were reached, and whether ratings or rules changed in between."""
    if len(material.looks) < 2:
        return ""
    first, last = material.looks[0], material.looks[-1]
    times = f"Verdicts were reached {len(material.looks)} times"
    if not any(itertools.starmap(_other_basis, itertools.pairwise(material.looks))):
        return f"{times}, on the same ratings by the same rules."
    text = (
        f"{times}, on different ratings or by different rules: first on"
        f" {count(first.n_ratings, 'rating')} ({first.at:%Y-%m-%d}), last on {last.n_ratings:,} ({last.at:%Y-%m-%d})."
    )
    several = material.study.acceptance.stop != "fixed"
    return text if several else f"{text} The error rates of a rule for one look do not apply to several looks."


def _other_basis(before: Look, after: Look) -> bool:
    """Return whether two looks were at other ratings, pairs, rules or questions."""
    names = ("ratings_sha256", "rule_id", "pairs_sha256", "rubric_hash")
    return any(getattr(before, name) != getattr(after, name) for name in names)


def _minimums(material: CampaignMaterial) -> str:
    rule = material.study.acceptance
    on_any = " on any question" if len(material.questions) > 1 else ""
    item = material.study.called.item
    few = [f"fewer than {count(rule.min_pairs, item)} rated by at least {count(rule.min_raters, 'rater')}"]
    if rule.min_ac2 is not None:
        rated = set(material.questions)
        judged = {criterion.question for criterion in rule.rules} or rated
        names = [*(["AC2"] if judged & rated else []), *(["AC1"] if judged - rated else [])]
        few.append(f"an {' or '.join(names)} below {rule.min_ac2:g}{on_any}")
    left_out = f" {item.capitalize()}s with fewer raters do not count." if rule.min_raters > 1 else ""
    return f"A verdict with {' or '.join(few)} is undecided.{left_out}"


def _fixed(material: CampaignMaterial) -> str:
    if not material.rules:
        return ""
    number = len(amendments(material.rules, material.first))
    amended = (
        f" The rules were amended {'once' if number == 1 else f'{number} times'} after the first rating."
        if number
        else ""
    )
    return fixed_text(material.rules, material.first) + amended


def agreement_words(material: CampaignMaterial) -> list[str]:
    """Return sentences on the measures of agreement; none without ratings."""
    if not material.groups or material.study.judging.does_tasks:
        return [OF_TASKS] if material.groups else []
    kinds = {summary.kind for group in material.groups for summary in group.questions if summary.coefficients}
    labels = [*([LABELS] if kinds - {"ranking"} else []), *([RANKINGS] if "ranking" in kinds else [])]
    if not material.questions:
        return labels
    return [
        *labels,
        "Agreement is reported as Gwet's AC2 with ordinal weights (Gwet 2008, Br. J. Math. Stat. Psychol. 61,"
        " 29-48), Krippendorff's alpha with the ordinal metric (Krippendorff 2019, Content Analysis, 4th ed.,"
        " chapter 12), the mean of Cohen's kappas of every two raters with squared weights (Light 1971, Psychological"
        " Bulletin 76, 365-377), and the share of equal ratings.",
        "95% intervals are over pairs: Gwet's (2014) for AC2, a jackknife for kappa, and BCa bootstraps with"
        f" {RESAMPLES:,} resamples for the other two.",
    ]
