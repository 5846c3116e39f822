"""Systems side by side in a study: its own transformations, or groups, compared on the originals that they share."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pandas as pd

from annotation.questions.label import MultiLabelQuestion, SingleLabelQuestion
from annotation.records import BlockLook, TakenLook, Verdict
from annotation.statistics.shared_blocks import Couple, DifferenceLook, SharedBlocks
from annotation.statistics.summaries import Design
from annotation.statistics.systems import DIFFERENCES, SHARES, SYSTEMS, SideBySide, compared_by
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.tables import display
from plumbline.exhibits.table import Cell, Exhibit, Row, cell, interval, number, numbers, reasons
from plumbline.exhibits.templates import listed
from plumbline.fields import fields_of
from plumbline.languages import language_name
from plumbline.records import Pair
from plumbline.statistics.estimates import CONFIDENCE
from plumbline.study.subject import PAIRS, ItemNames, Subject
from plumbline.study.transformations import EIGHT
from plumbline.words import count

_NAMED = 6  # systems, or languages, that a sentence names
_COUNTED = ("n", "wins", "ties", "losses")  # columns that are zero without answers
Place = tuple[str, ...]  # the key of one group that is judged apart
LOOKED = tuple(part.name for part in fields(DifferenceLook))  #: numbers of a look
_AFTER_BLOCKS = (
    "Looks are after blocks of originals: intervals hold at all looks together, and p is the least error of all looks"
    " together at which one of them tells the two apart, so both hold whatever ended the campaign; a difference that"
    " ended it early is on average too large"
)
_UNEQUAL = (
    "Not all are rated on the same originals: ranks, their intervals and letters are by the differences, over the"
    " originals that each two have, and need not follow the means"
)
_MOST_LABELS = 6  # of a question whose labels are compared without a rule
_MOST_SAID = 3  # differences of shares of a question in a sentence
NONE = SideBySide(
    pd.DataFrame(columns=["language", *SYSTEMS, "reason"]),
    pd.DataFrame(columns=["language", *DIFFERENCES, *SHARES, "reason"]),
)


def compared(
    ratings: pd.DataFrame,
    pairs: Sequence[Pair],
    design: Design,
    judging: Subject,
    blocks: Mapping[Place, BlockProgress] = MappingProxyType({}),
) -> SideBySide:
    """Return a study's systems side by side, over all languages (language "") and, if there are several, for each.

    `ratings` are those that count, of pairs with enough raters. Systems are what gets verdicts, without HTEB's
    transformations, which are no alternatives to one another. Originals are texts, or what stands beside a text. A
    label is compared by its share. There are no rows without a common original.

    With `raters.blocks` only systems that share a queue are compared, by looks after the `blocks` that they have in
    common, for each language, or for all together if verdicts are; not for each task.
    """
    if design.blocks:
        return _by_blocks(ratings, pairs, design, judging, blocks)
    unruled = {asked(question, label): question for question, label in other_labels(design)}
    compare = functools.partial(compared_by, over=design.rule.interval, lower_is_better=_lower(design), unruled=unruled)
    shared = [pair for pair in pairs if pair.transformation not in EIGHT and original_of(pair, judging)]
    if len({pair.transformation for pair in shared}) < 2:
        return NONE
    return by_language(_answers(ratings, pairs, design, judging), compare, shared, design.rule.min_raters)


def by_language(
    rows: pd.DataFrame, compare: Callable[[pd.DataFrame], SideBySide], pairs: Iterable[Pair], min_raters: int
) -> SideBySide:
    """Return systems compared by rows of all languages (language "") and, if `pairs` have several, of each.

    A question without rows in a language has its systems there too, without numbers.
    """
    every, codes = compare(rows), sorted({pair.language for pair in pairs})
    parts = [({"language": ""}, every)]
    for code in codes if len(codes) > 1 and len(every.systems) else ():
        of_language = rows[rows["language"] == code]
        done = compare(of_language) if len(of_language) else NONE
        few = f"no original has {count(min_raters, 'rater')} for both of two systems"
        reason = "no answers that count" if len(of_language) else few
        frames = ((done.systems, every.systems), (done.differences, every.differences))
        both = [_with_rest(frame, of_all, reason) for frame, of_all in frames]
        parts.append(({"language": code}, replace(done, systems=both[0], differences=both[1], over=every.over)))
    return _joined(parts)


def _with_rest(frame: pd.DataFrame, of_all: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the rows of a language, with those of `of_all` about other questions, which have a reason for numbers."""
    rest = of_all[~of_all["question"].isin(frame["question"])]
    if rest.empty:
        return frame
    numbers = {str(name): 0 if name in _COUNTED else math.nan for name in rest.select_dtypes("number")}
    rest = rest.assign(**numbers, reason=reason, **({"group": "–"} if "group" in rest else {}))
    return pd.concat([frame, rest], ignore_index=True) if len(frame) else rest


