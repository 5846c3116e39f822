"""Which signs of careless work could not be looked for, and of how many raters: no sign of them says nothing."""

from __future__ import annotations

import pandas as pd

from annotation.ratings.signs import Expected, control_answers, of_pairs, with_others
from plumbline.study.campaign import QualitySpec


def not_looked_at(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualitySpec, expected: Expected
) -> tuple[str, ...]:
    """A line for each rule by which some raters could not be looked at, with why; as for `find_signs`.

    Times are asked of people alone, and habits only of raters with `rules.least_answers` answers.
    """
    pairs = pairs.drop_duplicates("pair_id", keep="last", ignore_index=True)
    submitted = of_pairs(ratings, pairs).dropna(subset=["rater_id"])
    made_up = ratings.loc[ratings["simulated"].astype(bool), "rater_id"] if "simulated" in ratings else ()
    once, shared = (
        submitted.drop_duplicates("answer"),
        submitted[(submitted["control"] == "") & submitted["value"].notna()],
    )
    raters, habits = set(submitted["rater_id"]), _often(once["rater_id"], rules)
    looked: dict[str, tuple[set[str], set[str], str]] = {
        "controls": (raters, set(control_answers(submitted, expected)["rater_id"]), "no answer of theirs to a control"),
        "repeats": (
            raters,
            set(submitted.loc[submitted["control"] == "repeat", "rater_id"]),
            "no answer of theirs to a repeat",
        ),
        "too fast": (
            habits - set(made_up),
            _often(once.loc[once["seconds"].notna(), "rater_id"], rules),
            "how long their answers took is unknown",
        ),
        "apart from the others": (
            _often(shared.drop_duplicates("answer")["rater_id"], rules),
            _often(with_others(shared).drop_duplicates("answer")["rater_id"], rules),
            "too few of their pairs were rated by others",
        ),
    }
    return tuple(
        f"{rule}: {len(wanted - seen)} of {len(raters)} raters ({why})"
        for rule, (wanted, seen, why) in looked.items()
        if wanted - seen
    )


def _often(raters: pd.Series, rules: QualitySpec) -> set[str]:
    """The raters who are there at least `rules.least_answers` times."""
    numbers = raters.value_counts()
    return set(numbers.index[numbers >= rules.least_answers].astype(str))
