"""Systems by preference in a study: its own choices and rankings, blind, and choices that were imported."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation import bradley_terry
from annotation.questions.label import SingleLabelQuestion
from annotation.questions.ranking import RankingQuestion
from annotation.statistics.summaries import Design
from annotation.statistics.systems import SideBySide
from annotation.verdicts.preferences import answers, choices_exhibit, preferences_exhibit, preferred
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.imports.importing import Workplace, write_csv
from tests.annotation.judgements import pair

NAMES = ("Ours_1 & co", "<b>50%</b>", "نظام")
LABELS = ("a", "b", "tie")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def take(place: Workplace, header: str, rows: list[list[Any]], *words: str) -> tuple[str, str]:
    """Import choices from a file; what `import` and then `accept` print."""
    write_csv(place.folder / "d.csv", header.split(), rows)
    done = place.take("d.csv", *words, "--language", "en")
    return done.out, place.run("accept", "--study", "studies/mine.yaml").out


def items(*orders: tuple[str, ...], language: str = "en") -> list[Pair]:
    """An item for each text and order of systems; the systems stand behind a, b, c."""
    return [
        pair(number, f"order{place}", language).model_copy(
            update={"fields": f'{{"text": "text {number}", "a": "x", "b": "y"}}'}
            | {"systems": str(dict(zip("abcd", order, strict=False))).replace("'", '"')}
        )
        for place, order in enumerate(orders)
        for number in range(12)
    ]


def given(pairs: list[Pair], answer: dict[str, str], question: str = "preference") -> pd.DataFrame:
    rows = [(one.pair_id, "ada", question, answer[one.systems.split('"')[3]]) for one in pairs]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "question", "answer"])


def design(*questions: SingleLabelQuestion | RankingQuestion, **rule: object) -> Design:
    spec = AcceptanceSpec.model_validate({"interval": "pairs", **rule})
    return Design(tuple(one.name for one in questions), (), rule=spec, extra={one.name: one for one in questions})


def test_choices_are_counted_for_the_system_behind_the_label_whatever_its_side() -> None:
    pairs = [*items(NAMES[:2], NAMES[1::-1]), *items(NAMES[:2], language="de")]
    ratings = given(pairs, {NAMES[0]: "a", NAMES[1]: "tie"})
    found = preferred(ratings, pairs, design(SingleLabelQuestion("preference", (), LABELS)))
    overall = found.differences.iloc[0]
    assert list(found.differences["language"]) == ["", "de", "en"]
    assert [overall[name] for name in ("system", "wins", "ties", "losses", "n")] == [NAMES[0], 24, 12, 0, 24]
    (sentence,) = answers(found)
    assert sentence.startswith("Ours_1 & co is preferred most (preference: 24 wins, 12 ties, 0 losses, Bradley-Terry ")
    assert "told apart" in sentence and "difference of shares +0.75 [" in sentence


def test_a_ranking_compares_each_two_and_a_best_or_worst_one_with_the_others() -> None:
    pairs, three = items(NAMES), ("a", "b", "c")
    ranking = given(pairs, {NAMES[0]: "b > a = c"}, "order")
    found = preferred(ranking, pairs, design(RankingQuestion("order", (), three))).differences
    rows = found[["system", "other", "wins", "ties", "losses"]].itertuples(index=False, name=None)
    counts = {frozenset(row[:2]): row[2:] for row in rows}
    assert counts[frozenset(NAMES[:2])] == counts[frozenset(NAMES[1:])] == (12, 0, 0)
    assert counts[frozenset(NAMES[::2])] == (0, 12, 0)
    choice = SingleLabelQuestion("pick", (), three)
    picked, rule = given(pairs, {NAMES[0]: "c"}, "pick"), {"question": "pick", "label": "a"}
    for end, wins in (({"at_least": 0.5}, 24), ({"at_most": 0.5}, 0)):
        systems = preferred(picked, pairs, design(choice, rules=[{**rule, **end}])).systems.set_index("system")
        assert systems.loc[NAMES[2], ["wins", "losses"]].tolist() == [wins, 24 - wins]
    # Without a rule nothing says whether the best or the worst was asked for.
    assert preferred(picked, pairs, design(choice)).systems.empty


def best_and_worst(answers: list[tuple[str, str]], labels: tuple[str, ...]) -> tuple[list[Pair], pd.DataFrame, Design]:
    """Items, each with a rater's best and worst, and the design that pools the two questions."""
    names = tuple(f"System {label}" for label in labels)
    pairs = items(*[names] * -(-len(answers) // 12))[: len(answers)]
    rows = [
        (one.pair_id, "ada", question, label)
        for one, both in zip(pairs, answers, strict=True)
        for question, label in zip(("best", "worst"), both, strict=True)
    ]
    offered = (*labels, "none")
    questions = (
        SingleLabelQuestion("best", (), offered),
        SingleLabelQuestion("worst", (), offered, lower_is_better=True, worst_of="best"),
    )
    return pairs, pd.DataFrame(rows, columns=["pair_id", "rater_id", "question", "answer"]), design(*questions)


def test_best_and_worst_of_three_are_a_ranking_of_them() -> None:
    both = [("a", "c"), ("b", "c"), ("a", "b"), ("c", "a")]
    order = np.random.default_rng(8).choice(both, 24, p=[0.4, 0.3, 0.2, 0.1])
    answers = [(str(best), str(worst)) for best, worst in order]
    pairs, ratings, asked = best_and_worst(answers, ("a", "b", "c"))
    found = preferred(ratings, pairs, asked)
    ranked = [f"{best} > {({*'abc'} - {best, worst}).pop()} > {worst}" for best, worst in answers]
    ranking = pd.DataFrame({"pair_id": [one.pair_id for one in pairs], "rater_id": "ada", "answer": ranked})
    order_asked = design(RankingQuestion("order", (), ("a", "b", "c")))
    of_ranking = preferred(ranking.assign(question="order"), pairs, order_asked)
    assert set(found.systems["question"]) == {"best and worst"} and len(found.differences) == 3
    columns = ["system", "wins", "ties", "losses", "n"]
    assert found.systems[columns].equals(of_ranking.systems[columns])
    for numbers in ("score", "rank_low", "rank_high"):
        assert found.systems[numbers].to_numpy() == pytest.approx(of_ranking.systems[numbers].to_numpy(), abs=1e-6)
    for numbers in ("difference", "low", "high", "p_holm"):
        assert found.differences[numbers].to_numpy() == pytest.approx(of_ranking.differences[numbers].to_numpy())


def test_best_and_worst_of_four_have_the_scores_of_an_independent_computation_with_ties() -> None:
    """Each answer is 2k - 3 comparisons: the best with all others, and these with the worst; "none" is a tie."""
    rng, labels = np.random.default_rng(5), ("a", "b", "c", "d")
    felt = np.array([0.9, 0.5, 0.1, 0.0]) + rng.gumbel(size=(96, 4))
    answers = [(labels[row.argmax()], labels[row.argmin()]) for row in felt]
    answers[:4] = [("none", "none"), ("none", "d"), ("a", "none"), ("b", "b")]
    won = np.zeros((4, 4))
    for best, worst in answers:
        for one, other in itertools.combinations(labels, 2):
            signs = []
            for chosen, side in ((best, 1), (worst, -1)):
                if chosen == "none":
                    signs.append(0)
                elif chosen in (one, other):
                    signs.append(side if chosen == one else -side)
            if signs:
                half = (1 + np.sign(sum(signs))) / 2
                won[labels.index(one), labels.index(other)] += half
                won[labels.index(other), labels.index(one)] += 1 - half
    strength = np.ones(4)  # Hunter's MM algorithm (2004)
    for _ in range(5000):
        sums = strength[:, None] + strength
        strength = won.sum(axis=1) / np.where(np.eye(4, dtype=bool), 0, (won + won.T) / sums).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
    pairs, ratings, asked = best_and_worst(answers, labels)
    systems = preferred(ratings, pairs, asked).systems.set_index("system")
    scores = [systems.loc[f"System {label}", "score"] for label in labels]
    assert scores == pytest.approx(list(np.log(strength)), abs=1e-5)
    assert systems["wins"].sum() * 2 + systems["ties"].sum() == won.sum() * 2
    # Without the rubric's word the two questions are not one, and without a rule neither says what it asks for.
    apart = design(*(SingleLabelQuestion(name, (), (*labels, "none")) for name in ("best", "worst")))
    assert preferred(ratings, pairs, apart).systems.empty


def test_ranks_lie_in_their_intervals_and_no_system_of_a_circle_is_preferred_most() -> None:
    """Of 24 texts each, A is preferred to B on 19, B to C on 23, and C to A on 18; B has the highest score."""
    wins = {("A", "B"): 19, ("B", "C"): 23, ("C", "A"): 18}
    rows = [
        {"system": one, "opponent": other, "preferred": one if number < won else other, "original": number}
        for (one, other), won in wins.items()
        for number in range(24)
    ]
    found = bradley_terry(pd.DataFrame(rows).assign(rater_id="ada", question="preference"))
    systems = found.systems
    assert systems.loc[systems["score"].idxmax(), "system"] == "B" and list(systems["rank"]) == [2, 2, 2]
    assert ((systems["rank_low"] <= systems["rank"]) & (systems["rank"] <= systems["rank_high"])).all()
    done = SideBySide(systems.assign(language=""), found.differences.assign(language=""))
    assert ["to each another is preferred" in sentence for sentence in answers(done)] == [True]


def test_the_worse_of_two_counts_against_it() -> None:
    pairs, (one, other) = items(NAMES[:2], NAMES[1::-1]), NAMES[:2]
    ratings = pd.concat([given(pairs, {one: "a", other: "b"}, "better"), given(pairs, {one: "b", other: "a"}, "worse")])
    questions = [SingleLabelQuestion(name, (), LABELS, lower_is_better=name == "worse") for name in ("better", "worse")]
    found = preferred(ratings, pairs, design(*questions)).systems
    of_first = found.loc[found["system"] == one, ["question", "wins", "losses"]]
    assert of_first.to_numpy().tolist() == [["better", 24, 0], ["worse", 24, 0]]


def test_tables_are_latex_and_html_that_show_names_as_they_are() -> None:
    pairs = items(NAMES)
    asked = design(RankingQuestion("order", (), ("a", "b", "c")))
    found = preferred(given(pairs, {NAMES[0]: "b > a = c"}, "order"), pairs, asked)
    for exhibit in (preferences_exhibit(found), choices_exhibit(found)):
        latex, markdown = exhibit.latex(), exhibit.markdown()
        assert r"Ours\_1 \& co" in latex and r"\textless{}b\textgreater{}50\%\textless{}/b\textgreater{}" in latex
        assert "with a font for these letters: اظمن" in latex and "&lt;b&gt;50%" in markdown
        assert "scores have no bounds" in exhibit.text() or exhibit.name == "choices"


STUDY = """\
name: duel
subject:
  {kind: texts, path: duel.csv, language: en, groups: [outputs], context: {a: left, b: right},
   systems: {a: is_left, b: is_right}}
sample: {pairs: 12, seed: 1, controls: 0, repeats: 0}
rubric: duel
raters: {per_pair: 2}
acceptance: {rules: [{question: preference, label: tie, at_most: 0.9}], min_pairs: 6, min_raters: 2}
"""
RUBRIC = """\
name: duel
source: ours
fields:
- {name: text, title: {en: Text}}
- {name: a, title: {en: A}}
- {name: b, title: {en: B}}
comment: {en: Comment}
questions:
- {name: preference, kind: label, title: {en: Which is better?}, labels: {a: {en: A}, b: {en: B}, tie: {en: Neither}}}
guidelines: {en: Compare both.}
pools: {texts: {title: {en: Texts}, asked: {en: Reword.}}}
"""


def test_a_study_asks_for_choices_and_shows_nobody_the_systems(place: Workplace) -> None:
    folder = place.folder / "studies" / "mine"
    folder.mkdir(parents=True)
    folder.with_suffix(".yaml").write_text(STUDY)
    (folder / "duel.yaml").write_text(RUBRIC)
    sides = np.random.default_rng(3).permutation(2 * [*range(6)]) % 2
    write_csv(folder.parent / "duel.csv", ["text", "left", "right", "is_left", "is_right"], [
        [f"Town number {n} is old.", f"Old: {n}, {side}", f"Old: {n}, {1 - side}", NAMES[side], NAMES[1 - side]]
        for n, side in enumerate(sides)])  # fmt: skip
    study = ("--study", "studies/mine.yaml")
    for command in ("sample", "preview"):
        assert (done := place.run(command, *study)).status == 0, done.err
    records = pd.read_parquet(place.study.folder / "pairs.parquet")
    pages = list(place.folder.rglob("*.html"))
    assert pages and not any(name in path.read_text() for path in pages for name in ("Ours_1", "is_left"))
    ours = [("a" if systems.startswith('{"a": "Ours') else "b") for systems in records["systems"]]
    answered = [
        [pair_id, rater, side if rater == "ada" or n % 3 else "tie"]
        for n, (pair_id, side) in enumerate(zip(records["pair_id"], ours, strict=True))
        for rater in ("ada", "bob")
    ]
    write_csv(place.folder / "answers.csv", ["pair", "rater", "preference"], answered)
    columns = "pair=pair,rater=rater,preference=preference"
    assert (done := place.run("collect", *study, "--csv", "answers.csv", "--columns", columns)).status == 0, done.err
    done = place.run("accept", *study)
    assert "Ours_1 & co is preferred most (preference: 20 wins, 4 ties, 0 losses, Bradley-Terry score +" in done.out
    assert "Systems by preference" in done.out and "83% / 17% / 0%" in done.out
    assert place.run("ratings-report", *study).status == 0
    assert r"Ours\_1 \& co" in (place.study.folder / "report" / "choices.tex").read_text()


def test_a_key_or_a_label_that_is_wrong_is_named(place: Workplace) -> None:
    folder = place.folder / "studies" / "mine"
    folder.mkdir(parents=True)
    (folder / "duel.yaml").write_text(RUBRIC)
    for old, new, fault in (
        ("b: is_right", "c: is_right", "subject.systems: the rubric has no label 'c'"),
        ("b: is_right", "b: right", "the column 'right' has another use too"),
        ("b: is_right", "b: is_left", "name the columns of two systems or more"),
        ("b: is_right", "b: nowhere", "no column 'nowhere'"),
        ("per_pair: 2", "per_pair: 2, blocks: [8, 12]", "raters.blocks: choices between systems"),
    ):
        folder.with_suffix(".yaml").write_text(STUDY.replace(old, new))
        write_csv(
            folder.parent / "duel.csv", ["text", "left", "right", "is_left", "is_right"], [["t", "x", "y", "A", "B"]]
        )
        done = place.run("sample", "--study", "studies/mine.yaml")
        assert done.status == 2 and fault in done.err
    folder.with_suffix(".yaml").write_text(STUDY)
    (folder / "duel.yaml").write_text(RUBRIC.replace("tie: {en:", "c: {en: C}, tie: {en:"))
    done = place.run("sample", "--study", "studies/mine.yaml")
    assert done.status == 2 and "has a label 'c' without a system" in done.err and done.err.count("\n") == 1


COLUMNS = "source model_a model_b output_a output_b rater"


@pytest.mark.parametrize("winner", ["Model {}", "{name}", "{number}"])
def test_imported_choices_name_the_system_by_side_or_name(place: Workplace, winner: str) -> None:
    names, rows = ("gpt", "llama"), []
    for n in range(12):
        side = n % 2  # of the first system, which is preferred on ten of twelve
        better = side if n < 10 else 1 - side
        answer = winner.format("AB"[better], name=names[0 if n < 10 else 1], number=better + 1)
        answer = answer if n != 5 else "tie"
        rows.append([f"Question {n}?", names[side], names[1 - side], f"o{n}", f"p{n}", "ada", answer])
    taken, accepted = take(place, f"{COLUMNS} winner", rows, "--column", "answer=winner")
    if winner == "{number}":  # 1, 2 and a tie in words
        assert "systems: label-1 is model_a, label-2 is model_b" in taken
    assert "Gpt" not in accepted and "gpt is preferred most (winner: 9 wins, 1 tie, 2 losses" in accepted


def test_codes_of_which_any_may_be_the_tie_compare_no_systems(place: Workplace) -> None:
    rows = [[f"Question {n}?", "gpt", "llama", "ada", n % 3] for n in range(12)]
    taken, accepted = take(place, "source model_a model_b rater winner", rows, "--column", "answer=winner")
    assert "so systems are not compared; write A, B and tie" in taken and "preferred most" not in accepted


def test_imported_choices_count_whoever_saw_the_two_in_which_order(place: Workplace) -> None:
    """Each text and order has one rater or three, and a column `preference` is the answer without being named."""
    rows = []
    for n in range(8):
        for rater, side in (("ada", n % 2), ("bob", n % 2), ("cyd", n % 2), ("dee", 1 - n % 2)):
            names = ("gpt", "llama") if side == 0 else ("llama", "gpt")
            rows.append([f"Question {n}?", *names, *(f"{name} {n}" for name in names), rater, "AB"[side]])
    _, accepted = take(place, f"{COLUMNS} preference", rows)
    assert place.study.acceptance.min_raters == 1
    assert "gpt is preferred most (preference: 32 wins, 0 ties, 0 losses" in accepted