def _joined(parts: Iterable[tuple[Mapping[str, str], SideBySide]]) -> SideBySide:
    """Return comparisons as one, with further columns of each, such as its language."""
    tables, looks = [], dict[tuple[str, ...], Sequence[DifferenceLook]]()
    lower, unruled = frozenset[str](), dict[str, str]()
    for columns, done in parts:
        tables.append([frame.assign(**columns) for frame in (done.systems, done.differences)])
        looks |= done.looks
        over, lower, unruled = done.over, lower | done.lower, unruled | dict(done.unruled)
    systems, differences = (pd.concat(frames, ignore_index=True) for frames in zip(*tables, strict=True))
    return SideBySide(systems, differences, looks, over, lower, unruled)


def _by_blocks(
    ratings: pd.DataFrame,
    pairs: Sequence[Pair],
    design: Design,
    judging: Subject,
    blocks: Mapping[Place, BlockProgress],
) -> SideBySide:
    """Return systems that share a queue side by side by looks after the blocks that they have in common."""
    queues, members = dict[str, str](), dict[Place, dict[str, BlockProgress]]()
    if design.rule.scope != "task":
        queues = {pair.pool: pair.queue for pair in pairs if pair.queue and not pair.fields}
    for (pool, *rest), progress in blocks.items():
        if pool in queues:
            members.setdefault((queues[pool], *rest), {})[pool] = progress
    languages, queues_compared = {group[1:] for group in members}, {group[0] for group in members}
    parts = list[tuple[Mapping[str, str], SideBySide]]()
    answers = _answers(ratings, pairs, design, judging)
    originals = {pair.pair_id: original_of(pair, judging) for pair in pairs}
    for (queue, *rest), of_queue in members.items():
        rows = answers[answers["system"].isin(list(of_queue)) & answers["language"].isin(rest or answers["language"])]
        if len(rows):
            shared = _shared_blocks(queue, rest, of_queue, design.past_looks, originals)
            done = compared_by(rows, "pairs", _lower(design), shared)
            looks = {(queue, *couple, *rest, name): of_couple for (name, *couple), of_couple in done.looks.items()}
            columns = {"language": rest[0] if len(languages) > 1 else ""}
            columns |= {"queue": queue} if len(queues_compared) > 1 else {}
            parts.append((columns, replace(done, looks=looks)))
    return _joined(parts) if parts else NONE


def _shared_blocks(
    queue: str,
    rest: Sequence[str],
    members: Mapping[str, BlockProgress],
    past_looks: Sequence[TakenLook],
    originals: Mapping[str, str],
) -> SharedBlocks:
    """Return the blocks that the systems of a queue have in common, with the looks that were taken at two of them."""
    ends, order = next((progress.ends, progress.order) for progress in members.values())
    turns = enumerate(order[: ends[-1]])  # an original with several seeds counts from its last block on
    block = {originals[pair_id]: bisect.bisect_right(ends, turn) for turn, pair_id in turns}
    complete, past = dict[Couple, int](), dict[Couple, dict[str, list[DifferenceLook]]]()
    for first, second in itertools.combinations(sorted(members), 2):
        by_look = {look.look: look for look in past_looks if look.group == (queue, first, second, *rest)}
        taken = [by_look[number] for number in itertools.takewhile(by_look.__contains__, itertools.count(1))]
        for value in itertools.chain.from_iterable(look.values for look in taken):
            look = DifferenceLook(**{name: getattr(value, name) for name in LOOKED})
            of_couple = past.setdefault((first, second), {})
            of_question = of_couple.setdefault(value.question, [])
            if len(of_question) == value.look - 1:  # an optional question may have no answers before a later look
                of_question.append(look)
        complete[first, second] = max(len(taken), min(members[name].answered for name in (first, second)))
    return SharedBlocks([end / ends[-1] for end in ends], block, complete, past)


