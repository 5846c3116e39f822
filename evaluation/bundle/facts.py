"""What a bundle's data card, its tasks for mteb and `inspect` say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from evaluation.bundle.records import BundleManifest

SIMULATED = "Its ratings are SIMULATED: no person accepted these texts, and scores on them measure nothing."


@dataclass(frozen=True)
class BundleFacts:
    """The facts about a bundle: its study's name, description and generator, its manifest, verdicts and ratings."""

    study: str
    description: str
    generator: Mapping[str, Any]
    manifest: BundleManifest
    verdicts: Sequence[Verdict]
    ratings: pd.DataFrame

    @property
    def simulated(self) -> bool:
        """Whether any of the ratings is simulated."""
        return bool(self.ratings["simulated"].any())

    @property
    def rated(self) -> tuple[str, str]:
        """The dates of the first and the last rating."""
        times = self.ratings.loc[self.ratings["status"] == "submitted", "submitted_at"]
        return (f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}")

    @property
    def warnings(self) -> list[str]:
        """The warnings about the verdicts: simulated ratings, and rules that were fixed late."""
        return [*([SIMULATED] if self.simulated else []), *late_lines(self.verdicts)]

    @property
    def title(self) -> str:
        """The study's name with the version."""
        return f"{self.study}, version {self.manifest.version}"

    @property
    def made(self) -> str:
        """The generator and the dates of the ratings; without a generator functions or files transformed the texts."""
        kind, model = (self.generator.get(name, "") for name in ("kind", "model"))
        named = "none (functions or files transformed the texts)" if kind == "none" else f"{model} ({kind})"
        return f"generator: {named}; rated from {self.rated[0]} to {self.rated[1]}"

    @property
    def claims(self) -> list[str]:
        """The maker's own statements that nobody can check."""
        manifest, comments = self.manifest, "included" if (self.ratings["comment"] != "").any() else "left out"
        return [
            self.title,
            *([self.description] if self.description else []),
            f"{self.made}; bundle made with Plumbline {manifest.made_with}",
            f"licence of outputs and ratings: {manifest.licence or 'none given'}; raters' comments: {comments}",
        ]
