"""The tutorials: every command is run, and every line of output that they show is printed by the commands above it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from annotation import server
from plumbline.study import ROOT
from tests.commands import here, words_of
from tests.scale import scaled

TUTORIALS = ROOT / "docs" / "tutorials"
#: In this order: those that go on where another ends come after it.
ORDER = ("robustness", "judges", "benchmark", "prompt_sensitivity", "human_ceiling")
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.timeout(900)


def blocks(name: str) -> list[tuple[str, list[str]]]:
    text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    return [(kind, [line for line in body.splitlines() if line.strip()]) for kind, body in _BLOCK.findall(text)]


def words(line: str) -> str:
    return " ".join(line.split())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of records, and a running Argilla of its own."""
    folder = tmp_path_factory.mktemp("tutorials")
    home = server.Home(folder / "argilla")
    with pytest.MonkeyPatch.context() as patch, server.running(home):
        for name in [name for name in os.environ if name.startswith("ARGILLA_")]:
            patch.delenv(name)
        patch.setenv("PLUMBLINE_ARGILLA_HOME", str(home.path))
        yield folder / "exports"


@pytest.mark.parametrize("name", ORDER[: scaled(1, 5)])
def test_a_tutorial_shows_what_its_commands_print(name: str, place: Path) -> None:
    printed = ""
    before = ""
    for kind, lines in blocks(name):
        if kind == "sh":
            printed = "" if before == "text" else printed
            for line in lines:
                line = line.replace(" exports/", f" {place}/")  # noqa: PLW2901
                done = here(*words_of(line), "--exports", str(place))
                assert not done.returncode, f"{line}: {done.stderr}"
                printed += "\n".join(map(words, (done.stdout + done.stderr).splitlines())) + "\n"
            said = printed
        else:
            for line in lines:
                assert words(line) in said, f"{name}: not printed: {line}"
        before = kind


@pytest.mark.usefixtures("place")
def test_the_study_of_ones_own_page_is_walked_from_an_empty_folder(tmp_path: Path) -> None:
    """Its files are written, its settings put into the study, its commands run; it needs no more than 15."""
    text, printed, n_commands = (TUTORIALS / "two_systems.md").read_text(encoding="utf-8"), "", 0
    for kind, body in re.findall(r"^```(sh|text|yaml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if kind == "yaml":
            study = tmp_path / "studies" / "outputs.yaml"
            settings = yaml.safe_load(study.read_text(encoding="utf-8")) | yaml.safe_load(body)
            study.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        if kind == "text":
            for line in filter(None, body.splitlines()):
                assert words(line) in printed, f"not printed: {line}"
        commands = body if kind == "sh" else ""
        for name, content in re.findall(r"^cat > (\S+) <<'END'\n(.*?)^END$", body, re.MULTILINE | re.DOTALL):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, encoding="utf-8")
            commands = commands.replace(content, "")
        for line in re.findall("^plumbline .*", commands, re.MULTILINE):
            n_commands += 1
            done = here(*words_of(line), folder=tmp_path)
            assert not done.returncode, f"{line}: {done.stderr}"
            printed += "\n".join(map(words, done.stdout.splitlines())) + "\n"
    assert 8 < n_commands <= 15 and (tmp_path / "exports" / "outputs" / "report" / "index.html").is_file()


def test_every_tutorial_is_run_and_shows_output() -> None:
    assert {file.stem for file in TUTORIALS.glob("*.md")} - {"index", "two_systems"} == set(ORDER)
    for name in ORDER:
        kinds = [kind for kind, _ in blocks(name)]
        assert kinds[0] == "sh" and "text" in kinds
        lines = [line for kind, body in blocks(name) if kind == "sh" for line in body]
        assert all(line.startswith("plumbline ") for line in lines)
        text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
        settings = re.findall(r"^```yaml$", text, re.MULTILINE)  # of studies to write, which nothing here runs
        assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * (len(kinds) + len(settings))