def with_comparisons(blocks: Mapping[Place, BlockProgress], done: SideBySide) -> dict[Place, BlockProgress]:
    """Return the progress of blocks with what comparing their systems takes: the next while two are not told apart."""
    rows, alike = done.differences[~(done.differences["p_holm"] < 1 - CONFIDENCE)], set[tuple[str, ...]]()
    for question, *systems, language in zip(
        *(rows[column].astype(str) for column in ("question", "system", "other", "language")), strict=True
    ):
        alike.add((question, *sorted(systems), language))
    several, progress = (done.differences["language"] != "").any(), dict(blocks)
    n_looks = {tuple(key[1:-1]): len(looks) for key, looks in done.looks.items()}
    undecided = {
        tuple(couple)
        for _, *couple, question in done.looks
        if (question, *couple[:2], couple[2] if several else "") in alike
    }
    for (first, second, *rest), looks in n_looks.items():
        goes_on = (first, second, *rest) in undecided
        for name, rival in ((first, second), (second, first)):
            of_system = progress[name, *rest]
            needed = max(of_system.compared, min(looks + goes_on, len(of_system.ends)))
            progress[name, *rest] = replace(
                of_system,
                compared=needed,
                apart=(*of_system.apart, *([] if goes_on else [_named(rival)])),
                alike=(*of_system.alike, *([_named(rival)] if goes_on else [])),
            )
    return progress


def couple_looks(done: SideBySide, at: datetime, rule_id: str) -> Iterator[TakenLook]:
    """Yield the looks at two systems as records."""
    by_couple = dict[tuple[str, ...], dict[str, Sequence[DifferenceLook]]]()
    for (*couple, question), looks in done.looks.items():
        by_couple.setdefault(tuple(couple), {})[question] = looks
    for group, questions in by_couple.items():
        for look in range(1, min(map(len, questions.values())) + 1):
            values = tuple(
                BlockLook(look=look, question=question, limit=0.0, **asdict(looks[look - 1]))
                for question, looks in questions.items()
            )
            yield TakenLook(group=group, look=look, at=at, rule_id=rule_id, values=values, decision="undecided")


def _lower(design: Design) -> set[str]:
    """Return the questions whose lower numbers are the better ones: by the rubric, or else by the study's rules."""
    higher = {asked(rule.question, rule.label) for rule in design.rule.rules if rule.at_least is not None}
    lower = {asked(rule.question, rule.label) for rule in design.rule.rules if rule.at_least is None} - higher
    by_rubric = {name: fewer for name in design.rated if (fewer := design.asked(name).lower_is_better) is not None}
    return {name for name in {*lower, *by_rubric} if by_rubric.get(name, True)}


def _answers(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design, judging: Subject) -> pd.DataFrame:
    """Return the answers by which systems are compared, on originals that several have."""
    originals = {pair.pair_id: original_of(pair, judging) for pair in pairs if pair.transformation not in EIGHT}
    rows = ratings.assign(original=ratings["pair_id"].map(originals)).dropna(subset="original")
    rows = rows[rows["original"] != ""].astype({"transformation": str, "language": str, "question": str})
    several = rows.groupby("original")["transformation"].nunique()
    rows = rows[rows["original"].isin(several.index[several > 1])]
    parts = [
        of_question.assign(question=asked(name, label), value=design.asked(name).numbers(of_question, label))
        for name, label in questions_of(design)
        if len(of_question := rows[rows["question"] == name])
    ]
    return (pd.concat(parts) if parts else rows.head(0)).rename(columns={"transformation": "system"})


def questions_of(design: Design) -> list[tuple[str, str]]:
    """Return what systems are compared by: questions with points, labels of rules, and other labels."""
    rules = [(rule.question, rule.label) for rule in design.rule.rules if rule.label]
    return [*((name, "") for name in design.rated), *dict.fromkeys(rules), *other_labels(design)]


