"""Tables and cards for people, from records: HTEB's Table 2, agreement and the verdicts. Nothing is computed here."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.campaign.rubric import Rubric
from annotation.questions.question import KINDS, Question
from annotation.questions.rating import COEFFICIENTS
from annotation.questions.summary import Chance, Summary
from annotation.records import P_IS, Group, Verdict
from annotation.verdicts.looks import WHY_UNBIASED, decided_after
from annotation.verdicts.rules import briefly, in_own_words, in_words, late_lines, unchecked
from plumbline.cli import columns
from plumbline.exhibits.page import Card, CardMean
from plumbline.exhibits.table import Exhibit, interval, number
from plumbline.languages import language_name
from plumbline.statistics.agreement import band
from plumbline.statistics.estimates import Estimate
from plumbline.study.campaign import QualityLimits
from plumbline.study.subject import KNOWN, PAIRS, ItemNames
from plumbline.words import count

CARDS = 24  # as many a reader looks at; of more verdicts there is a figure
_LISTED = 5  # languages; more are counted
AT_LEAST = "AC2 and alpha at least"
SIMULATED = "SIMULATED RATINGS, A REHEARSAL: made up to show that the flow works; they measure nothing."


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return the verdicts as a frame: a row for each transformation and language (and task, with that scope)."""
    rows = []
    for verdict in verdicts:
        row: dict[str, object] = {
            "transformation": verdict.transformation,
            "language": verdict.language,
            "task_type": verdict.task_type,
            "decision": verdict.decision,
            **({"decision_unchecked": verdict.review.unchecked} if verdict.review.unchecked else {}),
            "reasons": "; ".join((*verdict.reasons, *pooled(verdict), *_blocks(verdict))),
            "probability": verdict.probability,
            "n_pairs": verdict.n_pairs,
            "n_ratings": verdict.n_ratings,
            "failed_share": verdict.failed_share,
            "without": ", ".join(verdict.without),
            "kept_out_share": verdict.supply.kept_out_share if verdict.supply else 0.0,
            "n_excluded": verdict.review.n_excluded,
            "decision_with_excluded": verdict.review.with_excluded or verdict.by_rule,
            "n_withdrawn": verdict.review.n_withdrawn,
            "decision_with_withdrawn": verdict.review.with_withdrawn or verdict.by_rule,
        }
        for summary in rated(verdict.questions):
            row |= _cells(summary)
        for summary in verdict.questions:
            for label, statistic, estimate in label_numbers(summary):
                row |= _ends(f"{summary.question}_{label}_{statistic}", estimate)
        row |= {f"P: {rule}": rule_chance.probability for rule, rule_chance in rule_chances(verdict)}
        row |= {"simulated": verdict.simulated, "rules_fixed": verdict.rules_fixed}
        rows.append(row)
    return pd.DataFrame(rows)


def rule_chances(verdict: Verdict) -> list[tuple[str, Chance]]:
    """Return each rule in words with its P."""
    return list(zip(map(in_words, verdict.result.rules), verdict.result.probabilities, strict=True))


def rated(summaries: Iterable[Summary]) -> list[Summary]:
    """Return the summaries of questions with a scale.

    Only these have means, AC2 and kappa.
    """
    return [summary for summary in summaries if KINDS[summary.kind].has_points]


def label_numbers(summary: Summary) -> Iterator[tuple[str, str, Estimate]]:
    """Yield (label, name, number): each label's share (in rankings: of first ranks), then its mean rank."""
    for share in summary.shares:
        yield share.label, KINDS[summary.kind].share_column, share.share
    for rank in summary.ranks:
        yield rank.label, "rank", rank.rank


