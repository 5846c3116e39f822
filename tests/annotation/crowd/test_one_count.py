"""One count: what `plan`, `sample`, `crowd plan`, `status`, the report and the bill print is the same for one study."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from annotation.commands.planning import PlanOptions, plan_text
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Work
from annotation.crowd.summary import read_summaries
from annotation.crowd.tally import Part, Tally
from annotation.export import export
from annotation.ratings.decisions import decide
from annotation.report.exhibits import asked_exhibit
from annotation.report.material import campaign_material
from annotation.report.methods import methods_facts
from annotation.sampling.queues import Queue
from annotation.status.status import read_status
from annotation.status.text import next_step, status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from generation.production import generate
from plumbline.study import ROOT, Study, load_study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import careless, drawn, honest, launch, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.commands import here

WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "kelp", "larch", "maple"]


class Numbers(NamedTuple):
    """A count as it is printed."""

    pairs: int
    to_pairs: int
    answers: int
    cents: int


def printed(text: str) -> list[Numbers]:
    """All counts in a text, in their order."""
    number = r"([\d,]+)"
    line = rf"{number} \w+ by [^;:]*raters? each: {number} answers?(?:; with [^;]*? {number} answers?)?[^$]*?; "
    line += rf"[\d.,]+ hours of work, (?:[^;:\n]*of fees: )?\${number}\.(\d\d)"
    found = []
    for pairs, to_pairs, answers, dollars, cents in re.findall(line, text):
        plain = [int(part.replace(",", "")) for part in (pairs, to_pairs, answers or to_pairs, f"{dollars}{cents}")]
        found.append(Numbers(*plain))
    return found


def texts(folder: Path, *languages: str) -> list[dict[str, Any]]:
    """A data set for each language, of 40 pairs of sentences that have few words in common."""
    datasets = []
    for code in languages:
        rows = [
            [" ".join(f"{WORDS[(i * k + k) % 12]}{code}{i}{side}" for k in range(1, 6)) for side in "ab"]
            for i in range(40)
        ]
        frame = pd.DataFrame(rows, columns=["sentence1", "sentence2"]).assign(score=1.0)
        frame.to_csv(folder / f"{code}.csv", index=False)
        datasets.append({"name": f"of_{code}", "task": "sts", "path": str(folder / f"{code}.csv"), "language": code})
    return datasets


def by_function(name: str, **changes: object) -> dict[str, Any]:
    """A transformation that needs no model."""
    function = f"generation.examples:{name.partition('-')[0]}"
    raters = {"asked": {"en": "The program changed the text."}}
    return {"name": name, "axis": "noise", "function": function, "raters": raters, **changes}


CROWD: dict[str, Any] = {"countries": {"en": ["US"], "de": ["DE"]}, "share": 1.0, "fee": 0.25}
ALONE: dict[str, Any] = {"transformations": ["paraphrasing"], "sample": {"pairs": 24, "batch": 10}}
BLOCKS = {"raters": {"blocks": [8, 16], "per_pair": 2}, "acceptance": {"rule": "lower_bound", "min_pairs": 8}}
BY_CASE = {"transformations": [by_function("casing"), by_function("word_order")]}
SYSTEMS = [by_function(name, queue="systems") for name in ("casing", "word_order")]

#: Nine studies: changes of the sample study, the languages of their own texts, and what `crowd plan` is asked for.
STUDIES: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "one": (ALONE | {"raters": {"per_pair": 2}}, (), ""),
    "languages": (BY_CASE | {"sample": {"pairs": 31, "batch": 8}}, ("en", "de"), ""),
    "pools": ({"transformations": ["translation", "cross_translation"], "sample": {"pairs": 20, "batch": 7}}, (), ""),
    "checks": (ALONE | {"sample": {"pairs": 20, "batch": 9, "controls": 2, "repeats": 3}}, (), ""),
    "blocks": (ALONE | BLOCKS, (), ""),
    "systems": ({"transformations": SYSTEMS, "sample": {"pairs": 15, "batch": 6}}, ("en", "de"), ""),
    "longer": ({"transformations": ["expansion"], "sample": {"pairs": 12}, "crowd": CROWD}, (), "rehearsal"),
    "crowd": (ALONE | {"crowd": CROWD}, (), "rehearsal"),
    "mturk": (
        BY_CASE | {"sample": {"pairs": 20, "batch": 6}, "crowd": CROWD | {"platform": "mturk"}},
        ("en",),
        "mturk",
    ),
}


def studies(variant: Make, folder: Path) -> Iterator[tuple[str, Study, str]]:
    """Each study, and the platform of its crowd."""
    for name, (changes, languages, platform) in STUDIES.items():
        parts = {"datasets": texts(folder, *languages)} if languages else {}
        yield name, variant(name=name, **({"acceptance": {"min_pairs": 4}} | parts | changes)), platform
    yield "texts", load_study(ROOT / "studies" / "texts.yaml", folder / "exports"), ""


def status_of(study: Study) -> str:
    return status_text(read_status(Evidence(study), datetime.now(UTC)), more=True)


def test_every_command_prints_the_same_numbers_for_a_study(variant: Make, tmp_path: Path) -> None:
    """Before anything is drawn, when it is, by batches, in the status and in the report; of ten studies."""
    counts = {}
    for name, study, platform in studies(variant, tmp_path):
        options, study_options = PlanOptions(campaigns=1, pairs=(30,), raters=(2,)), study.arguments.split()
        counts[name] = printed(plan_text(study, options))
        if study.judging.transforms:
            generate(study, allow_code=True)
        sampled = here("sample", *study_options)
        counts[name] += [*printed(sampled.stdout), *printed(status_of(study))]
        if platform:
            counts[name] += printed(here("crowd", "plan", *study_options, "--platform", platform).stdout)
        shown = [pair.pair_id for pair in CampaignRecords(study).shown]
        assert counts[name][0].answers <= len(shown) * study.raters.per_pair
    assert {name for name, found in counts.items() if len(set(found)) != 1} == set(), counts
    assert sorted(map(len, counts.values())) == [3] * 7 + [4] * 3


def test_hours_and_bonuses_do_not_depend_on_the_order_of_batches(variant: Make) -> None:
    """Batches of 8, 8, 9 and 8 pairs at 30 s; 7 pairs that take 10% longer, 231 s, are owed 14 cents more."""
    study = variant(name="hours", crowd=CROWD | {"fee": 0.0})
    sizes = [Part(Queue("a", "en", "en"), n, 0, 0, 2, n, n / 120, 20 * n, 0) for n in (8, 8, 9, 8, 7)]
    orders = {Tally(parts, study).cost_text.partition(",")[0] for parts in itertools.permutations(sizes[:4])}
    assert orders == {"0.6 hours of work"}
    assert Tally((sizes[4],), study).bonuses(0.1) == 28


@pytest.mark.parametrize("how", ["excluded", "rejected"])
def test_answers_that_are_asked_for_again_are_counted_alike_everywhere(
    variant: Make, site: MTurkSite, how: str
) -> None:
    """Two workers for each of 12 pairs; what one of them did is to be done again: 12 of 24 answers, in every place."""
    study = drawn(variant, crowd=CROWD)
    launch(study, site)
    wrong = [site.work(hit, "wrong", site.fields(hit, careless(study))) for hit in site.hits]
    for hit in site.hits:
        site.work(hit, "good", site.fields(hit, honest(study)))
    step(study, site, collect)
    if how == "rejected":
        step(study, site, lambda campaign: judging.reject(campaign, wrong, "controls failed"))
    else:
        works: list[Work] = []
        step(study, site, lambda campaign: works.extend(campaign.ledger.work()))
        rater = next(work.pseudonym for work in works if work.submission.submission_id in wrong)
        decide(study, rater, exclude=True, reason="controls failed")
    at_once = read_status(Evidence(study), datetime.now(UTC))  # nobody is asked again yet
    assert at_once.progress["open"].sum() == 12 and "; 12 of 24 answers are open" in status_text(at_once)
    assert not at_once.progress["verdict"].str.startswith("ready").any()
    assert "crowd launch" in str(next_step(replace(at_once, to_pay=("", ""), decided=True)))
    launch(study, site)
    status = read_status(Evidence(study), datetime.now(UTC))
    assert (status.progress["open"].sum(), status.progress["wanted"].sum()) == (12, 24)
    assert "; 12 of 24 answers are open" in status_text(status)
    assert next_step(status).command.startswith("plumbline crowd approve --all ")  # workers wait for their pay
    assert "12 answers" in str(next_step(replace(status, to_pay=("", ""))))
    accept(study)
    after = read_status(Evidence(study), datetime.now(UTC))
    assert "12 of the 24 answers that the sample needs are still open" in after.doubts
    (planned,) = printed(plan_text(study, PlanOptions(campaigns=1)))
    material = campaign_material(Evidence(study))
    assert material.asked_for is not None
    everything = asked_exhibit(material.asked_for).frame.iloc[-1]
    assert everything[["pairs", "answers_to_pairs", "answers"]].to_list() == list(planned)[:3]
    # Three batches have 6 of the 8 controls: the others were drawn for a pilot that there is not.
    assert everything["controls"] == 6 and methods_facts(material)["controls"][0].startswith("3 positive controls")
    assert "8 controls and repeats, of which raters are asked about 6;" in (export(study) / "codebook.md").read_text()
    (bill,) = read_summaries(Evidence(study))
    assert bill.spent == sum(bill.spent_on.values()) and bill.planned == everything["cents"] == bill.spent_on["post"]