def other_labels(design: Design) -> Iterator[tuple[str, str]]:
    """Yield the labels that no rule names, of questions with few; none after blocks, whose looks are fixed beforehand.

    Where one of two labels is chosen, the share of the one says that of the other.
    """
    ruled = {(rule.question, rule.label) for rule in design.rule.rules}
    for question in map(design.asked, () if design.blocks else design.questions):
        if isinstance(question, SingleLabelQuestion | MultiLabelQuestion) and len(question.labels) <= _MOST_LABELS:
            labels = [label for label in question.labels if (question.name, label) not in ruled]
            one_says_all = question.picks_one and len(question.labels) == 2
            yield from ((question.name, label) for label in (labels[:-1] if one_says_all else labels))


def asked(question: str, label: str) -> str:
    """Return the name of a question, or of a label in it, in tables."""
    return f"{label} in {question}" if label else question


def original_of(pair: Pair, judging: Subject) -> str:
    """Return what a pair shares with other systems' pairs; empty if nothing tells."""
    if not pair.fields:
        return f"{pair.language}: {pair.original}"
    context = [field.text for field in fields_of(pair) if field.name in judging.beside]
    return "\n".join([f"{pair.language}: ", *context]) if context else ""


def best_first(verdicts: Sequence[Verdict], done: SideBySide) -> list[Verdict]:
    """Return verdicts by language, the best system first as the answer has it; unchanged where none are compared."""
    if done.systems.empty:
        return list(verdicts)
    systems = done.systems[["language", "system"]].astype(str).itertuples(index=False, name=None)
    position = {system: number for number, system in reversed(list(enumerate(systems)))}

    def key(verdict: Verdict) -> tuple[str, int]:
        everywhere = position.get(("", verdict.transformation), len(position))
        return verdict.language, position.get((verdict.language, verdict.transformation), everywhere)

    return sorted(verdicts, key=key)


def answers(done: SideBySide) -> Iterator[str]:
    """Yield a clause for each question over all languages, or each: which system is best, and how surely."""
    over_all = (done.systems["language"] == "").any()
    frames = (frame[(frame["language"] == "") | (not over_all)] for frame in (done.systems, done.differences))
    ruled = (frame[~frame["question"].isin(list(done.unruled))] for frame in frames)
    shares = (frame.assign(question=frame["question"].map(_share_of)) for frame in ruled)
    overall, differences = (frame.assign(question=places_of(frame)) for frame in shares)
    for question, systems in overall.groupby("question", sort=False):
        best = systems.iloc[0]
        if best["rank"] != 1:
            each = "each is worse than another on the originals of both"
            yield f"No system is the best in {question}: {best['reason'] or each}"
            continue
        others = differences[(differences["question"] == question) & (differences["system"] == best["system"])]
        if others.empty:
            continue  # nobody was asked this about another system
        of_best = done.differences[["system", "other"]].eq(best["system"]).any(axis=1)
        rows = done.differences[of_best & (done.differences["question"].map(_share_of) == question)]
        ahead = functools.partial(_ahead, best["system"], best["question"] in done.lower)
        unlike = _unlike_languages(rows.assign(question=question), ahead)
        if len(systems) == 2:
            yield _of_two(str(question), others.to_dict("records")[0]) + unlike
            continue
        shared = (others["n"] == best["n"]).all()  # else the mean is over other originals than the differences
        words = [number(best["mean"])] if shared else []
        words.append(
            from_next(others, systems["system"].iloc[1], _named) + ("" if shared else " on the originals of both")
        )
        best_words = ", ".join([*words, apart_words(others, _named)])
        yield f"{_named(best['system'])} has the best {question} ({best_words}){unlike}"
    for question in dict.fromkeys(done.unruled.values()):
        rows = done.differences[done.differences["question"].map(done.unruled) == question]
        unlike = _unlike_languages(rows, functools.partial(_labels_apart, question))
        yield _of_labels(question, rows[rows["language"] == ""]) + unlike
    asked_as = done.systems["question"].map(lambda name: done.unruled.get(name, name))
    yield from _rests_on(done.systems.assign(question=asked_as))