def label_table(groups: Sequence[Group]) -> pd.DataFrame:
    """Return shares and ranks of labels, and agreement on them: a row for each group, question, label and number.

    Columns: level, name, question, kind, label (empty: all), number (share; ranked first, mean rank; or the
    coefficient), value, low, high, reason, n_ratings. Texts have one row, which says that they are not compared.
    """
    columns_ = ["level", "name", "question", "kind", "label", "number", "value", "low", "high", "reason", "n_ratings"]
    titles = {"first": "ranked first", "rank": "mean rank"}
    rows = [
        [group.level, group.name, summary.question, summary.kind, label, statistic, estimate.value, estimate.low,
         estimate.high, estimate.reason, summary.n_ratings]
        for group in groups
        for summary in group.questions
        if not KINDS[summary.kind].has_points
        for label, statistic, estimate in [
            *((label, titles.get(name, name), estimate) for label, name, estimate in label_numbers(summary)),
            *((part.label, part.name, part.estimate) for part in summary.coefficients),
            *([] if summary.shares else [("", "agreement", summary.ac2)]),
        ]
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns_)


def _cells(summary: Summary) -> dict[str, object]:
    """Return a question's mean and agreement with intervals, in columns that begin with its name."""
    mean, name = _ends(summary.question, summary.judged()), summary.question
    cells = {f"{name}_mean": mean.pop(name), **mean}
    for coefficient in COEFFICIENTS:
        cells |= _ends(f"{name}_{coefficient}", getattr(summary, coefficient))
    return cells | {f"{name}_probability": summary.probability}


def _ends(column: str, estimate: Estimate) -> dict[str, object]:
    """Return a number and the ends of its interval, in columns that begin with this name."""
    return {column: estimate.value, f"{column}_low": estimate.low, f"{column}_high": estimate.high}


def _levels(groups: Iterable[Group], called: ItemNames) -> list[tuple[str, Group]]:
    """Return groups with their levels for people. Only transformations have axes; elsewhere one would repeat all."""
    if called == PAIRS:
        return [(group.level, group) for group in groups]
    return [({"pool": called.judged}.get(group.level, group.level), group) for group in groups if group.level != "axis"]


def table_two_exhibit(groups: Sequence[Group], called: ItemNames = PAIRS) -> Exhibit:
    """Return HTEB's Table 2: a row for each axis, pool and language, and one for all."""
    full, rows = [], []
    for level, group in _levels(groups, called):
        cells: dict[str, object] = {"level": group.level, "name": group.name, "axis": group.axis}
        row = {"Of": level, "Name": group_name(group)}
        for summary in rated(group.questions):
            question = summary.question.capitalize()
            row[f"{question} mean ± SD"] = f"{number(summary.mean)} ± {number(summary.sd)}"
            row[f"{question} AC2"] = number(summary.ac2.value)
            row[f"{question} n"] = f"{summary.n_ratings:,}"
            numbers = {name: getattr(summary, name) for name in ("sd", "n_pairs", "n_raters", "n_ratings")}
            cells |= _cells(summary) | {f"{summary.question}_{name}": value for name, value in numbers.items()}
        full.append(cells | {"simulated": group.simulated})
        rows.append(row)
    caption = f"Ratings and agreement{' (HTEB, Table 2)' if called == PAIRS else ''}; n counts single ratings"
    return Exhibit("table_2", caption, pd.DataFrame(full), pd.DataFrame(rows).fillna("–"))


def agreement_exhibit(groups: Sequence[Group], called: ItemNames = PAIRS) -> Exhibit:
    """Return every coefficient of agreement with its interval; notes say why numbers are missing."""
    full, rows, shown = [], [], _levels(groups, called)
    missing: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for level, group in shown:
        for summary in rated(group.questions):
            cells: dict[str, object] = {"level": group.level, "name": group.name, "question": summary.question}
            row = {"Of": level, "Name": group_name(group), "Question": summary.question}
            reasons = defaultdict[str, list[str]](list)
            for name, title in COEFFICIENTS.items():
                estimate: Estimate = getattr(summary, name)
                cells |= _ends(name, estimate) | {f"{name}_reason": estimate.reason}
                row[title[0].upper() + title[1:]] = with_interval(estimate)
                reasons[estimate.reason].append(title)
            for reason, titles in reasons.items():
                missing.setdefault((reason, summary.question, tuple(titles)), []).append(group_name(group))
            full.append(cells)
            rows.append({**row, AT_LEAST: at_least(summary)})
    notes = tuple(
        f"{question}, {', '.join(titles)}, {'all rows' if len(names) == len(shown) else ', '.join(names)}: {reason}"
        for (reason, question, titles), names in missing.items()
        if reason
    )
    caption = f"Agreement with 95% intervals over {called.item}s"
    return Exhibit("agreement", caption, pd.DataFrame(full), pd.DataFrame(rows), notes)


