"""Six studies from an empty folder to the last page, by doing only what `Next:` says."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation import server
from annotation.argilla.accounts import published
from annotation.argilla.client import connect
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.options import HOME_VARIABLE
from plumbline.study import Study, load_study
from tests import forks
from tests.annotation.campaigns import answer, pending
from tests.annotation.crowd.campaigns import careless, honest
from tests.annotation.imports.importing import LONG, write_long
from tests.annotation.sampling.test_queues import RULE
from tests.commands import here, words_of
from tests.generation.test_beginning import TEXTS
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("undrawn")

MOST = 30  # steps
DECISIONS = ["review", "review"] * 3  # the evidence, and one of three raters is kept
FEW = {"plan": " --campaigns 2 --pairs 30 --raters 3"}  # what a person waits for is tested elsewhere
Act = Callable[[str, str], None]


class Walk:
    """A folder in which somebody does what `Next:` says, and acts only where its words ask for it."""

    def __init__(self, folder: Path, home: server.Home) -> None:
        self.folder, self.home = folder, home
        self.done: list[str] = []
        self.careless: Sequence[str] = ()  # raters whom a person will exclude
        self.serving = contextlib.ExitStack()

    def run(self, line: str) -> str:
        """What a command prints, as it was printed by the one before."""
        words = words_of(line)
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("ARGILLA_")]:
                patch.delenv(name)
            patch.setenv(HOME_VARIABLE, str(self.home.path))
            patch.setattr("sys.stdin", Terminal("pay\n"))
            done = here(*words, folder=self.folder)
        assert not done.returncode, (line, done.stderr, self.done)
        return done.stdout

    def kept_running(self, line: str) -> str:
        """What `serve` or `dashboard` prints until the next step; it runs until the walk ends."""
        command = [sys.executable, "-u", "-m", "plumbline", *shlex.split(line)[1:], "--port", str(free_port())]
        env = {name: value for name, value in os.environ.items() if not name.startswith("ARGILLA_")}
        env |= {HOME_VARIABLE: str(self.home.path)}
        process = self.serving.enter_context(
            forks.Popen(command, cwd=self.folder, env=env, stdout=subprocess.PIPE, text=True)
        )
        self.serving.callback(process.send_signal, signal.SIGINT)
        said = ""
        for printed in process.stdout or ():
            said += printed
            if "Next: " in printed:
                break
        return said

    def decided(self, said: str) -> str:
        """What is printed last when a person runs one of the commands that `review` shows for each rater.

        A crowd's submissions come first, and those that something speaks against are rejected.
        """
        shown = [line for line in said.splitlines() if line.startswith("  plumbline ") and " --reason " in line]
        for line in [line for line in shown if " crowd " in line] or shown:
            rater = line.split(" --reason")[0].split()[-1]
            if "crowd reject" in line or (" crowd " not in line and ("--exclude" in line) == (rater in self.careless)):
                said = self.run(line)
        return said

    def go(self, first: str, act: Act = lambda _, __: None) -> list[str]:
        """Do what is next until the dashboard is; return the names of the commands."""
        said, before = self.run(first), ("", "")
        with self.serving:
            while len(self.done) < MOST:
                step, words = following(said)
                assert step.startswith("plumbline "), (words, self.done)
                name, _, options = step.removeprefix("plumbline ").partition(" --study ")
                if len(self.done) % 10 == 0 and "--keep" not in step:  # it takes as long as a step itself
                    assert following(self.run(f"plumbline status --study {options.split()[0]}")) == (step, words)
                assert (step, words) != before or "more of the" in words, (step, self.done)
                before = step, words
                self.done.append(name)
                act(name, words)
                print(step, words, sep="\n   ")
                if name == "dashboard":
                    return self.done
                if name == "status --watch":  # until they have answered, which `act` sees to
                    step = step.replace(" --watch", "")
                said = self.kept_running(step) if name == "serve" else self.run(f"{step}{FEW.get(name, '')}")
                if "a person decides" in words and (self.careless or " crowd " in said):
                    said = self.decided(said)
        raise AssertionError(self.done)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def following(said: str) -> tuple[str, str]:
    assert said.count("Next: ") == 1, said
    command, _, words = said.rpartition("Next: ")[2].strip().partition("\n")
    return command, " ".join(words.split())


def answered(study: Study, home: server.Home, raters: Collection[str], wrong: Collection[str] = ()) -> list[str]:
    """Raters answer all that is before them, the `wrong` ones carelessly; return the pseudonyms of these."""
    users = {user.username: user for user in server.credentials(home).annotators}
    questions = [question.name for question in load_rubric(study).asked() if question.required]
    good, bad = honest(study), careless(study)
    with connect(home) as argilla:
        for name in raters:
            rates = bad if name in wrong else good
            for dataset in published(CampaignRecords(study), argilla).values():
                for record in pending(argilla, users[name], dataset.id):
                    values = {question: rates(record["external_id"], question) for question in questions}
                    answer(argilla, users[name], record, "submitted", **values)
        accounts = {user.username: user.id for user in argilla.users()}
    return [account_pseudonym(study.name, accounts[name], simulated=False) for name in wrong]


def demo(folder: Path, **changes: Any) -> None:
    """Make the copied sample study small; a part that is None is left out."""
    file = folder / "studies" / "demo.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    small = {
        "datasets": content["datasets"][:1],
        "transformations": ["paraphrasing"],
        "sample": {"pairs": 8, "seed": 1337},
        "acceptance": {"threshold": 3.0, "min_pairs": 6},
        "evaluation": {"models": [{"name": "character-n-grams", "kind": "lexical"}]},
    }
    parts = {name: part for name, part in (content | small | changes).items() if part is not None}
    file.write_text(yaml.safe_dump(parts), encoding="utf-8")


def test_two_systems_in_a_file_are_compared_by_people(tmp_path: Path) -> None:
    rows = [f'"{text}","{text} Indeed so.","{text} Perhaps."' for text in TEXTS]
    (tmp_path / "outputs.csv").write_text("\n".join(["text,ours,theirs", *rows]), encoding="utf-8")
    walk = Walk(tmp_path, server.Home(tmp_path / "home"))

    def act(name: str, words: str) -> None:
        if name == "status --watch":
            study = load_study(tmp_path / "studies" / "outputs.yaml", tmp_path / "exports")
            answered(study, walk.home, [user.username for user in server.credentials(walk.home).annotators])

    done = walk.go("plumbline init outputs.csv --column output=ours --column output=theirs", act)
    assert done == ["generate", "plan", "sample", "preview", "serve", "publish", "status --watch", "collect",
                    *DECISIONS, "accept", "ratings-report", "sheet", "dashboard"]  # fmt: skip


def test_the_sample_study_goes_to_its_scores_with_simulated_raters_and_judges(tmp_path: Path) -> None:
    walk = Walk(tmp_path, server.Home(tmp_path / "home"))  # its own: whoever has an account could rate this study
    assert following(walk.run("plumbline studies"))[0] == "plumbline generate --study studies/demo.yaml"
    demo(tmp_path)
    with server.running(walk.home):
        done = walk.go("plumbline studies")
    assert done == ["generate", "plan", "sample", "preview", "judge run", "publish", "simulate", "collect", "accept",
                    "ratings-report", "judge check", "evaluate", "scores-report", "sheet", "dashboard"]  # fmt: skip


def test_a_made_up_crowd_is_asked_paid_and_replaced(tmp_path: Path) -> None:
    walk = Walk(tmp_path, server.Home(tmp_path / "home"))
    walk.run("plumbline studies")
    people = {"crowd": {"share": 0.5}, "raters": {"per_pair": 2}, "judges": [], "training": ""}
    demo(tmp_path, **people, sample={"pairs": 8, "seed": 1337, "batch": 4}, evaluation=None)

    done = walk.go("plumbline status --study studies/demo.yaml")
    crowd = [name.removeprefix("crowd ").partition(" ")[0] for name in done if name.startswith("crowd ")]
    assert done[:4] == ["generate", "plan", "sample", "preview"] and crowd[:2] == ["plan", "launch"]
    assert crowd.count("launch") > 1 and "approve" in crowd and crowd[-1] == "close"
    assert [name.partition(" --")[0] for name in done[-5:]] == [
        "accept", "ratings-report", "crowd close", "sheet", "dashboard"
    ]  # fmt: skip


def test_imported_ratings(tmp_path: Path) -> None:
    write_long(tmp_path / "ratings.csv")
    walk = Walk(tmp_path, server.Home(tmp_path / "home"))
    done = walk.go(shlex.join(["plumbline", "import", "ratings.csv", *LONG, "--out", "studies/mine.yaml"]))
    assert done == [*DECISIONS, "accept", "ratings-report", "sheet", "dashboard"]


@pytest.mark.usefixtures("argilla")
def test_single_texts_with_labels(tmp_path: Path, home: server.Home) -> None:
    walk = Walk(tmp_path, home)
    walk.run("plumbline studies")
    file = tmp_path / "studies" / "texts.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("name: texts", "name: next-texts"), encoding="utf-8")
    done = walk.go("plumbline status --study studies/texts.yaml")
    assert done == ["plan", "sample", "preview", "publish", "simulate", "collect", "accept", "ratings-report", "sheet",
                    "dashboard"]  # fmt: skip


@pytest.mark.usefixtures("argilla")
def test_a_careless_rater_is_excluded_and_another_invited(tmp_path: Path, home: server.Home) -> None:
    walk = Walk(tmp_path, home)
    walk.run("plumbline studies")
    people, wrong = ["next-ada", "next-bob"], {"next-bob"}
    raters: dict[str, Any] = {"per_pair": 2, "people": people, "blocks": [8, 16]}
    parts = {"name": "next-people", "sample": {"pairs": 16, "seed": 1337}, "acceptance": RULE, "judges": [],
             "evaluation": None}  # fmt: skip
    demo(tmp_path, raters=raters, **parts)
    file = tmp_path / "studies" / "demo.yaml"

    def act(name: str, words: str) -> None:
        study = load_study(file, tmp_path / "exports")
        if name == "status --watch":
            there = [one for one in people if not (walk.careless and one in wrong)]  # who is excluded cannot
            walk.careless = answered(study, home, there, wrong)
        if "added a person to raters.people" in words:
            people.append("next-cleo")
            demo(tmp_path, raters={**raters, "people": people}, **parts)

    done = walk.go("plumbline status --study studies/demo.yaml", act)
    assert done[:6] == ["generate", "plan", "sample", "preview", "users invite", "publish"]
    assert done[-4:] == ["accept", "ratings-report", "sheet", "dashboard"]
    assert done.count("users invite") == 2 and "review" in done