def _rests_on(systems: pd.DataFrame) -> Iterator[str]:
    """Yield a clause on how many common originals each language gave; one for all questions where it is the same."""
    questions = dict[str, list[str]]()
    for question, rows in systems.groupby("question", sort=False):
        if (parts := in_languages(rows)) and (n := rows["n"][rows["language"] == ""].iloc[0]):
            questions.setdefault(f"{count(n, 'common original')}: {parts}", []).append(str(question))
    for words, names in questions.items():
        yield f"{'This' if len(questions) == 1 else f'What is said of {listed(names)}'} rests on {words}"


def in_languages(rows: pd.DataFrame) -> str:
    """Return how many of a question's originals are in each language; empty if languages were not compared apart."""
    if not (rows["language"] == "").any():
        return ""
    first = rows[rows["language"] != ""].drop_duplicates("language")
    names = dict[tuple[int, str], list[str]]()
    for row in first.sort_values("n", ascending=False, kind="stable").to_dict("records"):
        names.setdefault((row["n"], "" if row["n"] else row["reason"]), []).append(language_name(row["language"]))
    parts = []
    for (n, reason), of_number in names.items():
        number_words = f"{n:,}{' each' if of_number[1:] else ''}" if n else "none"
        parts.append(f"{number_words} in {_some_languages(of_number)}" + (f" ({reason})" if reason else ""))
    return ", ".join(parts)


def _unlike_languages(rows: pd.DataFrame, words: Callable[[pd.DataFrame], str]) -> str:
    """Return what is told apart in which languages, in brackets; empty if it is the same in all that have originals."""
    languages_of = dict[str, list[str]]()
    for code, of_language in rows[(rows["language"] != "") & (rows["n"] > 0)].groupby("language"):
        languages_of.setdefault(words(of_language), []).append(language_name(str(code)))
    parts = [f"{text} in {_some_languages(names)}" for text, names in languages_of.items()]
    return f" ({', '.join(parts)})" if parts[1:] else ""


def _some_languages(names: Sequence[str]) -> str:
    return f"{len(names)} languages" if len(names) > _NAMED else listed(names)


def _ahead(best: str, lower: bool, rows: pd.DataFrame) -> str:
    """Return which other systems one is better than, worse than and not told apart from."""
    gain = rows["difference"] * ((rows["system"] == best) * 2 - 1) * (-1 if lower else 1)
    rivals, apart = rows["other"].where(rows["system"] == best, rows["system"]), rows["p_holm"] < 1 - CONFIDENCE
    parts = {"better than": apart & (gain > 0), "worse than": apart & (gain < 0), "not told apart from": ~apart}
    return " and ".join(
        f"{text} {mask.sum()} others" if mask.sum() > _NAMED else f"{text} {listed(map(_named, rivals[mask]))}"
        for text, mask in parts.items()
        if mask.any()
    )


def _labels_apart(question: str, rows: pd.DataFrame) -> str:
    """Return which shares of a question's labels are told apart."""
    apart = rows[rows["p_holm"] < 1 - CONFIDENCE].to_dict("records")
    if len(apart) > _MOST_SAID:
        return f"{len(apart)} shares differ"
    return listed(_more_often(question, row) for row in apart) or "no share told apart"


def _more_often(question: str, row: Row) -> str:
    """Return for which of two systems a label was given more often."""
    both = (_named(row["system"]), _named(row["other"]))[:: 1 if row["difference"] > 0 else -1]
    return f"{row['question'].removesuffix(f' in {question}')} more often for {' than for '.join(both)}"


def _of_labels(question: str, rows: pd.DataFrame) -> str:
    """Return which shares of a question's labels differ between systems; no rule says that more or fewer are better."""
    apart, parts = rows[rows["p_holm"] < 1 - CONFIDENCE].sort_values("p_holm", kind="stable"), list[str]()
    if apart.empty:
        systems = dict.fromkeys([*rows["system"], *rows["other"]])
        names = f"All {len(systems)}" if len(systems) > _NAMED else listed(map(_named, systems))
        return f"{names} are not told apart in the shares of {question}'s labels"
    for row in apart.head(_MOST_SAID).to_dict("records"):
        sign = 1 if row["difference"] > 0 else -1
        low, high = sorted((sign * row["low"], sign * row["high"]))
        by = interval(sign * row["difference"], low, high, functools.partial(number, sign="+"))
        parts.append(f"{_more_often(question, row)} (share {by})")
    rest = len(apart) - len(parts)
    return f"Answers to {question} were {listed(parts)}" + (f", and {rest} more shares differ" if rest else "")


