"""`plumbline crowd ...` as a coordinator meets it: a campaign by commands, and the lines of bad input."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.campaign.offering import LEDGER, CampaignName
from annotation.campaign.records import CampaignRecords
from annotation.crowd.commands import lacking
from annotation.crowd.pay import dollars
from annotation.crowd.summary import read_summaries
from annotation.preview import write_preview
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.evidence import Evidence
from plumbline import __main__ as commands
from plumbline import cli
from plumbline.manifest import stage
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import CROWD, careless, drawn, honest
from tests.annotation.crowd.mturk.mturk_site import MTurkSite

Crowd = Callable[..., tuple[int, str, str]]


@pytest.fixture
def crowd(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, site: MTurkSite
) -> Crowd:
    """A crowd command, or `collect` or `review`, in this process: exit status, output, complaint."""
    keys = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "a-secret-key", "MTURK_ENDPOINT": site.url}
    keys |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}
    keys["AWS_SHARED_CREDENTIALS_FILE"] = "/dev/null"

    def run(study: Study, name: str, *words: str, **changes: str) -> tuple[int, str, str]:
        for key, value in (keys | changes).items():
            monkeypatch.setenv(key, value)
            if not value:
                monkeypatch.delenv(key)
        options = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(tmp_path / "home")]
        capsys.readouterr()
        crowd = [] if name in ("collect", "review") else ["crowd"]  # which know what a study has
        with pytest.raises(SystemExit) as ended:
            cli.run(lambda: commands.run([*crowd, name, *options, *words]))
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


LIVE = ("--platform", "mturk", "--live", "--max-cost", "50", "--yes")


def test_a_campaign_by_commands_alone(
    variant: Make, crowd: Crowd, site: MTurkSite, far: Callable[[Study], Study]
) -> None:
    study = far(drawn(variant, crowd=CROWD | {"share": 1.0}))
    with stage(study, "preview", [], [write_preview(CampaignRecords(study))]):
        pass
    before = status_text(read_status(Evidence(study), datetime.now(UTC)))
    assert f"Next: plumbline crowd plan --platform rehearsal {study.arguments}\n" in before
    assert f"Next: plumbline crowd plan --platform rehearsal {study.arguments}" in crowd(study, "status")[1]
    code, plan, _ = crowd(study, "plan", "--platform", "mturk", "--live")
    # 4 paraphrases and 2 controls at $0.20; 20% of $1.20 for each of two workers are $0.48
    assert code == 0
    assert plan.count("$2.88   $1.20  $0.48") == 3
    assert (
        "[live mturk] 3 batches, 6 places for workers: 12 pairs by 2 raters each: 24 answers; with 6 controls 36"
        " answers, or 72 ratings on the required questions; 0.3 hours of work, $7.20 for raters and $1.44 of fees:"
        " $8.64 before bonuses" in plan
    )
    assert "closed on 30 September 2026" in plan
    assert not (study.scratch / LEDGER).exists() and not site.calls  # nothing is created by a plan
    assert crowd(study, "launch", *LIVE, "--pilot", "5")[1].startswith("[live mturk] 1 batch offered now")
    code, out, _ = crowd(study, "launch", *LIVE)
    assert "2 batches offered now, 0 opened again; 3 are open, 0 wait" in out
    _refuse_another_machine(study, crowd, site)
    for hit in list(site.hits):
        for worker in ("AWORKER1", "AWORKER2"):
            site.work(hit, worker, site.fields(hit, honest(study)), seconds=360)
    assert (
        "[live mturk] 6 submissions read, in all 72 ratings in 36 answers, 24 of them to pairs ("
        in crowd(study, "collect")[1]
    )
    review = crowd(study, "review")[1]
    assert review.count("  approve  ") == 6 and "AWORKER" not in review
    sheet = crowd(study, "review", "--answers", next(iter(site.assignments)))[1]
    assert "AWORKER" not in sheet and sheet.count("]    -> ") == 7  # five of the pilot, two controls
    assert "positive" in sheet and "(expected" in sheet
    assert "6 submissions approved" in crowd(study, "approve", "--live", "--all")[1]
    assert "6 bonuses paid" in crowd(study, "bonus", *LIVE)[1]
    assert "3 batches closed, $0.00 released" in crowd(study, "close", "--live")[1]
    status = crowd(study, "status")[1]
    assert "batches offered: 2 of 2, and 1 of 1 pilot; all together: 6 places" in status
    assert "submissions: approved: 4, and 2 to pilots\n" in status and "unsettled" not in status
    assert CampaignRecords(study).ratings["rater_id"].nunique() == 2
    told = status_text(read_status(Evidence(study), datetime.now(UTC)), more=True)
    assert "to crowd workers: live mturk" in told and "ratings came from files" not in told
    _refuse_ids_outside_the_ledger(study)


@pytest.mark.usefixtures("without_next")
def test_what_waits_and_what_is_owed_is_said(variant: Make, crowd: Crowd, site: MTurkSite) -> None:
    study = drawn(variant)
    crowd(study, "launch", *LIVE)
    (hit,) = site.hits
    site.work(hit, "AWORKER1", site.fields(hit, honest(study)), seconds=600)
    uncollected = crowd(study, "approve", "--live", "--all")[1]
    assert "0 submissions approved; 1 waits" in uncollected and "have not been collected yet" in uncollected
    crowd(study, "collect")
    assert "1 submission approved" in crowd(study, "approve", "--live", "--all")[1]
    assert "0 submissions approved; none waits: 1 approved" in crowd(study, "approve", "--live", "--all")[1]
    assert "has no sandbox campaign yet, but a live one; add --live" in crowd(study, "close")[2]
    assert "0 bonuses paid" in crowd(study, "bonus", *LIVE)[1]  # a second worker may come
    closed = crowd(study, "close", "--live")[1]
    assert "1 bonus is owed; pay with `plumbline crowd bonus --platform mturk --live" in closed
    assert "1 bonus paid" in crowd(study, "bonus", *LIVE)[1]
    assert list(site.paid.values()) == [[120, 280]]  # 600 s at $24 an hour are $4.00
    assert "owed" not in crowd(study, "close", "--live")[1]


@pytest.mark.usefixtures("without_next")
def test_an_excluded_worker_is_paid_only_once_the_cost_is_confirmed(
    variant: Make, crowd: Crowd, site: MTurkSite
) -> None:
    study = drawn(variant, crowd=CROWD | {"share": 1.0})
    crowd(study, "launch", *LIVE)
    first, second = (site.work(hit, "W1", site.fields(hit, careless(study)), 600) for hit in list(site.hits)[:2])
    crowd(study, "collect")
    assert f"{first}: a rejection also excludes this worker's ratings in {second}" in crowd(study, "review")[1]
    again = crowd(study, "reject", "--live", first, "--reason", "copied all answers")[1]
    pays = ("approve", "--live", second, "--reason", "was promised")
    code, out, complaint = crowd(study, *pays)
    (summary,) = read_summaries(Evidence(study))
    unit = summary.planned // summary.places
    assert code and f"{second} costs {dollars(unit)}, but " in out and "--yes" in complaint
    assert f", for {dollars(2 * unit)}" in again and summary.rewards == 0
    assert "1 submission still waits for your decision: " in crowd(study, "close", "--live")[1]
    assert "1 submission approved" in crowd(study, *pays, "--yes")[1]
    assert read_summaries(Evidence(study))[0].rewards > 0


def _refuse_another_machine(study: Study, crowd: Crowd, site: MTurkSite) -> None:
    """A machine without the ledger offers nothing again, and says why."""
    ledger, calls = study.scratch / LEDGER, len(site.calls)
    away = ledger.rename(ledger.with_name("away"))
    on_mturk = ("--platform", "mturk", "--live")
    for words in (("launch", *LIVE), ("plan", *on_mturk), ("collect",), ("close", "--live"), ("status",)):
        code, _, complaint = crowd(study, *words)
        assert code == 2 and "with this one the same work would be paid again" in complaint, (words, complaint)
    assert len(site.calls) == calls
    away.replace(ledger)


def _refuse_ids_outside_the_ledger(study: Study) -> None:
    """Workers' ids and keys stand in no file but the ledger."""
    places = (study.folder.parent, study.scratch)
    files = [path for place in places for path in place.rglob("*") if path.is_file() and LEDGER not in path.name]
    assert len(files) > 5
    for path in files:
        content = path.read_bytes()
        assert b"AWORKER" not in content and b"a-secret-key" not in content, path


