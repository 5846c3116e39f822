"""A deployment's data over to another server and back: by Argilla's SDK, as the README says, and by the database."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from servers import PACKAGE, Server, ended, interpreter, refused, serving

rg = pytest.importorskip("argilla")
pytestmark = pytest.mark.timeout(900)  # servers start four times, on a busy machine


def move(source: Server, target: Server) -> str:
    """Run the README's script; what it prints."""
    readme = (PACKAGE / "README.md").read_text(encoding="utf-8")
    (script,) = [block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "FROM_URL" in block]
    both = {"FROM_URL": source.url, "FROM_KEY": source.owner["api_key"],
            "TO_URL": target.url, "TO_KEY": target.owner["api_key"]}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        for name, value in both.items():
            patch.setenv(name, value)
        exec(script, {})  # noqa: S102
    return printed.getvalue()


def build(server: Server) -> None:
    """A workspace with two annotators and a dataset with most of what Argilla has."""
    client = rg.Argilla(api_url=server.url, api_key=server.owner["api_key"])
    workspace = rg.Workspace("texts", client=client).create()
    people = [rg.User(name, first_name=name.title(), password=f"{name}-password", client=client).create()
              for name in ("ada", "grace")]  # fmt: skip
    for user in people:
        workspace.add_user(user.username)
    settings = rg.Settings(
        guidelines="Read *both*.",
        fields=[rg.TextField("text"), rg.ChatField("talk", required=False)],
        questions=[
            rg.RatingQuestion("quality", values=[1, 2, 3]),
            rg.LabelQuestion("label", labels={"yes": "Yes", "no": "No"}),
            rg.MultiLabelQuestion("topics", labels=["a", "b", "c"], required=False),
            rg.RankingQuestion("order", values=["x", "y"], required=False),
            rg.TextQuestion("comment", required=False),
            rg.SpanQuestion("spans", field="text", labels=["name"], required=False),
        ],
        metadata=[rg.TermsMetadataProperty("source"), rg.IntegerMetadataProperty("length")],
        vectors=[rg.VectorField("vector", dimensions=2)],
        distribution=rg.TaskDistribution(min_submitted=2),
    )
    dataset = rg.Dataset("judged", workspace="texts", settings=settings, client=client).create()
    ada, grace = (user.id for user in people)
    whole = {"quality": 3, "label": "yes", "topics": ["a", "c"], "comment": "déjà vu",
             "order": [{"value": "x", "rank": 1}, {"value": "y", "rank": 2}],
             "spans": [{"start": 0, "end": 4, "label": "name"}]}  # fmt: skip

    def given(user: Any, status: str, values: dict[str, Any]) -> list[Any]:
        return [rg.Response(name, value, user, status=status) for name, value in values.items()]

    short = {"quality": 1, "label": "no"}
    responses = [
        given(ada, "submitted", whole) + given(grace, "submitted", short),
        given(ada, "submitted", short) + given(grace, "discarded", short),
        given(ada, "draft", {"quality": 2}),
        [],
    ]
    dataset.records.log([
        rg.Record(id=f"record {number}", fields={"text": f"Text {number}", "talk": [{"role": "user", "content": "hi"}]},
                  metadata={"source": "web", "length": number}, vectors={"vector": [number, 1.0]},
                  suggestions=[rg.Suggestion("quality", 2, score=0.5, agent="model")], responses=response)
        for number, response in enumerate(responses)
    ])  # fmt: skip


def told(server: Server) -> Any:
    """All that the API tells of the dataset, without ids and times of either server."""
    names = {user["id"]: user["username"] for user in server.done("GET", "users")["items"]}
    (dataset,) = server.done("GET", "me/datasets")["items"]
    path = f"datasets/{dataset['id']}"
    questions = {one["id"]: one["name"] for one in server.done("GET", f"{path}/questions")["items"]}
    settings = {part: [without_ids(one) for one in server.done("GET", address)["items"]]
                for part, address in (("fields", f"{path}/fields"), ("questions", f"{path}/questions"),
                                      ("metadata", f"me/{path}/metadata-properties"),
                                      ("vectors", f"{path}/vectors-settings"))}  # fmt: skip
    include = {"include": ["responses", "suggestions", "vectors"], "limit": 100}
    records = server.done("GET", f"{path}/records", params=include)["items"]
    found = [
        {
            **{name: record[name] for name in ("external_id", "fields", "metadata", "vectors", "status")},
            "responses": sorted((names[one["user_id"]], one["status"], str(one["values"]))
                                for one in record["responses"]),
            "suggestions": sorted((questions[one["question_id"]], one["value"], one["score"], one["agent"])
                                  for one in record["suggestions"]),
        }
        for record in sorted(records, key=lambda record: record["external_id"])
    ]  # fmt: skip
    kept = {name: dataset[name] for name in ("name", "guidelines", "distribution", "status", "allow_extra_metadata")}
    return kept, settings, found


def without_ids(part: dict[str, Any]) -> dict[str, Any]:
    """A part of the settings without what each server draws."""
    drawn = ("id", "dataset_id", "inserted_at", "updated_at")
    return {name: value for name, value in part.items() if name not in drawn}


#: Takes the database one of Argilla's own steps back, as Alembic does it.
BACK = """
from argilla_embedded.imports import leave_out_the_unused
leave_out_the_unused()
import argilla_server, pathlib
from alembic import command
from alembic.config import Config
config = Config()
config.set_main_option("script_location", str(pathlib.Path(argilla_server.__file__).with_name("alembic")))
command.downgrade(config, "-1")
"""


def test_a_deployment_moves_over_and_back_by_the_sdk_and_with_a_database_that_is_migrated_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "here") as here, serving(tmp_path / "there") as there:
        build(here)
        before = told(here)
        assert [record["status"] for record in before[2]] == ["completed", "pending", "pending", "pending"]
        assert len(before[2][0]["responses"]) == 2
        printed = move(here, there)
        assert sorted(line.split()[0] for line in printed.splitlines()) == ["ada", "grace"]
        assert told(there) == before
        assert move(here, there) == ""  # again: nothing is doubled
        assert told(there) == before
        (dataset,) = here.done("GET", "me/datasets")["items"]
        here.done("DELETE", f"datasets/{dataset['id']}")
        move(there, here)
        assert told(here) == before
        keys = {user["username"]: user["api_key"] for user in here.done("GET", "users")["items"]}
    home = tmp_path / "migrated"
    home.mkdir(mode=0o700)
    shutil.copyfile(tmp_path / "here" / "argilla.db", home / "argilla.db")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "ARGILLA_HOME_PATH": str(home)}
    done = ended([interpreter(), "-c", BACK], variables)
    assert done.returncode == 0, done.stderr
    status, words = refused(home)
    assert status == 4 and "back it up, then start once with --migrate" in words
    with serving(home, "--migrate") as migrated:
        assert told(migrated) == before
        assert migrated.done("GET", "me", key=keys["ada"])["username"] == "ada"
