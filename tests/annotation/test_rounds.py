"""Rating by blocks on a started Argilla: block after block while it serves, and what a crash leaves to do."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation import rounds, server
from annotation.argilla import publish as publishing
from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla, connect
from annotation.argilla.simulate import simulate
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.ratings.decisions import decide
from annotation.report.page import write_report
from annotation.rounds import BlockOpener, noted_studies, put_out, take_in
from annotation.sampling.queues import Queue, block_numbers
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study
from tests import forks
from tests.annotation.argilla_site import eventually
from tests.annotation.campaigns import Make, answer, dataset, pending, rater
from tests.annotation.sampling.test_queues import RULE, by_blocks
from tests.annotation.test_commands import environment
from tests.ports import free_port

KIND = [{"name": name, "bias": 1.0, "noise": 0.4} for name in ("first", "second", "third")]
CLOSE = [{"name": name, "bias": -1.4, "noise": 1.0} for name in ("low", "lower", "lowest")]
TWO = ["paraphrasing", "style_change"]


def rated(variant: Make, name: str, simulated: list[dict[str, object]] = KIND, **changes: object) -> Study:
    raters = {"per_pair": 3, "blocks": [8, 16, 24], "simulated": simulated}
    rule = RULE | {"threshold": 3.5}  # which KIND raters reach at the second look
    return by_blocks(variant, name, **({"transformations": TWO, "raters": raters, "acceptance": rule} | changes))


def on_server(study: Study, argilla: Argilla) -> list[str]:
    """The ids of all records, of all datasets."""
    datasets = published(CampaignRecords(study), argilla).values()
    return [record["external_id"] for listing in datasets for record in argilla.records(listing.id)]


def opener(home: server.Home, argilla: Argilla, lines: list[str]) -> BlockOpener:
    assert argilla.connection is not None
    return BlockOpener(home, argilla.connection, lines.append, seconds=0.0)


@pytest.fixture
def alone(home: server.Home) -> None:
    """A server that looks after no study yet."""
    home.blocks_file.unlink(missing_ok=True)


@pytest.mark.usefixtures("alone")
def test_a_campaign_goes_block_by_block_to_its_verdicts(argilla: Argilla, home: server.Home, variant: Make) -> None:
    study, lines = rated(variant, "by-blocks"), list[str]()
    records = CampaignRecords(study)
    numbers = block_numbers(study, records.pairs, records.controls)
    first = {pair_id for pair_id, number in numbers.items() if number == 0}
    put_out(study, home, argilla)
    assert set(on_server(study, argilla)) == first
    assert noted_studies(home) == [{"study": str(study.file), "exports": str(study.folder.parent)}]
    serving = opener(home, argilla, lines)
    serving.look()
    assert set(on_server(study, argilla)) == first  # nobody has answered
    for _ in range(3):
        simulate(study, argilla)
        serving.look()
        shown = on_server(study, argilla)
        assert len(shown) == len(set(shown))
    done = accept(study)
    assert {verdict.decision for verdict in done.verdicts} == {"accepted"}
    assert {verdict.n_pairs for verdict in done.verdicts} == {16}  # decided at the second of three looks
    assert set(shown) == {pair_id for pair_id, number in numbers.items() if number < 2}
    assert sum("accepted; decided after block 2 of 3; not needed: ratings of 8 pairs" in line for line in lines) == 2
    assert simulate(study, argilla) == 0  # nothing is left to rate
    _shows_its_looks(study)


def _shows_its_looks(study: Study) -> None:
    """In `status`, in the report and in what `accept` prints: two verdicts, decided at the second look."""
    status = read_status(Evidence(study), datetime.now(UTC))
    assert list(status.progress["wanted"]) == list(status.progress["counting"]) == [48, 48]
    assert not status.progress["open"].any()
    assert "Paraphrasing (en): accepted; decided after block 2 of 3" in status_text(status, more=True)
    assert len(status.looks) == 2 * 2 * 2
    write_report(study)
    path = pd.read_csv(study.folder / "report" / "looks_after_blocks.csv")
    assert list(path["pairs"].unique()) == [8, 16]
    assert (path.loc[path["look"] == 2, "low"] >= 3).all() and (path["low"] <= path["mean"]).all()
    means = pd.read_csv(study.folder / "report" / "unbiased_means.csv")
    varies = means[means["reason"].isna()]
    assert len(means) == 4 and len(varies) == 2 and (varies["unbiased"] <= varies["mean"] + 1e-9).all()
    assert varies["unbiased"].between(varies["low"], varies["high"]).all()


@pytest.mark.usefixtures("alone")
def test_cut_off_between_look_and_next_block_the_next_round_finishes_it(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once before anything is sent, once in the middle of it; the opener is another one after each."""
    study = rated(variant, "cut-off", CLOSE, acceptance=RULE)
    put_out(study, home, argilla)
    simulate(study, argilla)

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rounds, "put_out", cut)
        with pytest.raises(KeyboardInterrupt):
            opener(home, argilla, []).look()
    block, sent = len(on_server(study, argilla)), publishing.send_pairs
    assert Evidence(study).blocks["paraphrasing", "en"].n_looks == 1  # due, and nothing opened
    assert not CampaignRecords(study).block_looks

    def halfway(argilla: Argilla, dataset_id: str, name: str, pairs: list[object], *rest: object) -> None:
        sent(argilla, dataset_id, name, pairs[:3], *rest)  # type: ignore[arg-type]
        if pairs:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "send_pairs", halfway)
        with pytest.raises(KeyboardInterrupt):
            opener(home, argilla, []).look()
    assert len(on_server(study, argilla)) == block + 3
    taken = CampaignRecords(study).block_looks  # kept before anything was opened
    assert {(look.group, look.look, look.decision) for look in taken} == {
        ((name, "en"), 1, "undecided") for name in TWO
    }
    opener(home, argilla, []).look()
    shown = on_server(study, argilla)
    assert len(shown) == len(set(shown)) == 2 * block
    assert CampaignRecords(study).block_looks == taken