def _share_of(question: str) -> str:
    """Return the name of a question, or of a label in it, in a sentence."""
    return f"share of {question}" if " in " in question else question


def from_next(others: pd.DataFrame, name: str, named: Callable[[str], str]) -> str:
    """Return the difference of the best system from the next best, with its interval; `others` has it from each."""
    row = others[others["other"] == name].to_dict("records")[0]
    return f"difference from {named(name)}, the next best, {difference_words(row)}"


def apart_words(others: pd.DataFrame, named: Callable[[str], str]) -> str:
    """Return which others the best system is not told apart from; of many their number."""
    alike = others.loc[~(others["p_holm"] < 1 - CONFIDENCE), "other"]
    names = f"{len(alike)} of {len(others)} others" if len(alike) > _NAMED else listed(map(named, alike))
    return f"not told apart from {names}" if names else "told apart from all others"


def _of_two(question: str, row: Row) -> str:
    """Return which of two systems is better and by how much; the better one has fewer points if these are better."""
    names = _named(row["system"]), _named(row["other"])
    unit = "" if question.startswith("share of ") else " points"
    if not row["p_holm"] < 1 - CONFIDENCE:
        return f"{' and '.join(names)} are not told apart in {question} (difference {difference_words(row)}{unit})"
    sign = 1 if row["difference"] > 0 else -1
    low, high = sorted((sign * row["low"], sign * row["high"]))
    return f"{' is better than '.join(names)} in {question} by {interval(sign * row['difference'], low, high)}{unit}"


def if_counted(done: SideBySide, every: SideBySide, named: Callable[[str], str]) -> Iterator[str]:
    """Yield the differences with another outcome had excluded raters counted, with both numbers.

    `every` are the comparisons by all raters.
    """
    without = {(question, *sorted((row["system"], row["other"]))): row for question, row in _placed(done)}
    for question, row in _placed(every):
        unknown = row | dict.fromkeys(("difference", "low", "high", "p_holm"), math.nan)
        now = without.get((question, *sorted((row["system"], row["other"]))), unknown)
        sign = 1 if now["system"] == row["system"] else -1
        low, high = sorted((sign * row["low"], sign * row["high"]))
        turned = row | {"difference": sign * row["difference"], "low": low, "high": high}
        apart = [compared_row["p_holm"] < 1 - CONFIDENCE for compared_row in (now, turned)]
        if apart[0] != apart[1] or (all(apart) and now["difference"] * turned["difference"] < 0):
            outcome, instead = (
                f"{'' if is_apart else 'not '}told apart ({difference_words(compared_row)})"
                for is_apart, compared_row in zip(apart, (now, turned), strict=True)
            )
            yield f"{named(now['system'])} and {named(now['other'])} in {question} {outcome}, if counted {instead}"


def _placed(done: SideBySide) -> Iterator[tuple[str, dict[Hashable, Any]]]:
    """Yield the differences with their places in words."""
    return zip(places_of(done.differences), done.differences.to_dict("records"), strict=True)


def p_words(row: Row) -> str:
    """Return p by Holm as tables print it."""
    return "<0.0001" if row["p_holm"] < 0.0001 else number(row["p_holm"], 4)


def by_test(done: SideBySide) -> str:
    """Return in words what the intervals and p of differences are by."""
    if done.over == "pairs":
        return "by the paired t-test"
    return "with raters as a sample too (the paired t-test with a variance over raters, by Cochran and Cox)"


def scope_of(done: SideBySide) -> str:
    """Return in words what Holm's correction is for: `a question and language`, with all languages as one more."""
    apart = ["question", *(["queue"] if "queue" in done.differences else [])]
    apart += ["language"] if (done.differences["language"] != "").any() else []
    return f"a {listed(apart)}"


def difference_words(row: Row) -> str:
    """Return a difference with its interval as tables print it."""
    return interval(row["difference"], row["low"], row["high"], functools.partial(number, sign="+"))


def rank_words(row: Row) -> str:
    """Return a rank with its interval as tables print it."""
    return interval(row["rank"], row["rank_low"], row["rank_high"], functools.partial(number, digits=0))


