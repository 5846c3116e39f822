"""The crowd that is shipped: a campaign practised by commands alone, and nothing of it ever among real ratings."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from annotation import server
from annotation.campaign.offering import LEDGER
from annotation.campaign.records import BLOCK_LOOKS, CampaignRecords
from annotation.commands.planning import PlanOptions, plan_text
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.pay import dollars
from annotation.crowd.platform import platform_class
from annotation.crowd.rehearsal import MadeUpCrowd, worker_of
from annotation.crowd.summary import read_summaries
from annotation.csv_answers import collect_csv
from annotation.export import export
from annotation.human.order import pages_shown
from annotation.preview import write_preview
from annotation.ratings.answers import Answer, SourcePart, answers_line, keep
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.status.next_step import next_step
from annotation.status.progress import stages_of
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest, stage
from plumbline.study import Study, load_study
from tests import forks
from tests.annotation.campaigns import SYSTEMS, Make, systems
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.campaigns import CROWD, drawn, honest, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.test_bill import printed as counts_in
from tests.annotation.crowd.test_commands import Crowd, crowd  # noqa: F401 (a fixture)
from tests.annotation.sampling.test_queues import RULE
from tests.shared import generate_once

PLAY = ("--platform", "rehearsal", "--max-cost", "100", "--yes")


def practise(study: Study, crowd: Crowd) -> list[str]:  # noqa: F811
    """A whole campaign, as the tutorial has it; what was printed."""
    printed = [crowd(study, "plan", "--platform", "rehearsal"), crowd(study, "launch", *PLAY)]
    for _ in range(12):
        printed += [crowd(study, "collect"), crowd(study, "approve", "--all")]
        (_, collected, _), (_, approved, _) = printed[-2:]
        assert ("Next: plumbline crowd approve --all " in collected) == ("] 0 submissions approved" not in approved)
        waiting = [line.split()[1] for line in crowd(study, "review")[1].splitlines() if line.split()[3:4] == ["ask"]]
        # Who came after `collect` is read first.
        assert any(f"Next: plumbline {step} " in approved for step in ("review", "collect")) == bool(waiting)
        if waiting:
            printed.append(crowd(study, "reject", *waiting, "--reason", "failed the controls, and gave no reason"))
            printed.append(crowd(study, "status"))
        printed.append(crowd(study, "launch", *PLAY[2:]))
        if "0 are open, 0 wait" in printed[-1][1]:
            assert "no page: workers are made up" not in printed[-1][1]  # there is no batch to try
            break
    owed = re.findall(r"Next: plumbline crowd bonus .*(--max-cost) (\d+)", printed[-1][1])
    printed.append(crowd(study, "bonus", *(owed[0] if owed else PLAY[2:4]), "--yes"))
    assert ("] 0 bonuses paid" in printed[-1][1]) != bool(owed), printed[-1]
    printed += [crowd(study, "close"), crowd(study, "status")]
    assert all(code == 0 for code, *_ in printed), printed
    return [out for _, out, _ in printed]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.timeout(900)  # many commands, on a busy machine
def test_a_campaign_is_practised_without_a_key_and_every_line_says_so(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    """Also where the study names the platform of its people: a rehearsal that runs is what is meant."""
    named: dict[str, Any] = {"platform": "link", "link": {"preset": "connect"}}
    changes = {"fee": 0.333, "share": 1.0, **named}  # $0.20 a pair
    sample = {"pairs": 12, "batch": 4, "repeats": 0, "seed": 3}  # somebody gives up, and somebody is careless
    study = drawn(variant, sample=sample, crowd={**CROWD, **changes})
    printed = practise(study, crowd)
    assert "Pay: $24 an hour at 30 s a pair; where" in printed[0] and "less than" not in printed[0]
    lines = [line for text in printed for line in text.partition("Next: ")[0].splitlines()]
    assert len(lines) > 30 and all(line.startswith("[REHEARSAL]") for line in lines)
    sums = re.findall(r"(\$[\d.,]+)(?: planned)? \(([^)]+)\)", "".join(line for line in lines if " money: " in line))
    assert len(sums) >= 4
    for total, parts in sums:
        amounts = [float(amount.replace("$", "")) for amount in re.findall(r"-?\$[\d.]+", parts)]
        assert f"${sum(amounts):.2f}" == total
    # Six pairs in a batch at $0.20; 33.3% of $1.20, rounded up, is $0.40 for each of two workers.
    assert re.search(r"\$3\.20 +\$1\.20 +\$0\.80", printed[0])
    ratings = CampaignRecords(study).all_ratings
    assert set(ratings["source"]) == {"REHEARSAL"} and ratings["simulated"].all()
    assert ratings["rater_id"].str.startswith("simulated-worker-").all() and set(ratings["comment"]) == {"REHEARSAL"}
    account = json.loads((study.scratch / "rehearsal.json").read_text(encoding="utf-8"))
    states = Counter(work["state"] for work in account["notes"]["submissions"])
    assert states["submitted"] >= 6 and states["returned"]  # somebody gave up, and was replaced
    rewards = [payment for payment in account["payments"] if payment["kind"] == "reward"]
    assert len(rewards) >= 6 and {payment["cents"] for payment in rewards} == {120}
    with Ledger(study.scratch / LEDGER, study.name, "rehearsal", "sandbox") as ledger:
        bonuses = [payment["cents"] for payment in account["payments"] if payment["kind"] == "bonus"]
        cents = sum(120 + 40 for _ in rewards) + sum(paid + -(-paid * 333 // 1000) for paid in bonuses)
        assert ledger.spent() == cents
    planned, *_ = counts_in(printed[0])
    assert counts_in(plan_text(study, PlanOptions(campaigns=1))) == [planned]
    (bill,) = read_summaries(Evidence(study))
    assert (bill.planned, bill.spent, bill.bonuses_to_come) == (planned.cents, cents, 0)
    assert bill.spent == bill.in_all == sum(bill.spent_on.values()) and bill.spent_on["bonus"] > 0
    assert f"{dollars(cents)} planned ({dollars(planned.cents)} for batches, " in printed[-1]
    accept(study)
    report = write_report(study)[0]
    assert pd.read_csv(report.with_name("asked.csv"))["answers"].iloc[-1] == planned.answers
    assert "SIMULATED RATINGS, A REHEARSAL" in report.read_text(encoding="utf-8")
    rows = pd.read_csv(report.with_name("crowd_campaigns.csv"))
    assert rows["Platform"].to_list() == ["REHEARSAL, a made-up crowd"]
    assert set(pd.read_csv(export(study) / "ratings.csv")["source"]) == {"REHEARSAL"}
    removed = crowd(study, "close", "--platform", "rehearsal", "--forget")[1]
    assert not list((study.folder / "export").iterdir()) and all(name in removed for name in ("report/", "snapshots/"))


def test_after_a_rehearsal_the_next_step_is_real_workers(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    """The rehearsal's plan is none of theirs, and they are not asked before the study names their platform."""
    study = drawn(variant)
    with stage(study, "preview", [], [write_preview(CampaignRecords(study))]):
        pass
    assert crowd(study, "launch", *PLAY)[0] == 0
    unread = crowd(study, "approve", "--all")[1]  # nobody decides about answers that were not read
    assert "not been collected yet" in unread and f"Next: plumbline collect {study.arguments}" in unread
    assert [crowd(study, *words)[0] for words in (("collect",), ("close",))] == [0, 0]
    after = crowd(study, "close", *PLAY[:2], "--forget")[1]
    assert f"Next: plumbline crowd plan --platform prolific --live {study.arguments}" in after
    assert "name crowd.platform in the study" in after and not read_summaries(Evidence(study))
    assert study.crowd is not None
    named = study.model_copy(update={"crowd": study.crowd.model_copy(update={"platform": "link"})})
    following = next_step(read_status(Evidence(named), datetime.now(UTC)))
    assert following.command == f"plumbline crowd plan --platform link --live {study.arguments}"