def patiently(act: Callable[[], Any]) -> Any:
    """What a function gives once no round of a serving process holds the campaign."""
    deadline = time.monotonic() + 240
    while True:
        try:
            return act()
        except StudyError as error:
            if "another command is working" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_a_serving_process_that_is_killed_offers_each_block_once(variant: Make, tmp_path: Path) -> None:
    """Killed with its server at some moment of the round that follows the answers, and started again."""
    study, home = rated(variant, "killed", transformations=["paraphrasing"]), server.Home(tmp_path / "home")
    records = CampaignRecords(study)
    numbers = block_numbers(study, records.pairs, records.controls)
    words = ["serve", "--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home.path)]

    @contextlib.contextmanager
    def serving() -> Iterator[Callable[[], None]]:
        command = [sys.executable, "-u", "-m", "plumbline", *words, "--port", str(free_port())]
        with forks.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True,
                         start_new_session=True) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                assert any(line.startswith("Ready") for line in process.stdout)
                yield lambda: os.killpg(process.pid, signal.SIGKILL)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def answered(argilla: Argilla, block: int) -> None:
        """Answer a block, once it is offered."""
        wanted = {pair_id for pair_id, number in numbers.items() if number <= block}
        assert eventually(lambda: set(on_server(study, argilla)) == wanted, 0.2)
        patiently(lambda: simulate(study, argilla))

    with serving() as kill, connect(home) as argilla:
        patiently(lambda: put_out(study, home, argilla))
        answered(argilla, 0)
        time.sleep(random.Random(5).uniform(0, 8))
        kill()
    with serving(), connect(home) as argilla:
        answered(argilla, 1)
        assert eventually(lambda: len(CampaignRecords(study).block_looks) == 2, 0.2)
        shown = on_server(study, argilla)
        assert patiently(lambda: simulate(study, argilla)) == 0
    assert sorted(shown) == sorted(pair_id for pair_id, number in numbers.items() if number < 2)
    looks = CampaignRecords(study).block_looks
    assert [(look.look, look.decision) for look in looks] == [(1, "undecided"), (2, "accepted")]
    (verdict,) = accept(study).verdicts
    assert (verdict.decision, verdict.n_pairs) == ("accepted", 16)


