"""The generator `vllm` on the real engine: on a CPU, with a tiny Gemma-3, in an environment of its own (`make engine`).

Starting engines takes most of the time, so they are forked from one Python that has imported vLLM
(`tests.generation.engines`; in `make test-all` each starts from nothing), and the tests share what came of them.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import random
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from annotation.judges.pool import draw_judged
from annotation.judges.prompts import JudgeMessage
from annotation.judges.run import questionnaires, read_judgements
from generation.instructions.run import word_instructions
from generation.production import read_transformed
from plumbline.records import TransformedText
from plumbline.study import ROOT, Study, load_study
from tests.generation.helpers import complaint, generate_at, server, write_study
from tests.generation.helpers import start as start_elsewhere
from tests.instructions import made
from tests.ports import free_port

ENGINE = ROOT / ".venv-vllm" / "bin" / "python"
# One GiB for the cache and one thread, bound to no core: several engines run at once, on small machines too.
ENVIRONMENT = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
TRANSFORMATIONS = ("paraphrasing", "summarised_expansion")  # one call, two calls
TOO_LONG = "far too long " * 1000
WORDS = ("card", "letter", "bus", "river", "green", "paid", "asked", "opens", "never", "in the town", "before noon")
CHOSEN = random.Random(7)
TEXTS = (TOO_LONG.strip(), *(" ".join(CHOSEN.choices(WORDS, k=n % 9 + 2)) + f" {n}" for n in range(120)))
JUDGED = tuple(f"the {word} is {place}" for word, place in zip(WORDS[:4], WORDS[4:8], strict=True))
JOBS = len(TEXTS) * len(TRANSFORMATIONS)

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Started:
    """A program that runs, a session of its own."""

    pid: int
    folder: Path

    def wait_for_progress(self, least: int) -> None:
        """Until a run's progress bar says that there are so many outputs."""
        while not any(int(found) >= least for found in re.findall(r"(\d+)/\d+ \[", self.said())):
            assert Path(f"/proc/{self.pid}").exists(), self.said()
            time.sleep(0.02)

    def said(self) -> str:
        return (self.folder / "err").read_text()