def labels_exhibit(groups: Sequence[Group], called: ItemNames = PAIRS) -> Exhibit:
    """Return labels' shares, ranks and agreement; texts are only counted. Empty if all questions have scales."""
    levels = {group.level: level for level, group in _levels(groups, called)}
    full = label_table([group for group in groups if group.level in levels])
    printed = pd.DataFrame(
        {
            "Of": levels[row["level"]],
            "Name": language_name(row["name"]) if row["level"] == "language" else display(row["name"]),
            "Question": row["question"],
            "Label": row["label"] or "all",
            "Number": row["number"],
            "Value [95%]": interval_of(row),
            "n": f"{row['n_ratings']:,}",
            "Why missing": row["reason"],
        }
        for row in full.to_dict("records")
    )
    over = f"with 95% intervals over {called.item}s; n counts answers"
    caption = f"What people answered: shares, ranks and agreement, {over}"
    return Exhibit("labels", caption, full, printed)


def agreement_text(groups: Sequence[Group], called: ItemNames = PAIRS) -> str:
    """Return Table 2 and agreement for a terminal; of labels only what is over all, and of each pool."""
    if not groups:
        return "no ratings that count"
    rates = any(rated(group.questions) for group in groups)
    tables = [table_two_exhibit(groups, called), agreement_exhibit(groups, called)] if rates else []
    labels = labels_exhibit([group for group in groups if group.level in ("pool", "overall")], called)
    texts = [table.text() for table in (*tables, *([labels] if len(labels.frame) else []))]
    return "\n\n".join([*texts, *([SIMULATED] if any(group.simulated for group in groups) else [])])


def at_least(summary: Summary) -> str:
    """Return the word for the agreement that AC2 and alpha both show.

    It is the band of the lower of their intervals' lower ends.

    AC2 alone is high if nearly all ratings are the same, even careless ones. A dash if either has no interval.
    """
    ends = (summary.ac2.low, summary.alpha.low)
    return band(math.nan if any(map(math.isnan, ends)) else min(ends))


def group_name(group: Group) -> str:
    """Return the name of a row of Table 2."""
    return language_name(group.name) if group.level == "language" else display(group.name)


def verdicts_exhibit(verdicts: Sequence[Verdict], called: ItemNames = PAIRS, *, labels: bool = True) -> Exhibit:
    """Return a row for each verdict: the decision, how close it was, and the reasons.

    `called` are the study's words for its items; `labels` is whether the numbers of labels are printed.
    """
    scope = "Language, task" if any(verdict.task_type for verdict in verdicts) else "Language"
    shared = {verdict.unit: languages for languages, group in _by_languages(verdicts) for verdict in group}
    rows = []
    for verdict in verdicts:
        row = {called.judged.capitalize(): display(verdict.transformation, pooled=False)}
        row |= {scope: f"{verdict.language} {verdict.task_type}".strip(), "Decision": verdict.decision}
        for summary in rated(verdict.questions):
            row[f"{summary.question.capitalize()} [95%]"] = with_interval(summary.judged())
        for summary in verdict.questions if labels else ():
            for label, name, estimate in label_numbers(summary):
                of_share = "" if name == "share" else f", {name}"
                row[f"{summary.question.capitalize()}: {label}{of_share}"] = with_interval(estimate)
        row[f"{called.item}s".capitalize()] = f"{verdict.n_pairs:,}"
        row["P"] = chance(verdict.probability)
        if len(verdict.result.rules) > 1:
            for rule, by_rule in zip(verdict.result.rules, verdict.result.probabilities, strict=True):
                row[f"P: {briefly(rule)}"] = chance(by_rule.probability)
        row["Failed"] = "–" if math.isnan(verdict.failed_share) else f"{verdict.failed_share:.1%}"
        reasons = [*in_own_words(verdict.reasons, called), *pooled(verdict)]
        if shared[verdict.unit] != verdict.language:
            reasons.append(f"on the ratings of {shared[verdict.unit]} together")
        if verdict.waves != (1,):
            reasons.append(f"rests on waves {' and '.join(map(str, verdict.waves))} of the sample")
        row["Reasons"] = "; ".join([*reasons, *_blocks(verdict), *_left_out(verdict, called)])
        rows.append(row)
    return Exhibit("verdicts", "Verdicts", verdict_table(verdicts), pd.DataFrame(rows).fillna("–"))