def test_bad_input_is_one_line_and_spends_nothing(variant: Make, crowd: Crowd, site: MTurkSite) -> None:
    study = drawn(variant)
    for words, says in (
        (LIVE[:3], "--live spends money and needs a limit; add --max-cost DOLLARS"),
        (LIVE[:5], "--live asks for confirmation before it spends, but there is no terminal here"),
        ([*LIVE[:2], "--pilot", "13"], "--pilot 13: no transformation has more than 12 pairs left in any"),
        ([], "name the platform: --platform prolific or --platform link or --platform rehearsal"),
        (["--test"], "crowd has no test campaign yet; name the platform: --platform prolific"),
    ):
        code, _, complaint = crowd(study, "launch", *words)
        line = complaint.strip().splitlines()[-1]
        assert (code, line[:7]) == (2, "error: ") and says in line
    assert not site.hits


def test_all_that_a_crowd_needs_is_named_at_once(variant: Make, crowd: Crowd) -> None:
    """English is in none of PTEB's lists; a plan needs no server and no token, but one that is refused names them."""
    missing = ["has no `crowd`", "has no countries for 'en'", "crowd.fee is missing", "crowd.address is missing"]
    study, platform = drawn(variant, crowd=None), ("--platform", "prolific")
    for name in ("plan", "launch"):
        code, said, complaint = crowd(study, name, *platform, PROLIFIC_TOKEN="")
        *lines, last = complaint.splitlines()
        assert code == 2 and not said and "5 settings are missing" in last and "docs/howto/prolific.md" in last
        assert all(what in line for what, line in zip([*missing, "PROLIFIC_TOKEN is not set"], lines, strict=True))
    nearly = drawn(variant, crowd=CROWD)
    code, said, _ = crowd(nearly, "plan", *platform, PROLIFIC_TOKEN="")
    assert code == 0 and "before launching: " in said and "PROLIFIC_TOKEN is not set" in said
    assert lacking(CampaignRecords(nearly), CampaignName("mturk", "live")) == []
