"""Commands of a rehearsal as processes of their own, killed at random moments and given again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.crowd.ledger import Ledger
from plumbline.study import Study
from tests import forks
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import CROWD, drawn

PLAY = ("--platform", "rehearsal", "--max-cost", "100", "--yes")


def start(study: Study, home: Path, name: str, *words: str) -> forks.Popen:
    options = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home)]
    crowd = [] if name == "collect" else ["crowd"]
    command = [sys.executable, "-m", "plumbline", *crowd, name, *options, *words]
    return forks.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_command_that_is_killed_and_given_again_pays_nobody_twice(variant: Make, tmp_path: Path) -> None:
    study = drawn(variant, sample={"pairs": 4, "batch": 4, "repeats": 0}, acceptance={"min_pairs": 4},
                  crowd={**CROWD, "share": 1.0, "fee": 0.0})  # fmt: skip
    chance, took = random.Random(38), 0.0
    rounds = [("launch", *PLAY), ("collect",), ("approve", "--all"), ("launch", *PLAY[2:]), ("collect",),
              ("approve", "--all"), ("bonus", *PLAY[2:])]  # fmt: skip
    killed = 0
    for name, *words in rounds:
        if took:  # as long as the command before
            process = start(study, tmp_path, name, *words)
            time.sleep(took * chance.uniform(0.4, 1.05))
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