@dataclass(frozen=True)
class Engines:
    """Programs in the engine's environment: `tests.generation.engines`."""

    process: subprocess.Popen[str]
    ended: dict[int, int] = field(default_factory=dict)

    def start(self, folder: Path, *words: str) -> Started:
        """`python -m words`; what it says goes to files in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("out", "err"):
            (folder / name).write_bytes(b"")
        assert self.process.stdin
        print(json.dumps({"folder": str(folder), "words": words}), file=self.process.stdin, flush=True)
        while (pid := self._next()) is None:
            pass
        return Started(pid, folder)

    def run(self, study: Path) -> Started:
        """`plumbline generate`."""
        exports = str(study.parent / "exports")
        return self.start(study.parent, "plumbline", "generate", "--study", str(study), "--exports", exports)

    def wait(self, started: Started) -> Ended:
        while started.pid not in self.ended:
            self._next()
        return Ended(self.ended.pop(started.pid), (started.folder / "out").read_text(), started.said())

    def _next(self) -> int | None:
        """The next word: the number of a program that has started, or None for one that has ended."""
        assert self.process.stdout
        pid, *status = map(int, self.process.stdout.readline().split())
        self.ended.update((pid, one) for one in status)
        return None if status else pid


@dataclass(frozen=True)
class Runs:
    """What became of the runs that were started together."""

    whole: Ended
    broken: Ended
    still_there: list[str]
    refused: Ended


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    """Skipped where there is no engine, but never in CI."""
    if not ENGINE.exists():
        if os.environ.get("CI"):
            pytest.fail("CI must have the engine's environment: make engine")
        pytest.skip("no engine: make engine")
    command = [str(ENGINE), "-m", "tests.generation.engines"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, text=True, stdin=pipe, stdout=pipe) as process:
        yield Engines(process)


@pytest.fixture(scope="module")
def place(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny model."""
    folder = tmp_path_factory.mktemp("vllm")
    made = engines.wait(engines.start(folder / "made", "tests.generation.tiny_gemma", str(folder / "model")))
    assert made.status == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def runs(engines: Engines, place: Path) -> Runs:
    """Side by side: a run that ends, one that is killed while it works, and one whose model is damaged."""
    damaged = place / "damaged"
    damaged.mkdir()
    for file in (place / "model").iterdir():
        content = file.read_bytes()
        (damaged / file.name).write_bytes(content[: len(content) // 2] if file.suffix == ".safetensors" else content)
    refused = engines.run(engine_study(place / "refused", damaged))
    whole = engines.run(engine_study(place / "whole", place / "model"))
    broken = engines.run(engine_study(place / "broken", place / "model"))
    broken.wait_for_progress(50)
    watched = {name: os.pidfd_open(pid) for pid, name in in_session(broken.pid).items() if pid != broken.pid}
    assert {"VLLM::EngineCor", "VLLM::Worker"} <= set(watched)
    os.kill(broken.pid, signal.SIGKILL)
    ended = engines.wait(broken)
    still_there = [name for name, file in watched.items() if not select.select([file], [], [], 120)[0]]
    return Runs(engines.wait(whole), ended, still_there, engines.wait(refused))


@dataclass(frozen=True)
class Later:
    """What became of the runs that were started after them, and the address of vLLM's own server."""

    resumed: Ended
    lost: Ended
    silent: Ended
    judged: Ended
    shares: Ended
    address: str


@pytest.fixture(scope="module")
def later(engines: Engines, place: Path, runs: Runs) -> Iterator[Later]:
    """Side by side: the killed run, started again, two whose engine is killed, judges, and vLLM's own server."""
    port = free_port()
    options = ["--model", str(place / "model"), "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    options += ["--max-num-seqs", "32", "--no-enable-chunked-prefill"]
    serving = engines.start(place / "serving", "vllm.entrypoints.openai.api_server", *options)
    resumed = engines.run(place / "broken" / "study.yaml")
    judging = judged_study(engines, place)
    judges = engines.start(place / "judging", "plumbline", "judge", "run", *judging.arguments.split())
    messages = [asking.message for asking in askings(judging)]
    (place / "messages.json").write_text(json.dumps(messages))
    alone = (str(place / "judge"), str(place / "messages.json"))
    shares = engines.start(place / "shares", "tests.generation.label_shares", *alone)
    lost = engines.run(engine_study(place / "lost", place / "model"))  # after the others: it is watched from its start
    lost.wait_for_progress(50)
    os.kill(engine_of(lost), signal.SIGKILL)
    silent = engines.run(engine_study(place / "silent", place / "model"))
    silent.wait_for_progress(0)
    os.kill(engine_of(silent), signal.SIGKILL)  # before it has answered anything
    while "Application startup complete" not in serving.said():
        assert Path(f"/proc/{serving.pid}").exists(), serving.said()
        time.sleep(0.05)
    ended = [engines.wait(one) for one in (resumed, lost, silent, judges, shares)]
    yield Later(*ended, address=f"http://127.0.0.1:{port}/v1")
    os.kill(serving.pid, signal.SIGTERM)
    engines.wait(serving)


def test_a_study_runs_through_and_vllm_keeps_to_its_log(runs: Runs, place: Path) -> None:
    assert runs.whole.status == 0, runs.whole.stderr
    assert [line for line in runs.whole.stderr.splitlines() if line and not line.startswith("generating:")] == []
    loading, *_ = runs.whole.stdout.splitlines()
    assert loading == f"loading {place / 'model'} into vLLM, log: {place}/whole/exports/small/vllm.log"
    assert "Gemma3ForCausalLM" in (place / "whole/exports/small/vllm.log").read_text()
    for name in TRANSFORMATIONS:
        first, *others = outputs(place / "whole", name)
        assert (first.text, first.status) == (TOO_LONG.strip(), "failed")
        assert re.fullmatch(r"too long for the context: \d{4} tokens with its prompt, at most 1024", first.reason)
        good = [row for row in others if row.status == "ok"]
        assert len(good) > 0.8 * len(others)
        # The model hears what it is asked: else there would be one output. How many differ hangs on the machine.
        assert len({row.output for row in good}) > 1
        assert all((row.intermediate is not None) == (name == "summarised_expansion") for row in good)


def test_a_second_run_asks_for_nothing_and_loads_nothing(engines: Engines, runs: Runs, place: Path) -> None:
    again = engines.wait(engines.run(place / "whole" / "study.yaml"))
    assert again.status == 0
    assert f"0 texts transformed, 0 failed, 0 unanswered, {JOBS} already stored" in again.stdout
    assert "loading" not in again.stdout


def test_a_killed_run_leaves_no_process_behind(runs: Runs) -> None:
    assert runs.broken.status == -signal.SIGKILL
    assert runs.still_there == []


def test_a_killed_run_goes_on_to_the_same_outputs(later: Later, place: Path) -> None:
    resumed = later.resumed
    assert resumed.status == 0, resumed.stderr
    made, kept = map(int, re.findall(r"(\d+) texts transformed.* (\d+) already stored", resumed.stdout)[0])
    assert kept >= 50
    assert made < JOBS - 50
    for name in TRANSFORMATIONS:
        assert facts(place / "broken", name) == facts(place / "whole", name)


def test_an_engine_that_dies_is_one_line(later: Later) -> None:
    for ended in (later.lost, later.silent):
        assert ended.status == 2
        assert re.fullmatch(r"error: vLLM's engine died: .+; see .*/vllm.log", complaint(ended.stderr))


def test_a_model_that_does_not_load_is_one_line_with_the_cause(runs: Runs, place: Path) -> None:
    assert runs.refused.status == 2
    line = complaint(runs.refused.stderr)
    assert line.startswith(f"error: vLLM cannot load {place / 'damaged'}: ")
    assert "SafetensorError" in line
    assert line.endswith("vllm.log")


def test_a_wrong_setting_is_one_line_before_anything_is_loaded(engines: Engines, place: Path) -> None:
    ended = engines.wait(engines.run(engine_study(place / "setting", place / "model", dtype="float7")))
    assert ended.status == 2
    assert complaint(ended.stderr).startswith(f"error: vLLM refuses the model {place / 'model'}: dtype")


def test_without_vllm_a_line_says_how_to_install_it(tmp_path: Path) -> None:
    ended = wait(start_elsewhere(engine_study(tmp_path, tmp_path / "model")))
    assert ended.status == 2
    assert complaint(ended.stderr).endswith("not installed; install it with pip install -e '.[vllm]' on the GPU host")


def test_vllms_own_server_gives_the_same_outputs(later: Later, place: Path) -> None:
    sampling = {"max_tokens": 64}
    generator = server(later.address, model=str(place / "model"), sampling=sampling)
    study = write_study(place / "served", TEXTS, transformations=list(TRANSFORMATIONS), generator=generator)
    ended = wait(start_elsewhere(study))
    assert ended.status == 0, ended.stderr
    for name in TRANSFORMATIONS:
        assert outputs(place / "served", name)[0].status == "failed"
        both = list(zip(facts(place / "served", name)[1:], facts(place / "whole", name)[1:], strict=True))
        assert sum(one == other for one, other in both) > 0.9 * len(both)


def test_vllm_holds_wordings_to_their_schema(later: Later, place: Path) -> None:
    generator = server(later.address, model=str(place / "model"), sampling={"max_tokens": 64})
    (place / "worded").mkdir()
    study = made(place / "worded", generator=generator, subject={"contexts": ["task_type"], "prompts": ""})
    found = word_instructions(study)
    for reply in found.trouble:  # the model's words mean nothing, and never end
        assert re.match(r'\{\s*"prompts"\s*:\s*\[\s*"', reply.raw), reply.raw
        assert reply.reason.endswith("(the answer was cut off)")
    assert found.counts == {"failed": 2, "reused": 0} and len(found.trouble) == 2


def test_a_judges_scores_are_the_models_own_probabilities(later: Later, place: Path) -> None:
    assert later.judged.status == 0, later.judged.stderr
    judging = load_study(place / "judging" / "study.yaml", place / "judging" / "exports")
    frame = read_judgements(judging).set_index(["pair_id", "question"])
    by_transformers = dict(zip(askings(judging), json.loads(later.shares.stdout), strict=True))
    for asking, shares in by_transformers.items():
        row = frame.loc[asking.pair.pair_id, asking.question]
        mass = sum(shares)
        assert (row["mode"], row["status"]) == ("expected", "ok")
        assert row["label_mass"] == pytest.approx(mass, rel=1e-3)
        assert row["score"] == pytest.approx(sum(map(operator.mul, shares, range(1, 6))) / mass, abs=1e-3)
    assert len(frame) == len(by_transformers) == 2 * len(JUDGED)
    assert frame["score"].nunique() == len(frame)
    # The rubric stands before the texts, and is computed once for a question.
    (cached,) = re.findall(r"(\d+)% of the prompts' tokens came from the prefix cache", later.judged.stdout)
    assert int(cached) > 50


def judged_study(engines: Engines, place: Path) -> Study:
    """A study whose recorded outputs a judge rates; what the judge says is digits."""
    made = engines.wait(engines.start(place / "made", "tests.generation.tiny_gemma", str(place / "judge"), "digits"))
    assert made.status == 0, made.stderr
    settings = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 4, "max_model_len": 1024}
    engine = {"kind": "vllm", "model": str(place / "judge"), "settings": settings}
    judge = {"name": "tiny", "engine": engine}
    sample = {"sample": {"pairs": len(JUDGED)}, "acceptance": {"min_pairs": 2}}
    file = write_study(place / "judging", JUDGED, judges=[judge], **sample)
    lines = [{"text": text, "transformation": "paraphrasing", "output": f"{text} again"} for text in JUDGED]
    none = {"language": None, "intermediate": None}
    (file.parent / "outputs.jsonl").write_text("".join(f"{json.dumps(line | none)}\n" for line in lines))
    generate_at(file)
    return load_study(file, file.parent / "exports")


def askings(study: Study) -> list[JudgeMessage]:
    (asked,) = questionnaires(study)
    return [asking for pair in draw_judged(study, keep=False) for asking in asked.askings(pair)]


def engine_study(folder: Path, model: Path, **changes: Any) -> Path:
    """A study for the engine: small batches, so that texts wait for others, and short answers."""
    settings = {"enforce_eager": True, "max_num_seqs": 32, **changes}
    generator = {"kind": "vllm", "model": str(model), "settings": settings, "sampling": {"max_tokens": 64}}
    return write_study(folder, TEXTS, transformations=list(TRANSFORMATIONS), generator=generator)


def wait(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, stderr)


def in_session(leader: int) -> dict[int, str]:
    """The processes of a session, number and name (proc(5): the name in brackets, the session the fourth after it)."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            before, _, after = file.read_text().rpartition(") ")
            if int(after.split()[3]) == leader:
                found[int(file.parent.name)] = before.partition(" (")[2]
    return found


def engine_of(run: Started) -> int:
    """The process of a run's engine."""
    (engine,) = [pid for pid, name in in_session(run.pid).items() if name == "VLLM::EngineCor"]
    return engine


def outputs(folder: Path, transformation: str) -> list[TransformedText]:
    return read_transformed(load_study(folder / "study.yaml", folder / "exports"), transformation, 1)


def facts(folder: Path, transformation: str) -> list[tuple[Any, ...]]:
    """What does not depend on when it was made, nor on which generator is said to have made it."""
    rows = outputs(folder, transformation)
    return [(row.text, row.output, row.intermediate, row.raw, row.status, row.flags, row.attempts) for row in rows]