def systems_exhibit(done: SideBySide, called: ItemNames = PAIRS) -> Exhibit:
    """Return a row for each question and system: its mean over the originals that all have, and its rank."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **languages(done.systems),
        called.judged.capitalize(): cell("system", _named),
        "Mean": numbers("mean"),
        "Originals": numbers("n", 0),
        "Rank [95%]": rank_words,
        "Letters": "group",
    }
    notes = [
        "Means are over the originals for which all have enough raters, each counted once (a verdict's mean counts each"
        " rating once); those that share a letter are not told apart",
        *excluded_note(done),
        *_lower_note(done),
        *([_UNEQUAL] if _unequal(done) else []),
        *reasons(places_of(done.systems), done.systems["reason"]),
    ]
    caption = f"{called.judged.capitalize()}s side by side, on the same originals"
    rows = done.systems if done.systems["mean"].notna().any() else done.systems.head(0)
    return Exhibit.of("side_by_side", caption, rows, columns, notes)


def differences_exhibit(done: SideBySide, called: ItemNames = PAIRS) -> Exhibit:
    """Return a row for each question and two systems: their paired difference."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **languages(done.differences),
        called.judged.capitalize(): cell("system", _named),
        "Other": cell("other", _named),
        "Difference [95%]": difference_words,
        "p (Holm)": p_words,
        **({"Look": "look"} if done.looks else {}),
        "Better / equal / worse": lambda row: " / ".join(number(row[name], 0, times=100, unit="%") for name in SHARES),
        "Originals": numbers("n", 0),
    }
    systems = done.differences["system"].map(_named) + " and " + done.differences["other"].map(_named)
    notes = [
        f"Differences of means over the originals for which both have enough raters, {by_test(done)}; an"
        " interval is of one difference alone, p and letters are corrected by Holm for all differences of"
        f" {scope_of(done)}",
        "A mean's interval, among the verdicts, is by another rule than a difference's: that two intervals of means"
        " overlap does not say that the two are alike",
        *excluded_note(done),
        *_lower_note(done),
        *_unruled_note(done),
        *([_AFTER_BLOCKS] if done.looks else []),
        *reasons(places_of(done.differences) + ", " + systems, done.differences["reason"]),
    ]
    caption = f"Differences between {called.judged}s on the same originals"
    return Exhibit.of("differences", caption, done.differences, columns, notes)


def excluded_note(done: SideBySide) -> list[str]:
    """Return a note on the excluded raters, if there are any."""
    return [f"Without the ratings of {count(done.excluded, 'excluded rater')}"] if done.excluded else []


def _lower_note(done: SideBySide) -> list[str]:
    """Return a note on the questions whose lower numbers are the better ones, if any are."""
    names = " and ".join(sorted(done.lower))
    return [f"{names}: fewer points are better, so the better of two has the negative difference"] if names else []


def _unruled_note(done: SideBySide) -> list[str]:
    """Return a note on the labels that no rule names, if there are any."""
    names, questions = listed(done.unruled), listed(dict.fromkeys(done.unruled.values()))
    note = f"{names}: no rule names these labels, so 'better' is more of them, and Holm's correction is for all of them"
    return [f"{note} in {questions} together"] if names else []


def _unequal(done: SideBySide) -> bool:
    """Return whether two systems of a question have more originals in common than all of its systems have."""
    originals = done.differences.groupby(places_of(done.differences))["n"].max()
    of_all = done.systems.groupby(places_of(done.systems))["n"].max()
    return bool(originals.gt(of_all.reindex(originals.index)).any())


def _named(name: object) -> str:
    return display(str(name), pooled=False)


def places_of(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the question of each row, with its language if it is about one, and its queue if there are several."""
    queues = ", " + frame["queue"] if "queue" in frame else ""
    return frame["question"] + frame["language"].map(lambda code: f" ({language_name(code)})" if code else "") + queues


def languages(frame: pd.DataFrame) -> dict[str, Cell]:
    """Return the columns of queues and of languages, if there are several."""
    queues: dict[str, Cell] = {"Queue": "queue"} if "queue" in frame else {}
    several = (frame["language"] != "").any()
    name = cell("language", lambda code: language_name(code) if code else "all")
    return queues | ({"Language": name} if several else {})
