"""The same server on PostgreSQL: what the tests of SQLite hold, held here by the same statements."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from annotation.server import URL_VARIABLE, Home, backup, database, restore, running
from annotation.server.home import is_locked, prepare
from plumbline.errors import DataError, ServiceError
from tests.annotation.argilla_site import Site, enter, eventually, response_status, term
from tests.annotation.server.postgres_site import PASSWORD, postgres_url  # noqa: F401  # a fixture


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Home:  # noqa: F811
    made = Home(tmp_path_factory.mktemp("argilla") / "home")
    prepare(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(URL_VARIABLE, postgres_url)
        assert database.choose(made) == postgres_url
    return made  # which keeps the address


@pytest.fixture(scope="module")
def site(home: Home) -> Iterator[Site]:
    with running(home) as connection:
        yield enter(connection)


def test_rating_searching_and_counting_work_as_on_sqlite(site: Site) -> None:
    campaign = site.publish("core", records=8, enough=2)
    ada, grace, _ = site.raters
    assert set(ada.found(campaign, response_status("pending"), mine=True)) == set(campaign.ids)
    ada.rate(campaign, "p0", 5)
    grace.rate(campaign, "p0", 3)
    ada.rate(campaign, "p1", 4, status="draft")
    statuses = site.statuses(campaign)
    assert statuses["p0"] == "completed" and set(statuses.values()) == {"completed", "pending"}
    assert ada.found(campaign, response_status("submitted"), mine=True) == ["p0"]
    assert ada.found(campaign, response_status("draft"), mine=True) == ["p1"]
    assert set(site.owner.found(campaign, query={"text": {"q": "cats again"}})) == {"p1", "p3", "p5", "p7"}
    length = {"entity": "metadata", "metadata_property": "length"}
    assert set(site.owner.found(campaign, [{"type": "range", "scope": length, "ge": 2, "le": 4}])) == {"p2", "p3", "p4"}
    rating = {"entity": "response", "question": "quality"}
    assert ada.found(campaign, [term(rating, 5)], mine=True) == ["p0"]
    ada.rate(campaign, "p0", 5, status="discarded")
    assert site.statuses(campaign)["p0"] == "pending"


def test_no_password_is_in_the_process_list_the_log_or_what_is_said(site: Site, home: Home) -> None:
    assert home.database_url_file.stat().st_mode & 0o777 == 0o600 and not home.database.exists()
    pid = json.loads(home.state.read_text(encoding="utf-8"))["pid"]
    seen = [Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8") for name in ("cmdline", "environ")]
    seen += [home.log.read_text(encoding="utf-8"), database.named(database.address_of(home) or "")]
    for text in seen:
        assert PASSWORD not in text and urlsplit(database.address_of(home) or "").password not in text  # type: ignore[operator]


def test_a_second_home_cannot_serve_the_same_database_also_after_postgresql_was_away(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = database.address_of(site.home) or ""
    campaign = site.publish("away", records=2, enough=1)
    site.raters[0].rate(campaign, "p0", 5)
    # As if it had gone between an answer and its counting.
    database.query(address, "UPDATE records SET status = 'pending' WHERE status = 'completed';")
    holder = "SELECT pid FROM pg_locks WHERE locktype = 'advisory';"
    before = database.query(address, holder)
    assert len(before) == 1
    every = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'argilla-embedded';"
    assert database.query(address, every)
    asked = httpx.get(f"{site.connection.url}/api/v1/me", headers={"X-Argilla-Api-Key": site.connection.api_key})
    assert asked.status_code in {200, 503}  # no trace of 50 KB in the log for each request, which would fill the disk
    assert eventually(lambda: (now := database.query(address, holder)) != before and len(now) == 1)
    assert eventually(lambda: site.statuses(campaign) == {"p0": "completed", "p1": "pending"})
    monkeypatch.setenv(URL_VARIABLE, address)
    with pytest.raises(ServiceError, match="another server of this kind uses"), running(Home(tmp_path / "other")):
        pytest.fail("it started")


def test_connections_that_the_database_has_ended_are_replaced_unseen(site: Site) -> None:
    campaign = site.publish("ended", records=2, enough=1)
    site.raters[0].rate(campaign, "p0", 5)
    ended = database.query(
        database.address_of(site.home) or "",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'argilla-embedded'"
        " AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory');",
    )
    assert ended and {row[0] for row in ended} == {"t"}
    time.sleep(1.1)  # a connection that was idle for a second is looked at before it is used
    site.raters[0].rate(campaign, "p1", 4)
    assert set(site.raters[0].found(campaign, response_status("submitted"), mine=True)) == {"p0", "p1"}


def test_a_backup_while_people_rate_is_restored_and_what_was_there_is_kept(site: Site, tmp_path: Path) -> None:
    home = site.home
    campaign = site.publish("saved", records=4, enough=1)
    site.raters[0].rate(campaign, "p0", 5)
    file, manifest = backup(home, tmp_path)
    site.raters[0].rate(campaign, "p1", 5)
    with pytest.raises(ServiceError, match="its server is running"):
        restore(home, file)
    os.kill(json.loads(home.state.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    assert eventually(lambda: not is_locked(home))
    assert manifest.kind == "postgresql" and file.stat().st_mode & 0o777 == 0o600
    _, kept = restore(home, file)
    address = database.address_of(home) or ""
    schema = kept.rpartition(" ")[2]
    (replaced,) = database.query(address, f"SELECT count(*) FROM {schema}.responses;")  # noqa: S608
    assert int(replaced[0]) == manifest.counts["responses"] + 1
    with running(home) as connection:
        again = enter(connection)
        assert {name for name, status in again.statuses(campaign).items() if status == "completed"} == {"p0"}
        again.raters[0].rate(campaign, "p1", 2)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "argilla.db").touch()
    with pytest.raises(DataError, match="this backup is of postgresql, but .* uses sqlite"):
        restore(Home(tmp_path / "home"), file)


def test_an_address_that_leads_nowhere_is_one_line_without_its_password(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = urlsplit(database.address_of(home) or "")._replace(netloc="argilla:wrong-secret@")
    monkeypatch.setenv(URL_VARIABLE, urlunsplit(changed))
    with pytest.raises(ServiceError, match="PostgreSQL database") as error, running(Home(tmp_path / "home")):
        pytest.fail("it started")
    assert "--database-url" in str(error.value) and "wrong-secret" not in str(error.value)
