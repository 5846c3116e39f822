"""Send pairs to people, collect ratings, reach verdicts. Names that Python users import are loaded on first use."""

from __future__ import annotations

from plumbline.importing import lazily

TYPE_CHECKING = False  # type checkers take it for true; `typing` would be imported before Ctrl-C is heeded
if TYPE_CHECKING:
    from annotation.imports.command import import_ratings
    from annotation.planning import plan
    from annotation.sampling.sample import draw_sample
    from annotation.statistics.frames import ac2, alpha, kappa, mean_interval
    from annotation.statistics.preferences import bradley_terry
    from annotation.statistics.summaries import Design
    from annotation.statistics.systems import side_by_side
    from annotation.verdicts.frames import judge
    from plumbline.statistics.group_sequential import Blocks, Criterion, looks
    from plumbline.statistics.reliability import icc, z_scores
    from plumbline.statistics.truth import dawid_skene, majority
    from plumbline.study.campaign import AcceptanceSpec

__all__ = [
    "AcceptanceSpec",
    "Blocks",
    "Criterion",
    "Design",
    "ac2",
    "alpha",
    "bradley_terry",
    "dawid_skene",
    "draw_sample",
    "icc",
    "import_ratings",
    "judge",
    "kappa",
    "looks",
    "majority",
    "mean_interval",
    "plan",
    "side_by_side",
    "z_scores",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "annotation.imports.command": ["import_ratings"],
        "annotation.planning": ["plan"],
        "annotation.sampling.sample": ["draw_sample"],
        "annotation.statistics.frames": ["ac2", "alpha", "kappa", "mean_interval"],
        "annotation.statistics.preferences": ["bradley_terry"],
        "annotation.statistics.summaries": ["Design"],
        "annotation.statistics.systems": ["side_by_side"],
        "annotation.verdicts.frames": ["judge"],
        "plumbline.statistics.group_sequential": ["Blocks", "Criterion", "looks"],
        "plumbline.statistics.reliability": ["icc", "z_scores"],
        "plumbline.statistics.truth": ["dawid_skene", "majority"],
        "plumbline.study.campaign": ["AcceptanceSpec"],
    },
)
