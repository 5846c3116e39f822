"""What follows from a study's ratings, for tests."""

from __future__ import annotations

from annotation.verdicts.conclusion import Conclusion
from annotation.verdicts.evidence import Evidence
from plumbline.study import Study


def concluded(study: Study) -> Conclusion:
    """Verdicts, agreement and means as they follow from the ratings now, looked at or not."""
    return Conclusion(Evidence(study), study.sample.seed)