def verdict_text(verdicts: Sequence[Verdict], called: ItemNames = PAIRS) -> str:
    """Return the verdicts with their reasons for a terminal, one a line, in the study's words for its items."""
    if not verdicts:
        return f"no {called.item}s"
    printed = verdicts_exhibit(verdicts, called).printed
    table = printed[[*printed.columns[:3], f"{called.item}s".capitalize(), "P", "Failed", "Reasons"]]
    simulated = [SIMULATED] if any(verdict.simulated for verdict in verdicts) else []
    lines = [columns(list(table.columns), table.to_numpy().tolist()), P_IS, unchecked(verdicts), *simulated]
    return "\n".join([*filter(None, lines), *late_lines(verdicts)])


def looks_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return the results of looks after blocks: a row for each verdict, rule and look.

    Columns: verdict (in words, with its decision), transformation, language, task_type, decision, question, label,
    look, pairs, mean, low, high (ends of the interval that is valid at all looks together), limit.
    """
    names = ["transformation", "language", "task_type", "decision"]
    rows = [
        {
            "verdict": f"{scoped(*(getattr(verdict, name) for name in names[:3]))}: {verdict.decision}",
            **{name: getattr(verdict, name) for name in names},
            **{name: getattr(look, name) for name in _OF_LOOKS},
        }
        for verdict in verdicts
        for look in verdict.result.looks
    ]
    return pd.DataFrame(rows, columns=["verdict", *names, *_OF_LOOKS])


_OF_LOOKS = ("question", "label", "look", "pairs", "mean", "low", "high", "limit")


def looks_exhibit(frame: pd.DataFrame, called: ItemNames = PAIRS) -> Exhibit:
    """Return looks after blocks (`looks_frame`): a row for each verdict, rule and look."""
    printed = pd.DataFrame(
        {
            "Verdict": row["verdict"],
            "Question": f"{row['question']} {row['label']}".strip(),
            "Look": str(row["look"]),
            f"{called.item}s".capitalize(): str(row["pairs"]),
            "Mean [interval valid at all looks]": interval_of(row),
            "Limit": f"{row['limit']:g}",
        }
        for row in frame.to_dict("records")
    )
    return Exhibit("looks_after_blocks", "Looks after blocks", frame, printed)


def unbiased_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return means of verdicts that stopped at a look, plain and unbiased: a row for each question or label.

    Columns: transformation, language, task_type, question (of a label's share: the label in it), n_pairs, mean,
    unbiased, low, high, reason (why there is no unbiased mean).
    """
    rows = [
        {
            **{name: getattr(verdict, name) for name in ("transformation", "language", "task_type")},
            "question": question,
            "n_pairs": summary.n_pairs,
            "mean": plain,
            "unbiased": estimate.value,
            **{name: getattr(estimate, name) for name in ("low", "high", "reason")},
        }
        for verdict in verdicts
        for summary in verdict.questions
        for question, plain, estimate in [
            (summary.question, summary.mean, summary.unbiased),
            *((f"{share.label} in {summary.question}", share.share.value, share.unbiased) for share in summary.shares),
        ]
        if estimate is not None
    ]
    return pd.DataFrame(rows)


