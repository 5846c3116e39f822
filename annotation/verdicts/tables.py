"""Tables for people, from records: HTEB's Table 2, agreement and the verdicts. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

import pandas as pd

from annotation.questions.question import KINDS, Question
from annotation.questions.rating import COEFFICIENTS
from annotation.records import P_IS, Chance, Group, Summary, Verdict
from annotation.verdicts.looks import decided_after
from annotation.verdicts.rules import in_own_words, in_words, late_lines, unchecked
from plumbline.cli import columns
from plumbline.languages import language_name
from plumbline.statistics.agreement import band
from plumbline.statistics.estimates import Estimate
from plumbline.study.subject import PAIRS, ItemNames
from plumbline.words import count

AT_LEAST = "AC2 and alpha at least"
_REASONS = 3  # with more reasons why numbers are undefined, only their number is printed
SIMULATED = "SIMULATED RATINGS, A REHEARSAL: made up to show that the flow works; they measure nothing."


def agreement_table(groups: Sequence[Group]) -> pd.DataFrame:
    """Return Table 2 as a frame, a row for each group: mean, SD, agreement with intervals, and n of each question."""
    rows = []
    for group in groups:
        row: dict[str, object] = {"level": group.level, "name": group.name, "axis": group.axis}
        for summary in rated(group.questions):
            row |= _cells(summary)
            row[f"{summary.question}_sd"] = summary.sd
            row[f"{summary.question}_n_pairs"] = summary.n_pairs
            row[f"{summary.question}_n_raters"] = summary.n_raters
            row[f"{summary.question}_n_ratings"] = summary.n_ratings
        row["simulated"] = group.simulated
        rows.append(row)
    return pd.DataFrame(rows)


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
            for label, what, estimate in label_numbers(summary):
                row |= _ends(f"{summary.question}_{label}_{what}", estimate)
        row |= {f"P: {rule}": rule_chance.probability for rule, rule_chance in rule_chances(verdict)}
        row |= {"simulated": verdict.simulated, "rules_fixed": verdict.rules_fixed}
        rows.append(row)
    return pd.DataFrame(rows)


def rule_chances(verdict: Verdict) -> list[tuple[str, Chance]]:
    """Return each rule in words with its P; none for a verdict from before P was computed."""
    return list(zip(map(in_words, verdict.result.rules), verdict.result.probabilities, strict=False))


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
    rows = [
        [group.level, group.name, summary.question, summary.kind, label, what, estimate.value, estimate.low,
         estimate.high, estimate.reason, summary.n_ratings]
        for group in groups
        for summary in group.questions
        if not KINDS[summary.kind].has_points
        for label, what, estimate in _numbers(summary)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns_)


def _numbers(summary: Summary) -> Iterator[tuple[str, str, Estimate]]:
    """Yield (label, kind of number, number) of a question without a scale."""
    for label, name, estimate in label_numbers(summary):
        yield label, {"first": "ranked first", "rank": "mean rank"}.get(name, name), estimate
    for coefficient in summary.coefficients:
        yield coefficient.label, coefficient.name, coefficient.estimate
    if not summary.shares:
        yield "", "agreement", summary.ac2


def label_text(groups: Sequence[Group]) -> str:
    """Return shares and ranks of labels and agreement on them, over all; empty if every question has a scale."""
    table = label_table([group for group in groups if group.level in ("pool", "overall")])
    rows, notes = [], []
    for row in table.to_dict("records"):
        estimate = Estimate(value=row["value"], low=row["low"], high=row["high"])
        cells = display(row["name"]), row["question"], row["label"] or "all"
        rows.append([*cells, row["number"], with_interval(estimate), str(row["n_ratings"])])
        if row["reason"]:
            notes.append(f"{', '.join(cells)}, {row['number']}: {row['reason']}")
    if not rows:
        return ""
    header = ["", "Question", "Label", "Number", "Value", "n"]
    return "\n".join([columns(header, rows), *dict.fromkeys(notes)])


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


def agreement_text(groups: Sequence[Group], called: ItemNames = PAIRS) -> str:
    """Return Table 2 in the paper's form (mean ± SD and AC2; pools are indented below axes), then agreement in full.

    `called` are the study's words for its items.
    """
    labels, over = label_text(groups), f"with 95% intervals over {called.item}s"
    parts = [f"Labels, rankings and texts, {over}", labels] if labels else []
    questions = list(dict.fromkeys(summary.question for group in groups for summary in rated(group.questions)))
    header = ["", *(f"{question.capitalize()} {what}" for question in questions for what in ("mean±SD", "AC2", "n"))]
    rows = []
    for group in groups:
        row, by_question = [_row_name(group)], {summary.question: summary for summary in rated(group.questions)}
        for question in questions:
            of_group = by_question.get(question)  # not asked about each pool
            row += ["–"] * 3 if of_group is None else [
                f"{number(of_group.mean)}±{number(of_group.sd)}", number(of_group.ac2.value), str(of_group.n_ratings),
            ]  # fmt: skip
        rows.append(row)
    simulated = f"\n{SIMULATED}" if any(group.simulated for group in groups) else ""
    table = columns(header, rows, "no ratings that count") + simulated
    if not groups:
        return table
    if not questions:  # nothing is rated on a scale
        return "\n\n".join(parts) + simulated
    return "\n\n".join([table, f"Agreement {over}", coefficient_text(groups), *parts])


def at_least(summary: Summary) -> str:
    """Return the word for the agreement that AC2 and alpha both show.

    It is the band of the lower of their intervals' lower ends.

    AC2 alone is high if nearly all ratings are the same, even careless ones. A dash if either has no interval.
    """
    ends = (summary.ac2.low, summary.alpha.low)
    return band(math.nan if any(map(math.isnan, ends)) else min(ends))


def coefficient_text(groups: Sequence[Group]) -> str:
    """Return every coefficient of agreement with its interval, and `at_least` in a word; notes explain missing numbers.

    If many numbers are missing, one note gives their number and the file with the reasons.
    """
    rows, notes = [], []
    for group in groups:
        for summary in rated(group.questions):
            estimates, name = KINDS[summary.kind].agreement(summary), summary.question
            rows.append([_row_name(group), name, *map(with_interval, estimates.values()), at_least(summary)])
            notes += [f"{display(group.name)}, {name}, {a}: {e.reason}" for a, e in estimates.items() if e.reason]
    header = ["", "Question", *COEFFICIENTS.values(), AT_LEAST]
    reasons = list(dict.fromkeys(notes))
    if len(reasons) > _REASONS:
        reasons = [f"{len(reasons)} numbers or their intervals are undefined; agreement.json has the reasons."]
    return "\n".join([columns(header, rows, "no ratings that count"), *reasons])


def _row_name(group: Group) -> str:
    if group.level == "language":
        return language_name(group.name)
    return f"  {display(group.name)}" if group.level == "pool" else display(group.name)


def verdict_text(verdicts: Sequence[Verdict], called: ItemNames = PAIRS) -> str:
    """Return the verdicts with their reasons, one a line, in the study's words for its items."""
    tasks = any(verdict.task_type for verdict in verdicts)
    rows = [
        [
            display(verdict.transformation, pooled=False),
            f"{verdict.language} {verdict.task_type}".strip(),
            verdict.decision,
            str(verdict.n_pairs),
            chance(verdict.probability),
            "–" if math.isnan(verdict.failed_share) else f"{verdict.failed_share:.1%}",
            "; ".join(
                [
                    *in_own_words(verdict.reasons, called),
                    *pooled(verdict),
                    *_waves(verdict),
                    *_blocks(verdict),
                    *_left_out(verdict),
                ]
            ),
        ]
        for verdict in verdicts
    ]
    simulated = f"\n{SIMULATED}" if any(verdict.simulated for verdict in verdicts) else ""
    simulated += "".join(f"\n{line}" for line in late_lines(verdicts))
    judged, items = called.judged.capitalize(), f"{called.item}s"
    where = "Language, task" if tasks else "Language"
    note = f"\n{unlooked}" if (unlooked := unchecked(verdicts)) else ""
    header = [judged, where, "Verdict", items.capitalize(), "P", "Failed", "Reason"]
    return columns(header, rows, f"no {items}") + (f"\n{P_IS}" if verdicts else "") + note + simulated


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