@pytest.mark.usefixtures("alone")
def test_an_excluded_raters_pairs_of_a_block_go_to_others_before_its_look(
    argilla: Argilla, home: server.Home, variant: Make
) -> None:
    """One of three is excluded with the block complete, and another after the look; no pair is judged by fewer."""
    study = rated(variant, "replaced", transformations=["paraphrasing"])
    users = [rater(argilla, f"replaced-{number}") for number in range(5)]
    put_out(study, home, argilla)
    serving = opener(home, argilla, [])
    queue = dataset(study, argilla, Queue("paraphrasing", "en", "en"))

    def rate(*who: int) -> int:
        open_pairs = [(users[number], record) for number in who for record in pending(argilla, users[number], queue)]
        for number, (user, record) in enumerate(open_pairs):
            answer(argilla, user, record, "submitted", quality=3 + number % 2, fluency=3)
        return len(open_pairs)

    def called(number: int) -> str:
        (user,) = [user for user in argilla.users() if user.username == users[number].username]
        return account_pseudonym(study.name, user.id, simulated=False)

    def looks() -> list[int]:
        serving._studies.clear()  # as a server that was started again
        serving.look()
        return [look.look for look in CampaignRecords(study).block_looks]

    block = rate(0)
    assert rate(1) == block
    take_in(study, home, argilla)
    decide(study, called(0), exclude=True, reason="every answer is the same")
    assert rate(2) == block
    assert looks() == []  # a third of its answers are excluded: the block is not complete
    assert rate(1, 2) == 0 and rate(3) == block
    assert looks() == [1]
    decide(study, called(1), exclude=True, reason="asked to be left out")
    assert looks() == [1] and rate(2, 3, 4) > 0
    while rate(2, 3, 4):
        assert looks()[0] == 1
    take_in(study, home, argilla)
    evidence = CampaignRecords(study)
    counting = evidence.all_ratings[evidence.all_ratings["excluded"] == ""].groupby("pair_id")["rater_id"].nunique()
    assert (counting == 3).all() and len(counting) >= 16
    assert looks() == [*range(1, 1 + len(looks()))]


@pytest.mark.usefixtures("alone")
def test_raters_who_have_nothing_left_get_a_block_early(argilla: Argilla, home: server.Home, variant: Make) -> None:
    """Two have rated all of the open block, and the third, who holds what is left, rates nothing more."""
    study = rated(variant, "early", transformations=["paraphrasing"])
    users = [rater(argilla, name) for name in ("ann", "bob")]
    put_out(study, home, argilla)
    serving = opener(home, argilla, lines := [])
    serving.look()
    queue = Queue("paraphrasing", "en", "en")
    block = {record["id"] for record in pending(argilla, users[0], dataset(study, argilla, queue))}
    for user in users:
        for record in pending(argilla, user, dataset(study, argilla, queue)):
            answer(argilla, user, record, "submitted", quality=3, fluency=3)
    serving._studies[str(study.file), str(study.folder.parent)].collected -= rounds.WHOLE_SECONDS
    serving.look()  # takes in who is at work
    assert len(pending(argilla, users[0], dataset(study, argilla, queue))) == 0
    serving.look()
    later = pending(argilla, users[0], dataset(study, argilla, queue))
    assert len(later) == len(block) and block.isdisjoint(record["id"] for record in later)
    progress = Evidence(study).blocks["paraphrasing", "en"]
    assert (progress.complete, progress.n_looks, progress.opened) == (0, 0, 1)  # no look is earlier for it
    serving.look()
    assert len(pending(argilla, users[0], dataset(study, argilla, queue))) == len(block)  # who has pairs gets no more
    assert lines and all("still needs" in line for line in lines)