def unbiased_exhibit(verdicts: Iterable[Verdict], called: ItemNames = PAIRS) -> Exhibit:
    """Return the means of verdicts that stopped at a look, plain and without the bias of stopping."""
    frame = unbiased_frame(verdicts)
    printed = pd.DataFrame(
        {
            called.judged.capitalize(): scoped(row["transformation"], row["language"], row["task_type"]),
            "Question": row["question"],
            f"{called.item}s".capitalize(): str(row["n_pairs"]),
            "Plain mean": number(row["mean"]),
            "Median-unbiased mean [95%]": row["reason"] or interval(row["unbiased"], row["low"], row["high"]),
        }
        for row in frame.to_dict("records")
    )
    return Exhibit("unbiased_means", "Means without the bias of stopping early", frame, printed, (f"{WHY_UNBIASED}.",))


def pooled(verdict: Verdict) -> list[str]:
    """Return a line on the pool whose pairs a verdict rests on; none if all are of its own transformation."""
    parts = [f"{display(name, pooled=False).lower()} {pairs}" for name, pairs in verdict.pooled.items()]
    return [f"on pooled ratings ({', '.join(parts)})"] if parts else []


def kept_out(verdict: Verdict) -> list[str]:
    """Return a line on outputs that the verdict does not cover; none if it covers all."""
    if not (verdict.supply and verdict.without):
        return []
    names, share = ", ".join(verdict.without), f"{verdict.supply.kept_out_share:.1%}"
    return [f"does not cover outputs flagged {names}, {share} of the usable ones"]


def _blocks(verdict: Verdict) -> list[str]:
    """Return a line on the block after which a rule by blocks decided."""
    if not verdict.result.looks or verdict.by_rule == "undecided":
        return []
    return [decided_after(max(look.look for look in verdict.result.looks), verdict.result.blocks)]


def _left_out(verdict: Verdict, called: ItemNames) -> list[str]:
    lines = kept_out(verdict)
    if verdict.review.with_excluded is not None and verdict.review.n_excluded:
        lines.append(
            f"without {count(verdict.review.n_excluded, 'excluded rating')}; if counted, {verdict.review.with_excluded}"
        )
    if verdict.review.n_withdrawn:
        outcome = f"; if kept, {verdict.review.with_withdrawn}" if verdict.review.with_withdrawn else ""
        lines.append(f"without {count(verdict.review.n_withdrawn, f'withdrawn {called.item}')}{outcome}")
    return lines


def chance(value: float) -> str:
    """Return a probability with two digits, never rounded to certainty."""
    if math.isnan(value) or 0.005 <= value < 0.995:
        return number(value)
    return ">0.99" if value > 0.5 else "<0.01"


def with_interval(estimate: Estimate) -> str:
    """Return a number with its interval, if it has one."""
    return interval(estimate.value, estimate.low, estimate.high)


def interval_of(row: Mapping[Hashable, Any]) -> str:
    """Return a row's mean or value with its interval: columns value or mean, low and high."""
    return interval(row.get("value", row.get("mean")), row["low"], row["high"])


def display(name: str, *, pooled: bool = True) -> str:
    """Return a name for people; the pool `translation` is shown to hold cross-translation too."""
    if pooled and name == "translation":
        return "(Cross-)translation"
    special = {"lexical_stylistic": "Lexical/Stylistic", "cross_translation": "Cross-translation"}
    return special.get(name) or KNOWN.get(name) or name.replace("_", " ").capitalize()


def scoped(transformation: str, language: str, task_type: str = "") -> str:
    """Name a verdict's subject as people read it: `Style change (en)`.

    The task is named if verdicts are for tasks.
    """
    scope = ", ".join(filter(None, (language, task_type.replace("_", " "))))
    return f"{display(transformation, pooled=False)} ({scope})"


def of_group(key: Sequence[str]) -> str:
    """Return a group's name for people: its pool, with language and task if the scope has them."""
    pool, *rest = key
    scope = ", ".join(part.replace("_", " ") for part in rest)
    return f"{display(pool)} ({scope})" if scope else display(pool)


def wrong(limits: QualityLimits, questions: Collection[Question]) -> str:
    """Return the words for wrong answers to questions, by their kinds."""
    words = {question.wrong_words(limits.of(question.name).within): question.has_points for question in questions}
    off = " or ".join(name for name, on_scale in words.items() if on_scale)
    rest = [name for name, on_scale in words.items() if name and not on_scale]
    return f"{rest[0]} (on a scale: {off})" if off and rest else "".join([off, *rest[:1]])


