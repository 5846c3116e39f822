"""PTEB's Table 12: a generator under several prompts. All numbers by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from evaluation.tables.generators import NOT_JUDGED, NOT_SCORED, prompt_table
from tests.evaluation.made_scores import made_scores

# PTEB, Table 12: score and edit distance by prompt (all-mpnet-base-v2, one run).
PRINTED = {"default": (74.92, 0.81), "1": (74.24, 0.82), "2": (74.82, 0.82), "3": (75.16, 0.84)}
NONE = pd.DataFrame(columns=["transformation"])


def lengths(**distances: float) -> pd.DataFrame:
    """As `length_table` has it: the axis, the transformation, all."""
    rows = [
        {"name": name, "axis": "lexical_stylistic" if name != "overall" else "", "generator": by, "texts": 4}
        | {"failed": 0.0, "distance": distance}
        for name in ("lexical_stylistic", "paraphrasing", "overall")
        for by, distance in distances.items()
    ]
    return pd.DataFrame(rows)


def said(judge: str, *scores: float, prompt: str = "p") -> pd.DataFrame:
    """Judgements of the outputs of texts a, b, ..."""
    of_all = {"transformation": "paraphrasing", "seed": 1, "language": "en", "output_language": "en"}
    of_all |= {"judge_hash": judge, "prompt_hash": prompt}
    return pd.DataFrame([{**of_all, "original": name, "score": one} for name, one in zip("abcd", scores, strict=False)])


def scores(**models: float) -> pd.DataFrame:
    return made_scores({name: {"d": {"original": 0.8, "paraphrasing": one}} for name, one in models.items()})


def test_the_papers_table_12_comes_out_of_its_numbers() -> None:
    studies = {name: scores(mpnet=score / 100) for name, (score, _) in PRINTED.items()}
    edits = pd.concat([lengths(**{name: distance}) for name, (_, distance) in PRINTED.items()])
    table = prompt_table(studies, edits, dict.fromkeys(PRINTED, NONE))
    assert list(table["prompts"]) == list(PRINTED) and set(table["name"]) == {"paraphrasing"}
    assert [(round(100 * row.score, 2), row.distance) for row in table.itertuples()] == list(PRINTED.values())
    assert list(table["change"]) == pytest.approx([0, -0.68, -0.10, 0.24])
    assert table["similarity"].isna().all() and set(table["reason"]) == {NOT_JUDGED}


def test_similarity_is_of_outputs_that_the_same_judges_rated_under_all_prompts() -> None:
    kind = pd.concat([said("kind", 4.5, 3.5, 4), said("harsh", 2, 2, 2, 2)])
    other = pd.concat([said("kind", 4, 2, float("nan")), said("harsh", 1, 2, 3)])
    other = pd.concat([other, said("third", 5, 5, 5), said("kind", 1, 1, 1, prompt="another")])
    table = prompt_table({"default": scores(m=0.7), "1": scores(m=0.6)}, lengths(), {"default": kind, "1": other})
    # of a and b alone: kind (4.5 + 3.5) / 2 = 4 and harsh 2; under 1 kind (4 + 2) / 2 = 3 and harsh 1.5
    assert list(table["similarity"]) == [3.0, 2.25]
    assert set(table["n_judged"]) == {2} and set(table["n_judges"]) == {2}
    assert list(table["change"]) == pytest.approx([0, -10]) and set(table["reason"]) == {""}


def test_scores_are_of_models_that_all_studies_have() -> None:
    refused = scores(m=0.5, n=0.7).assign(status=["evaluated", "included_rejected"] * 2)
    studies = {"default": scores(m=0.7, n=0.6, k=0.1), "1": refused}
    table = prompt_table(studies, lengths(default=0.5, **{"1": 0.6}), dict.fromkeys(studies, NONE))
    assert list(table["score"]) == pytest.approx([0.65, 0.6]) and set(table["n_models"]) == {2}
    assert list(table["included_rejected"]) == [False, True] and list(table["distance"]) == [0.5, 0.6]
    nothing = prompt_table(
        {"default": scores(m=0.7), "1": scores(n=0.7)}, lengths(default=0.5), dict.fromkeys("ab", NONE)
    )
    assert nothing["score"].isna().all() and nothing["n_models"].eq(0).all()
    assert set(nothing["reason"]) == {f"{NOT_JUDGED}; {NOT_SCORED}"}
