"""What other verdicts or settings have outrun: scores that a report must not show as the study's."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.records import Verdict
from evaluation.measures.rows import COMMAND
from generation.jobs import makers_of
from plumbline.errors import DataError
from plumbline.study import Study
from plumbline.transformations import ORIGINAL

_DECISIONS = ("rejected", "undecided", "accepted")  # the strictest first, as the gate takes it


def refuse_outrun(study: Study, scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> None:
    """Raise DataError where scores were let through, or left out, by verdicts or settings that are others now."""
    _refuse_other_settings(study, scores)
    keys = ["transformation", "language", "task_type", "status", "reason"]
    for row in scores[keys].drop_duplicates().to_dict(orient="records"):
        decisions = [
            verdict.decision
            for verdict in verdicts
            if verdict.transformation == row["transformation"]
            and verdict.language in row["language"].split(", ")
            and verdict.task_type in ("", row["task_type"])
        ]
        now = min(decisions, key=_DECISIONS.index, default="without a verdict")
        was = "accepted" if row["status"] == "evaluated" else row["reason"].split(":")[0]
        if row["transformation"] == ORIGINAL or was not in _DECISIONS or (was == "accepted") == (now == "accepted"):
            continue
        file = study.folder / "scores.parquet"
        line = f"{file}: {row['transformation']} ({row['language']}) was {was} when it was written and is {now} now"
        raise DataError(f"{line}; run `{study.command(COMMAND)}` again")


def _refuse_other_settings(study: Study, scores: pd.DataFrame) -> None:
    """Raise DataError for scores by another protocol, precision or generator than the study names now.

    Scores of versions that did not note these pass.
    """
    now = {
        "protocol": study.evaluation.protocol,
        "precision": study.evaluation.precision,
    }
    noted: list[tuple[str, pd.Series[str], str]] = [(name, scores[name], value) for name, value in now.items()]
    hashes = scores.groupby("transformation", sort=False)["generator_hash"]
    makers = makers_of(study)
    noted += [("generator", values, makers[str(name)].hash) for name, values in hashes if name in makers]
    for name, values, value in noted:
        others = sorted(set(values) - {"", value})
        if others:
            what = f"{name} {others[0][:8]!r}, and the study now has {value[:8]!r}"
            line = f"{study.folder / 'scores.parquet'}: made with {what}"
            raise DataError(f"{line}; run `{study.command(COMMAND)}` again")
