"""`plumbline plan`: the text that it prints of `annotation.planning.plan`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from annotation.apart import least_difference, originals_needed
from annotation.campaign.records import PAIRS as PAIRS_FILE
from annotation.campaign.rubric import load_rubric
from annotation.crowd.summary import whole_tally
from annotation.crowd.tally import Tally, fee_of, platform_of
from annotation.options import CampaignOptions
from annotation.planning import PAIRS, RATERS, planned, planned_rules, tallies
from annotation.sampling.expected import ExpectedSample
from annotation.sampling.sample import mismatch
from annotation.statistics.summaries import Design
from annotation.status.progress import stages_of
from annotation.variation import RatingVariation, StudyVariations
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.rules import in_words
from annotation.verdicts.systems import asked, other_labels, questions_of
from generation.datasets.loading import iter_datasets
from plumbline.cli import Count, Finite, Seed, Several, StudyOptions, columns, positive, reads
from plumbline.errors import StudyError
from plumbline.exhibits import templates
from plumbline.exhibits.table import number
from plumbline.manifest import stage
from plumbline.statistics.estimates import stream
from plumbline.study import Study
from plumbline.study.campaign import RuleSpec
from plumbline.study.crowd import EXTRA_PAY, PaySpec
from plumbline.study_files import checked


def _deviation(value: str) -> float:
    return 0.0 if value in ("0", "0.0") else positive(value)


_NONE, _EACH = "–", "In each"


def _difference(value: str) -> str:
    positive(value.rpartition("=")[2].removesuffix("%"))
    return value


Deviation = Annotated[float, reads(_deviation), Parameter(metavar="SD")]


@Parameter(name="*")
@dataclass(frozen=True)
class PlanOptions:
    """The sizes and assumptions of a plan; the deviations are those of `RatingVariation`.

    Args:
        pairs: Pairs of each transformation (default: 30, 50, 100 and 200; without --raters also the study's number).
        raters: Raters per pair (default: 2, 3 and 5; without --pairs also the study's number).
        apart: Print how many originals tell two systems apart whose means differ by so many points (0.3), by a part of
            the scale's range (7%), or on one question (ease=7).
        means: True means or shares of labels to try (default: around the threshold or the rules' limits).
        spread: Standard deviation of the pairs' quality, in points (default: of the study's ratings, or by its scale).
            For shares of labels it counts only with --bias and --noise: their proportions do.
        bias: Standard deviation of the raters' habits, in points (default: as for --spread).
        noise: Standard deviation of single ratings, in points (default: as for --spread).
        campaigns: Campaigns to simulate for each number (default: 1000).
        seed: Seed of the simulation (default: the sample's).
    """

    pairs: Annotated[tuple[Count, ...], Several, Parameter(metavar="N...")] = ()
    raters: Annotated[tuple[Count, ...], Several, Parameter(metavar="N...")] = ()
    apart: Annotated[tuple[Annotated[str, reads(_difference)], ...], Several, Parameter(metavar="POINTS...")] = ()
    means: Annotated[tuple[Finite, ...], Several, Parameter(metavar="M...")] = ()
    spread: Deviation | None = None
    bias: Deviation | None = None
    noise: Deviation | None = None
    campaigns: Count = 1000
    seed: Seed | None = None

    @property
    def given(self) -> Mapping[str, float]:
        """The standard deviations that are given."""
        deviations = {"spread": self.spread, "bias": self.bias, "noise": self.noise}
        return {name: value for name, value in deviations.items() if value is not None}


def plan_study(*, options: CampaignOptions, planning: PlanOptions = PlanOptions()) -> StudyOptions:
    """Estimate the number of pairs and raters that you need, and their cost.

    Example: plumbline plan --study studies/demo.yaml

    Args:
        options: The study.
        planning: The sizes and assumptions.
    """
    study = checked(options)
    with stage(study, "plan"):
        print((apart_text if planning.apart else plan_text)(study, planning))
    return options


def plan_text(study: Study, planning: PlanOptions) -> str:
    """Return the output of `plumbline plan`: assumptions, a row for each size, and how to read it.

    Long: a table and the sentences that belong to its columns.
    """
    study.refuse_unfit("plan")
    rubric = load_rubric(study)
    design = Design.of(study, rubric)
    rule = design.rule
    by_blocks = bool(study.raters.blocks)
    study_size, (judged, item) = (study.sample.pairs, study.raters.per_pair), study.called
    sizes = sizes_asked(study_size, planning, by_blocks=by_blocks)
    seed = study.sample.seed if planning.seed is None else planning.seed
    expected = ExpectedSample.of(study, rubric)
    assumed = planning.means, planning.given, planning.campaigns, seed
    outlooks, asked_for, there_are = planned(expected, sizes, *assumed)
    if (drawn := drawn_tally(study)) is not None:
        asked_for, of_study = drawn, (outlooks["pairs"] == study_size[0]) & (outlooks["raters"] == study_size[1])
        outlooks.loc[of_study, ["dollars", "answers", "hours"]] = [drawn.cost / 100, drawn.answers, drawn.hours]
    systems, variations, tables = systems_of(study), StudyVariations(study, design, planning.given), []
    languages = languages_of(expected) if systems > 1 else 1
    shares = {"Apart": languages if by_language(study) else 1}  # of the pairs: one in so many is compared
    shares |= {_EACH: languages} if languages > 1 and not by_blocks else {}
    for part in planned_rules(design):
        scale = design.asked(part.question).judged_scale
        variation, of_part = (
            variations.of(part.question, part.label),
            outlooks[outlooks["rule"] == in_words(part)].copy(),
        )
        if systems > 1:
            _add_least_differences(of_part, shares, study, variation.between_systems(scale), systems)
        table = _table(of_part, part, item, by_blocks=by_blocks)
        facts = {"words": in_words(part), "deviations": variation.shown(scale), "source": variation.source}
        tables.append({**facts, "ends": (scale[0], scale[-1]), "rows": table})
    facts = {
        "study": study,
        "systems": systems,
        "languages": languages,
        "by_language": by_language(study),
        "rule": rule,
        "campaigns": planning.campaigns,
        "seed": seed,
        "judged": judged,
        "item": item,
        "of_study": study_size if sizes[0] == study_size else None,
        "unread": expected.unread,
        "asked": asked_for,
        "there_are": there_are if (outlooks["pairs"] > there_are).any() else None,
        "fees": fees_in_words(study),
        "tables": tables,
        "shown": shown_in(str(tables[0]["rows"])),
        "means": outlooks["mean"].tolist(),
        "shares": any(part.label for part in rule.rules),
        "pooled": study.judging.transforms and {"translation", "cross_translation"} <= set(study.kinds),
        "never": bool(outlooks["right"].isna().any()),
        "paid": study.crowd.pay if study.crowd else PaySpec(),
        "extra": {n: share for n, share in EXTRA_PAY.items() if n in study.kinds},
    }
    return templates.text("annotation/plan.jinja", facts)


def shown_in(table: str) -> str:
    """Return a table without the names of the columns that the terminal is too narrow for."""
    return table.partition("left out: ")[0]


def _add_least_differences(
    sizes: pd.DataFrame, shares: Mapping[str, int], study: Study, rated: RatingVariation, systems: int
) -> None:
    """Add to each size how far apart two systems must be; of its pairs one in so many as a column's share counts."""
    ends = study.raters.blocks[-1:]  # with blocks, no more pairs are rated
    for name, share in shares.items():
        sizes[name] = [
            least_difference((min([pairs, *ends]), raters), math.comb(systems, 2), rated, looks_of(study))
            for pairs, raters in zip(sizes["pairs"] // share, sizes["raters"], strict=True)
        ]


def fees_in_words(study: Study) -> str:
    """Return whether costs have a platform's fees."""
    return f"{'with the' if fee_of(study, platform_of(study))(100, 1) else 'without a'} platform's fees"


def drawn_tally(study: Study) -> Tally | None:
    """Return what the sample asks of people; None unless it is drawn as the study says now, for its own raters."""
    evidence = Evidence(study)
    if not evidence.has(PAIRS_FILE) or not evidence.offered:
        return None
    stages = stages_of(evidence, evidence.manifest, mismatch(evidence, evidence.shown))
    return whole_tally(evidence) if stages["sample"].state == "done" else None


def systems_of(study: Study) -> int:
    """Return how many systems the study compares."""
    return sum(kind.queue != "" for kind in study.kinds.values()) if study.judging.transforms else 0


def languages_of(expected: ExpectedSample) -> int:
    """Return in how many languages systems are compared, as far as is known."""
    return max((len({language for language, _ in texts}) for texts in expected.texts.values()), default=1)


def by_language(study: Study) -> bool:
    """Return whether systems are compared in each language alone, not over all together too: after blocks."""
    return bool(study.raters.blocks) and study.acceptance.scope == "language"


def looks_of(study: Study) -> list[float]:
    """Return the shares of the originals after which the study looks."""
    blocks = study.raters.blocks
    return [end / blocks[-1] for end in blocks] or [1.0]


def differences_of(design: Design, systems: int) -> dict[tuple[str, str], int]:
    """Return for how many differences Holm's correction is, by question and label."""
    unruled = list(other_labels(design))
    n_labels = Counter(question for question, _ in unruled)
    return {
        (question, label): math.comb(systems, 2) * (n_labels[question] if (question, label) in unruled else 1)
        for question, label in questions_of(design)
    }


def apart_text(study: Study, planning: PlanOptions) -> str:
    """Return the output of `plumbline plan --apart`: the originals that tell two systems apart, for each question.

    Long: a table and the sentences that belong to its columns.
    """
    study.refuse_unfit("plan")
    systems, rubric = systems_of(study), load_rubric(study)
    if not study.judging.transforms:
        raise StudyError(
            f"{study.file}: --apart compares the mean ratings of systems' outputs of the same originals, and this study"
            f" judges {study.judging.kind}; leave it out"
        )
    if systems < 2:
        raise StudyError(
            f"{study.file}: --apart compares systems, and fewer than two transformations share a `queue`; give those"
            " to compare the same one"
        )
    design, there_are = Design.of(study, rubric), originals_in(study)
    variations, expected = StudyVariations(study, design, planning.given), ExpectedSample.of(study, rubric)
    apart_by = apart_by_question(study, design, planning.apart)
    seed = study.sample.seed if planning.seed is None else planning.seed
    looks, most = looks_of(study), there_are or math.inf
    n_languages, beyond = languages_of(expected), False
    each = n_languages > 1 and not study.raters.blocks
    sources, rows, corrected = [], [], differences_of(design, systems)
    for (question, label), differences in corrected.items():
        name, scale = asked(question, label), design.asked(question).judged_scale
        if not apart_by[name]:
            continue
        variation = variations.of(question, label)
        deviations = {part: f"{value:.3g}" for part, value in asdict(variation.shown(scale)).items()}
        words = {"question": name, "source": variation.source, "ends": (scale[0], scale[-1])}
        sources.append({**words, "unlike": variation.apart, "leaning": variation.leaning, **deviations})
        for apart, raters in itertools.product(apart_by[name], planning.raters or (study.raters.per_pair,)):
            generator = stream(seed, "apart", name, str(raters), f"{apart:g}")
            needed = originals_needed(
                apart, raters, differences, variation, scale, generator, looks=looks, campaigns=planning.campaigns,
            )  # fmt: skip
            of_each = needed[0] * n_languages, needed[1] * n_languages
            needed = of_each if by_language(study) else needed
            beyond |= max(*needed, *(of_each if each else ())) > most
            ranges = [_range(needed), *([_range(of_each)] if each else [])]
            rows.append([name, str(raters), f"{apart:g}", *ranges, *_prices(expected, needed[1], raters)])
    header = ["Question", "Raters", "Apart", "Originals", *([_EACH] if each else [])]
    table = columns([*header, "Dollars", "Answers", "Hours"], rows)
    facts = {
        "study": study,
        "systems": systems,
        "campaigns": planning.campaigns,
        "seed": seed,
        "sources": sources,
        "table": table,
        "there_are": there_are,
        "beyond": beyond,
        "languages": n_languages,
        "by_language": by_language(study),
        "fees": fees_in_words(study),
        "over_raters": design.rule.interval != "pairs",
        "by_labels": max(corrected.values(), default=0) > math.comb(systems, 2),
    }
    return templates.text("annotation/apart.jinja", facts)


def apart_by_question(study: Study, design: Design, apart: Sequence[str]) -> dict[str, list[float]]:
    """Return what `--apart` names by question, in points or a label's share. Raises StudyError for another question."""
    sizes, points, names = dict[str, list[str]](), dict[str, list[float]](), [""]
    for value in apart:
        question, _, size = value.rpartition("=")
        sizes.setdefault(question, []).append(size)
    for question, label in questions_of(design):
        name, scale = asked(question, label), design.asked(question).judged_scale
        names += [question, name]
        of_question = sizes.get(name) or sizes.get(question) or sizes.get("", [])
        times = {size: (scale[-1] - scale[0]) / 100 if size.endswith("%") else 1 for size in of_question}
        points[name] = [float(size.removesuffix("%")) * times[size] for size in of_question]
    if unknown := [question for question in sizes if question not in names]:
        every = ", ".join(dict.fromkeys(names[1:]))
        raise StudyError(f"{study.file}: --apart names {unknown[0]!r}, which is none of {every}")
    return points


def _prices(expected: ExpectedSample, originals: float, raters: int) -> list[str]:
    """Return dollars, answers and hours of so many originals, with blocks that end with them."""
    if math.isnan(originals):
        return [_NONE] * 3
    study, size = expected.study, (int(originals), raters)
    if study.raters.blocks:
        last = originals / (languages_of(expected) if study.acceptance.scope == "language" else 1)
        ends = tuple(dict.fromkeys(math.ceil(share * last) for share in looks_of(study)))
        study = study.model_copy(update={"raters": study.raters.model_copy(update={"blocks": ends})})
    tally = tallies(replace(expected, study=study), [size])[0][size]
    return [f"{tally.cost / 100:,.0f}", f"{tally.answers:,}", f"{tally.hours:,.1f}"]


def _range(ends: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(_NONE if math.isnan(n) else f"{n:,.0f}" for n in ends))


def originals_in(study: Study) -> int | None:
    """Return how many texts the study has, with each seed; None where data sets are not on this machine."""
    if not all(dataset.path and (study.file.parent / dataset.path).exists() for dataset in study.datasets):
        return None
    return sum(len({text.text for text in dataset.texts()}) for dataset in iter_datasets(study)) * len(study.seeds)


def sizes_asked(
    study_size: tuple[int, int], planning: PlanOptions, *, by_blocks: bool = False
) -> list[tuple[int, int]]:
    """Return (pairs of a transformation, raters) to plan: the command line's, or the study's and usual ones.

    With blocks (`by_blocks`), which say how many pairs are rated, other numbers of pairs are not usual.
    """
    numbers = planning.pairs or ([study_size[0]] if by_blocks else PAIRS)
    sizes = [(pairs, raters) for pairs in numbers for raters in planning.raters or RATERS]
    return sizes if planning.pairs or planning.raters else list(dict.fromkeys([study_size, *sizes]))


def _table(planned: pd.DataFrame, judged: RuleSpec, item: str, *, by_blocks: bool) -> str:
    """A row for each size: the price, shares of right verdicts by true mean, width of the interval, and pairs used.

    What answers comes first: a narrow terminal leaves the last columns out. `planned` are the rows of `plan` of one
    rule, with the differences between systems that each size finds; `item` is what raters see. At the threshold itself
    the share accepted is shown.
    """
    means = planned["mean"].drop_duplicates()
    items = f"{item}s".capitalize()
    split = (planned["pairs"] != planned["verdict_pairs"]).any()
    header = [
        items,
        "Raters",
        *(apart := [name for name in ("Apart", _EACH) if name in planned]),
        "Dollars",
        *(f"at {mean:g}" for mean in means),
        *(["In a verdict"] if split else []),
        "Width",
        *([f"{items} used"] if by_blocks else []),
    ]
    rows = []
    for (pairs, raters), group in planned.groupby(["pairs", "raters"], sort=False):
        shares = group["accepted"].where((group["mean"] == judged.limit) & group["right"].notna(), group["right"])
        last = group.iloc[-1]
        rows.append(
            [
                str(pairs),
                str(raters),
                *(number(last[name]) for name in apart),
                f"{last['dollars']:,.0f}",
                *("never" if math.isnan(share) else f"{share:.1%}" for share in shares),
                *([str(last["verdict_pairs"])] if split else []),
                _NONE if math.isnan(last["width"]) else f"{last['width']:.2f}",
                *([f"{group['used'].min():.0f} to {group['used'].max():.0f}"] if by_blocks else []),
                f"{last['answers']:,.0f}",
                f"{last['hours']:,.1f}",
            ]
        )
    return columns([*header, "Answers", "Hours"], rows)