@pytest.mark.usefixtures("without_next")
def test_each_worker_saw_the_outputs_of_a_page_in_an_order_of_their_own(tmp_path: Path, crowd: Crowd) -> None:  # noqa: F811
    study = systems(tmp_path, *SYSTEMS, sample={"pairs": 6, "together": True, "batch": 9}, crowd=CROWD)
    crowd(study, "launch", *PLAY)
    for _ in range(4):
        assert crowd(study, "collect")[0] == 0
    ratings = CampaignRecords(study).ratings.drop_duplicates(["pair_id", "rater_id"])
    pages = ratings["pair_id"].map(pages_shown(study, CampaignRecords(study).shown))
    seen = ratings.assign(page=pages).sort_values("turn").groupby(["batch", "rater_id", "page"])
    assert len(seen) >= 4
    for _, page in seen:
        assert page["order"].to_list() == ["1", "2", "3"] and page["turn"].max() - page["turn"].min() == 2
    assert len({tuple(page["transformation"]) for _, page in seen}) > 1


def test_the_same_seed_gives_the_same_crowd(variant: Make, tmp_path: Path) -> None:
    study = drawn(variant)
    accounts = []
    for name in ("a", "b"):
        copy = campaigns.copied(study, tmp_path / name)
        for command in (lambda campaign: campaign.launch(), collect, collect):
            assert campaigns.run(copy, lambda copy=copy: MadeUpCrowd(copy), command, 10**6)
        works = json.loads((copy.scratch / "rehearsal.json").read_text(encoding="utf-8"))["notes"]["submissions"]
        accounts.append([{**work, "submitted_at": ""} for work in works])
    assert accounts[0] == accounts[1] and accounts[0]
    workers = [worker_of(1, number) for number in range(1000)]
    assert 60 < sum(worker.rater.noise == 8 for worker in workers) < 120  # the careless
    assert len({worker.speed for worker in workers}) == 1000