def joined(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts, equal ones for all languages together as one that names the languages."""
    return [group[0].model_copy(update={"language": languages}) for languages, group in _by_languages(verdicts)]


def _by_languages(verdicts: Iterable[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    """Yield groups of equal verdicts for all languages together, each after its languages in words."""
    groups = defaultdict[Hashable, list[Verdict]](list)
    for verdict in verdicts:
        together = verdict.result.scope == "transformation"
        basis = (verdict.transformation, verdict.decision, verdict.reasons) if together else verdict.unit
        groups[basis].append(verdict)
    for group in groups.values():
        names = [verdict.language for verdict in group]
        yield ", ".join(names) if len(names) <= _LISTED else f"{len(names)} languages", group


def means_frame(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return the means that were judged: a row for each verdict and question."""
    of_verdict = ["transformation", "language", "task_type", "axis", "decision"]
    of_question = ["question", "mean", "low", "high", "interval", "interval_reason"]
    rows = []
    for verdict in verdicts:
        limits = {rule.question: rule.limit for rule in reversed(verdict.result.rules) if not rule.label}
        for summary in rated(verdict.questions):
            row = {name: getattr(verdict, name) for name in of_verdict}
            row["threshold"] = limits.get(summary.question, verdict.result.threshold)
            rows.append(row | {name: getattr(summary, name) for name in of_question})
    return pd.DataFrame(rows, columns=[*of_verdict, "threshold", *of_question])


def cards(verdicts: Sequence[Verdict], rubric: Rubric, called: ItemNames) -> list[Card]:
    """Return a card for each verdict, with its means, and shares that decide, on their scales; none if too many.

    Equal verdicts for all languages together share a card.
    """
    shown = joined(verdicts)
    return [
        Card(
            scoped(verdict.transformation, verdict.language, verdict.task_type),
            verdict.decision,
            f", P {chance(verdict.probability)}, {count(verdict.n_pairs, called.item)}",
            [
                *(
                    _on_scale(row, rubric.scale_of(row["question"]))
                    for row in means_frame([verdict]).to_dict("records")
                ),
                *(_on_scale(row, (0, 1)) for row in _shares(verdict)),
            ],
            "; ".join((*in_own_words(verdict.reasons, called), *pooled(verdict))),
        )
        for verdict in (shown if len(shown) <= CARDS else ())
    ]


def _shares(verdict: Verdict) -> Iterator[dict[Hashable, Any]]:
    """Yield the shares of labels that have rules as rows like those of `means_frame`."""
    summaries = {summary.question: summary for summary in verdict.questions}
    for rule in verdict.result.rules:
        if rule.label:
            share = summaries[rule.question].judged(rule.label)
            yield {
                "question": f"share of {rule.label} in {rule.question}",
                **{"mean": share.value, "low": share.low, "high": share.high, "threshold": rule.limit},
            }


def legend_of(some: Sequence[Card]) -> list[str]:
    """Return what the lines of cards are; nothing if no card has any."""
    means = [mean for card in some for mean in card.means]
    limits = ", the dashed mark the limit of its rule" if any(mean.limit is not None for mean in means) else ""
    line = "Each line is a scale from end to end. The dot is the mean or share, the bar its 95% interval"
    return [f"{line}{limits}."] if means else []


def _on_scale(row: Mapping[Hashable, Any], scale: Sequence[float]) -> CardMean:
    """Return a mean of `means_frame` as places on its question's scale."""
    low, high = float(scale[0]), float(scale[-1])
    places = {
        name: round(100 * (row[name] - low) / (high - low), 1) if math.isfinite(row[name]) else None
        for name in ("mean", "low", "high", "threshold")
    }
    return CardMean(
        f"{row['question']} ({low:g} to {high:g})",
        interval_of(row),
        places["mean"],
        places["low"],
        places["high"],
        places["threshold"],
    )
