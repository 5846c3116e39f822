"""What `annotation review --judged` prints: where people and judges differ most, and what was adjudicated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from annotation.adjudication.disputed import Disputed
from annotation.names import named
from annotation.shown_records import Adjudication
from annotation.verdicts.tables import SIMULATED, display
from plumbline.cli import columns
from plumbline.study import Study

SHOWN = 20  # pairs in the printed list


def judged_text(study: Study, found: Disputed, adjudications: Sequence[Adjudication], names: Mapping[str, str]) -> str:
    """The pairs to read, the farthest first, with adjudications beside them, which decide nothing."""
    decided: dict[tuple[str, str], list[str]] = {}
    for one in adjudications:
        said = "discarded" if one.status == "discarded" else str(one.answer if one.value is None else one.value)
        decided.setdefault((one.pair_id, one.question), []).append(said)
    worst = found.worst(SHOWN)
    rows = [
        [
            row["pair_id"][:12],
            display(row["transformation"], pooled=False),
            row["question"],
            f"{row['people']:.2f}",
            f"{row['judges']:.2f}",
            f"{row['apart']:+.2f}",
            row["flags"],
            ", ".join(decided.get((row["pair_id"], row["question"]), [])),
        ]
        for row in found.rows[found.rows["pair_id"].isin(worst)].to_dict("records")
    ]
    header = [study.called.item.capitalize(), study.called.judged.capitalize(), "Question", "People", "Judges", "Apart"]
    parts = [f"Where people and judges differ most, study {study.name}; to be read, since either may be wrong"]
    parts += [SIMULATED] if found.simulated else []
    parts += [f"Recorded, nobody was asked: {', '.join(found.recorded)}"] if found.recorded else []
    parts.append(columns([*header, "Flags", "Adjudicated"], rows, empty="none: no pair has enough ratings and a score"))
    left = found.rows["pair_id"].nunique() - len(worst)
    parts += [f"... and {left} more"] if left > 0 else []
    if adjudications:
        by = Counter((one.pair_id, one.adjudicator, one.rated) for one in adjudications)
        whose = Counter(adjudicator for _, adjudicator, _ in by)
        own = sum(rated for *_, rated in by)
        told = ", ".join(f"{named(who, names)} {number}" for who, number in whose.items())
        parts.append(
            f"Adjudications: {told}; of a pair that the adjudicator had rated too: {own}. They are no ratings, were"
            " given with judges' scores in sight, and enter no mean, no agreement and no verdict."
        )
    return "\n\n".join(parts)