@pytest.mark.usefixtures("without_next")
def test_the_limit_is_practised_and_live_is_refused(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    study = drawn(variant, crowd={**CROWD, "share": 1.0, "fee": 0.25})
    assert "a rehearsal spends money and needs a limit; add --max-cost DOLLARS" in crowd(study, "launch", *PLAY[:2])[2]
    code, _, complaint = crowd(study, "launch", *PLAY, "--live")
    assert code == 2 and "a rehearsal is never live" in complaint
    code, out, complaint = crowd(study, "launch", "--platform", "rehearsal", "--max-cost", "6.01", "--yes")
    assert "2 batches offered now" in out and "$6.00 is already spent or reserved, and the limit is $6.01" in complaint


@pytest.mark.usefixtures("without_next")
def test_a_rehearsal_never_stands_beside_people(variant: Make, crowd: Crowd, site: MTurkSite) -> None:  # noqa: F811
    study = drawn(variant)
    crowd(study, "launch", *PLAY)
    assert crowd(study, "collect")[0] == 0 and len(CampaignRecords(study).all_ratings)
    code, _, complaint = crowd(study, "launch", "--platform", "mturk", "--live", "--max-cost", "50", "--yes")
    assert code == 2 and "--forget --platform rehearsal" in complaint and not site.hits
    code, _, complaint = crowd(study, "plan", "--platform", "mturk", "--live")
    assert (
        code == 2 and "its ratings are a rehearsal's; remove the rehearsal first: `plumbline crowd close" in complaint
    )
    accept(study)
    assert len(CampaignRecords(study).looks) == 1
    code, out, _ = crowd(study, "close", "--platform", "rehearsal", "--forget")
    assert code == 0 and "and everything else of the rehearsal removed" in out
    assert not CampaignRecords(study).looks and not (study.folder / "verdicts.json").exists()
    stages = stages_of(CampaignRecords(study), Manifest.of(study).read(), "")
    assert stages["collected"].state == stages["verdicts"].state == "not yet"
    assert not len(CampaignRecords(study).all_ratings) and not (study.scratch / "rehearsal.json").exists()
    assert crowd(study, "launch", "--platform", "mturk", "--live", "--max-cost", "50", "--yes")[0] == 0
    (hit,) = site.hits
    site.work(hit, "A", site.fields(hit, honest(study)))
    step(study, site, collect)
    people = CampaignRecords(study).all_ratings
    assert len(people) and not people["simulated"].any()
    code, _, complaint = crowd(study, "launch", *PLAY)
    assert code == 2 and "which must not be mixed with those of a rehearsal" in complaint
    assert CampaignRecords(study).all_ratings.equals(people)
    settings = yaml.safe_load(study.file.read_text())
    study.file.write_text(yaml.safe_dump({name: value for name, value in settings.items() if name != "crowd"}))
    steps = crowd(study, "plan", "--platform", "rehearsal")[2].strip().partition("another name: ")[2].split(" && ")
    shell = " && ".join(step for step in steps if not step.startswith("plumbline "))
    subprocess.run(["bash", "-c", shell], check=True)
    copy = load_study(study.file.with_name("crowd-practice.yaml"), exports=study.folder.parent)
    assert [step.split()[1] for step in steps[-3:]] == ["generate", "sample", "crowd"] and copy.crowd is not None
    generate_once(copy)
    draw_sample(copy)
    assert crowd(copy, *steps[-1].split()[2:5])[0] == 0


@pytest.mark.usefixtures("without_next")
def test_a_look_after_a_block_of_a_rehearsal_decides_nothing_of_people(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    study = drawn(
        variant,
        sample={"pairs": 24, "batch": 8, "repeats": 0},
        raters={"per_pair": 2, "blocks": [8, 16, 24]},
        acceptance=RULE,
    )
    for _ in range(8):
        for words in (("launch", *PLAY), ("collect",), ("approve", "--all")):
            crowd(study, *words)
        if len(CampaignRecords(study).all_ratings):
            accept(study)
        if CampaignRecords(study).block_looks:
            break
    assert CampaignRecords(study).block_looks
    assert crowd(study, "close", "--platform", "rehearsal", "--forget")[0] == 0
    assert not CampaignRecords(study).models(BLOCK_LOOKS)


@pytest.mark.usefixtures("without_next")
def test_ratings_of_a_rehearsal_are_refused_beside_a_files(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    study = drawn(variant)
    crowd(study, "launch", *PLAY)
    assert crowd(study, "collect")[0] == 0
    ratings = CampaignRecords(study).all_ratings
    values, at = {"quality": 4, "fluency": 4}, "2026-03-01T12:00:00+00:00"
    rated = Answer(pair_id=ratings["pair_id"][0], rater_id="rater-0a1b2c3d", values=values, submitted_at=at)
    with pytest.raises(DataError, match="close --forget"):
        keep(CampaignRecords(study), "answers.csv", {"": SourcePart("", (rated,))}, replace=False)
    assert CampaignRecords(study).all_ratings.equals(ratings)


def test_exported_ratings_of_a_rehearsal_are_refused_in_a_study_of_people_and_the_other_way(
    variant: Make, tmp_path: Path
) -> None:
    study, path, home = drawn(variant), tmp_path / "a.csv", server.Home(tmp_path / "home")
    pair, columns = (
        CampaignRecords(study).pairs[0].pair_id,
        {name: name for name in ("pair", "rater", "quality", "fluency")},
    )

    def take(name: str, *raters: str) -> None:
        file = path.with_name(name)
        file.write_text("pair,rater,quality,fluency\n" + "".join(f"{pair},{rater},4,4\n" for rater in raters))
        collect_csv(study, home, file, columns)

    made_up = ["simulated-worker-0a1b2c3d4e5f", "simulated-0a1b2c3d"]
    for first, second in ((["ada"], made_up), (made_up, ["ada"])):
        take("first.csv", *first)
        before = CampaignRecords(study).all_ratings
        for raters in (second, [*second, *first]):
            with pytest.raises(DataError, match="under another study name"):
                take("second.csv", *raters)
        assert CampaignRecords(study).all_ratings.equals(before) and before["simulated"].nunique() == 1
        with contextlib.nullcontext() if first == ["ada"] else pytest.raises(StudyError, match="another study name"):
            platform_class("link").refuse(CampaignRecords(study))  # before workers are paid for answers
        keep(CampaignRecords(study), "first.csv", {}, replace=True)
    take("first.csv", "ada", "bob", "cleo", "dan")
    per_pair = study.raters.per_pair
    assert f"{4 - per_pair} do not count: a pair's first {per_pair} do" in answers_line(CampaignRecords(study))


def start(study: Study, home: Path, name: str, *words: str) -> forks.Popen:
    options = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home)]
    command = [sys.executable, "-m", "plumbline", *([] if name == "collect" else ["crowd"]), name, *options, *words]
    return forks.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_command_that_is_killed_and_given_again_pays_nobody_twice(variant: Make, tmp_path: Path) -> None:
    study = drawn(variant, sample={"pairs": 4, "batch": 4, "repeats": 0}, acceptance={"min_pairs": 4},
                  crowd={**CROWD, "share": 1.0, "fee": 0.0})  # fmt: skip
    chance, took = random.Random(38), 0.0
    rounds = [("launch", *PLAY), ("collect",), ("approve", "--all"), ("launch", *PLAY[2:]), ("collect",),
              ("approve", "--all"), ("bonus", *PLAY[2:])]  # fmt: skip
    killed = 0
    for name, *words in rounds:
        for part in (0.4, 0.8) if took else ():  # of the time that the command before took
            process = start(study, tmp_path, name, *words)
            time.sleep(took * chance.uniform(part - 0.2, part + 0.2))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        began = time.monotonic()
        process = start(study, tmp_path, name, *words)
        out, err = process.communicate()
        took = time.monotonic() - began
        assert process.returncode == 0, (name, out, err)
    account = json.loads((study.scratch / "rehearsal.json").read_text(encoding="utf-8"))
    for kind in ("reward", "bonus"):
        paid = Counter(row["submission_id"] for row in account["payments"] if row["kind"] == kind)
        assert set(paid.values()) <= {1}
    assert len({offer["batch_id"] for offer in account["offers"]}) == len(account["offers"])
    states = {work["submission_id"]: work["state"] for work in account["notes"]["submissions"]}
    states |= {row["submission_id"]: row["decision"] for row in account["decisions"]}
    (reward,) = {offer["reward"] for offer in account["offers"]}
    held = sum(state not in ("returned", "rejected") for state in states.values())  # paid, or at work still
    bonuses = sum(row["cents"] for row in account["payments"] if row["kind"] == "bonus")
    rewards = [row for row in account["payments"] if row["kind"] == "reward"]
    assert len(rewards) == list(states.values()).count("approved") > 0
    with Ledger(study.scratch / LEDGER, study.name, "rehearsal", "sandbox") as ledger:
        assert ledger.spent() == held * reward + bonuses
    ratings = CampaignRecords(study).all_ratings
    assert len(ratings) and not ratings.duplicated(["pair_id", "rater_id", "question"]).any()
    assert killed, "no command was killed while it ran"


def test_a_fee_that_is_left_out_is_said(variant: Make, crowd: Crowd) -> None:  # noqa: F811
    study = drawn(variant, crowd={"countries": {"en": ["US"]}, "platform": "prolific"})
    plan, launched = crowd(study, "plan", "--platform", "rehearsal"), crowd(study, "launch", *PLAY)
    left_out = "without a fee of the platform, as crowd.fee names none"
    assert launched[0] == 0 and launched[1].count("no page: workers are made up") == 1
    assert left_out in plan[1] and left_out in crowd(study, "status")[1]
