"""Pairs out to people, ratings back, verdicts; what Python users import of it is loaded when it is asked for."""

from __future__ import annotations

from plumbline.lazily import lazily

TYPE_CHECKING = False  # type checkers take it for true; `typing` would be imported before Ctrl-C is heeded
if TYPE_CHECKING:
    from annotation.planning import plan
    from annotation.sampling.sample import draw_sample
    from annotation.statistics.frames import ac2, alpha, kappa, mean_interval
    from annotation.statistics.summaries import Design
    from annotation.verdicts.frames import judge
    from plumbline.study.campaign import AcceptanceSpec

__all__ = ["AcceptanceSpec", "Design", "ac2", "alpha", "draw_sample", "judge", "kappa", "mean_interval", "plan"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "annotation.planning": ["plan"],
        "annotation.sampling.sample": ["draw_sample"],
        "annotation.statistics.frames": ["ac2", "alpha", "kappa", "mean_interval"],
        "annotation.statistics.summaries": ["Design"],
        "annotation.verdicts.frames": ["judge"],
        "plumbline.study.campaign": ["AcceptanceSpec"],
    },
)