def looks_text(frame: pd.DataFrame) -> str:
    """Format looks for a terminal, a line for each verdict and rule.

    Each line has the path of the mean, with the interval at each look.
    """
    paths = frame.groupby(["verdict", "question", "label"], sort=False)
    rows = [
        [
            str(verdict),
            f"{question} {label}".strip(),
            f"{path['limit'].iloc[0]:g}",
            "  ".join(
                f"{row['pairs']}: {with_interval(Estimate(value=row['mean'], low=row['low'], high=row['high']))}"
                for row in path.to_dict("records")
            ),
        ]
        for (verdict, question, label), path in paths
    ]
    return columns(["", "Question", "Limit", "Pairs: mean [interval valid at all looks]"], rows)


def unbiased_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return means of verdicts that stopped at a look, plain and unbiased: a row for each question or label.

    Columns: transformation, language, task_type, question (of a label's share: the label in it), n_pairs, mean,
    unbiased, low, high, reason (why there is no unbiased mean).
    """
    rows = [
        {
            **{name: getattr(verdict, name) for name in ("transformation", "language", "task_type")},
            "question": what,
            "n_pairs": summary.n_pairs,
            "mean": plain,
            "unbiased": estimate.value,
            **{name: getattr(estimate, name) for name in ("low", "high", "reason")},
        }
        for verdict in verdicts
        for summary in verdict.questions
        for what, plain, estimate in [
            (summary.question, summary.mean, summary.unbiased),
            *((f"{share.label} in {summary.question}", share.share.value, share.unbiased) for share in summary.shares),
        ]
        if estimate is not None
    ]
    return pd.DataFrame(rows)


def unbiased_text(frame: pd.DataFrame) -> str:
    """Return `unbiased_frame` as text for a terminal."""
    rows = [
        [
            scoped(row["transformation"], row["language"], row["task_type"]),
            row["question"],
            str(row["n_pairs"]),
            number(row["mean"]),
            row["reason"] or with_interval(Estimate(value=row["unbiased"], low=row["low"], high=row["high"])),
        ]
        for row in frame.to_dict("records")
    ]
    return columns(["", "Question", "Pairs", "Plain mean", "Median-unbiased mean [95%]"], rows)


def _waves(verdict: Verdict) -> list[str]:
    """Return a line on the waves that a verdict rests on, if the sample was extended."""
    return [] if verdict.waves == (1,) else [f"rests on waves {' and '.join(map(str, verdict.waves))} of the sample"]


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


def _left_out(verdict: Verdict) -> list[str]:
    lines = kept_out(verdict)
    if verdict.review.with_excluded is not None and verdict.review.n_excluded:
        lines.append(
            f"without {count(verdict.review.n_excluded, 'excluded rating')}; if counted, {verdict.review.with_excluded}"
        )
    if verdict.review.n_withdrawn:
        outcome = f"; if kept, {verdict.review.with_withdrawn}" if verdict.review.with_withdrawn else ""
        lines.append(f"without {count(verdict.review.n_withdrawn, 'withdrawn pair')}{outcome}")
    return lines


def chance(value: float) -> str:
    """Return a probability with two digits, never rounded to certainty."""
    if math.isnan(value) or 0.005 <= value < 0.995:
        return number(value)
    return ">0.99" if value > 0.5 else "<0.01"


def with_interval(estimate: Estimate) -> str:
    """Return a number with its interval, if it has one."""
    if math.isnan(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def display(name: str, *, pooled: bool = True) -> str:
    """Return a name for people; the pool `translation` is shown to hold cross-translation too."""
    if pooled and name == "translation":
        return "(Cross-)translation"
    special = {"lexical_stylistic": "Lexical/Stylistic", "cross_translation": "Cross-translation"}
    return special.get(name, name.replace("_", " ").capitalize())


def scoped(transformation: str, language: str, task_type: str = "") -> str:
    """Name a verdict's subject as people read it: `Style change (en)`.

    The task is named if verdicts are for tasks.
    """
    where = ", ".join(filter(None, (language, task_type.replace("_", " "))))
    return f"{display(transformation, pooled=False)} ({where})"


def of_group(key: Sequence[str]) -> str:
    """Return a group's name for people: its pool, with language and task if the scope has them."""
    pool, *rest = key
    where = ", ".join(part.replace("_", " ") for part in rest)
    return f"{display(pool)} ({where})" if where else display(pool)


def wrong(within: float, questions: Collection[Question]) -> str:
    """Return the words for wrong answers to questions, by their kinds."""
    words = {question.wrong_words(within): question.has_points for question in questions}
    off = next((name for name, on_scale in words.items() if on_scale), "")
    others = [name for name in words if name not in (off, "")]
    return f"{others[0]} (on a scale: {off})" if off and others else "".join([off, *others[:1]])


def number(value: float) -> str:
    """Format a number with two digits, without a sign if these are zero; an undefined number is a dash."""
    return "–" if math.isnan(value) else f"{value:z.2f}"
