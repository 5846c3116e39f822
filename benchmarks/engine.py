"""How much of what vLLM can do the generator `vllm` gets out of it, and how much more than blocking batches give.

The engine is real, on a CPU, in its own environment (`make engine`), and the model is tiny: that makes the engine's
steps short, so what the generator costs between them weighs more than it does with a model of use.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks.registry import Measurement, benchmark
from plumbline.errors import StudyError
from plumbline.study import ROOT, load_study

PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TRANSFORMATION = "summarised_expansion"  # two calls
PROMPTS = 512
WORDS = (3, 150)  # the shortest and the longest text
VOCABULARY = ("card", "paid", "weather", "report", "nobody", "town", "asked", "to", "read", "before")
MAX_TOKENS = 32  # of every answer: the model of this benchmark does not end by itself
BATCH = 32  # the batches that a program makes which waits for each to end
ROUNDS = 5


@benchmark
def vllm() -> Iterator[Measurement]:
    """Run the measurement in the engine's environment; it prints JSON as its last line."""
    measured = run_there("benchmarks.engine", "the generator 'vllm'")
    yield Measurement("generation.vllm_share_of_all_at_once", measured["share"], "ratio", at_least=0.95)
    yield Measurement("generation.vllm_speedup_over_batches_of_32", measured["speedup"], "ratio")


def run_there(module: str, what: str) -> dict[str, float]:
    """What a module prints as its last line (JSON), run in the engine's environment; `what` it measures."""
    if not PYTHON.exists():
        raise StudyError(f"the benchmark of {what} needs its environment; run `make engine`")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    command = [str(PYTHON), "-m", module]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


@dataclass(frozen=True)
class _Sides:
    """The same jobs, done by the generator and by vLLM alone; `engine` is the one that all of them share."""

    generator: Any
    engine: Any
    jobs: Sequence[Any]
    attempt: Any

    async def generator_alone(self) -> None:
        """As `generate` does it: so many workers, each taking the next job as soon as it is free."""
        left = iter(self.jobs)

        async def work() -> None:
            for job in left:
                outcome = await self.generator.transform(job, self.attempt)
                assert outcome.output

        await asyncio.gather(*(work() for _ in range(self.generator.concurrency)))

    async def all_at_once(self) -> None:
        """VLLM gets the first calls of all jobs, and when they are done all second ones."""
        await self._batch(self.jobs)

    async def batches(self) -> None:
        """The same in batches, each of which waits for the one before."""
        for start in range(0, len(self.jobs), BATCH):
            await self._batch(self.jobs[start : start + BATCH])

    async def _batch(self, jobs: Sequence[Any]) -> None:
        texts = [job.text for job in jobs]
        for call in (0, 1):
            messages = [self._message(job, call, text) for job, text in zip(jobs, texts, strict=True)]
            texts = await asyncio.gather(*(self._ask(prompt) for prompt in self._prompts(messages)))

    def _message(self, job: Any, call: int, text: str) -> str:
        prompt = self.generator.prompts[job.transformation][call]
        return str(prompt.render({"target_language": "English", "text": text}))

    def _prompts(self, messages: Sequence[str]) -> Sequence[Any]:
        """As `vllm.LLM.chat` makes them, all in one go."""
        from vllm.renderers import ChatParams  # noqa: PLC0415

        chat = ChatParams(chat_template_kwargs={"add_generation_prompt": True, "continue_final_message": False})
        conversations = [[{"role": "user", "content": message}] for message in messages]
        prompts: Sequence[Any] = self.engine.renderer.render_chat(conversations, chat)[1]
        return prompts

    async def _ask(self, prompt: Any) -> str:
        from vllm import SamplingParams  # noqa: PLC0415
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

        sampling = SamplingParams(temperature=0, max_tokens=MAX_TOKENS, output_kind=RequestOutputKind.FINAL_ONLY)
        ended = [output async for output in self.engine.generate(prompt, sampling, str(id(prompt)))]
        return str(ended[-1].outputs[0].text)


async def _measure(folder: Path) -> dict[str, float]:
    """Medians of the rounds' ratios; every other round goes the other way, and each side starts with empty caches."""
    from generation.datasets.loading import iter_datasets  # noqa: PLC0415
    from generation.generators import ChatGenerator  # noqa: PLC0415
    from generation.jobs import Plan  # noqa: PLC0415
    from plumbline.models.chat import Attempt, Completion  # noqa: PLC0415
    from plumbline.models.vllm import VllmEngine  # noqa: PLC0415 (this and vLLM: in the engine's environment)
    from plumbline.study.engines import VllmSpec  # noqa: PLC0415

    class Uncut(VllmEngine):
        """All answers have the same length, which is no fault here: the second call is made all the same."""

        async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
            return replace(await super().ask(message, attempt, labels), cut_off=False)

    plan = Plan(load_study(_study(folder), folder / "exports"))
    spec = plan.study.generator
    assert isinstance(spec, VllmSpec)
    texts = [text for dataset in iter_datasets(plan.study) for text in dataset.texts()]
    jobs = list(plan.jobs(texts, TRANSFORMATION, 1))
    engine = Uncut.open(spec, plan.study, "generator", {})
    generator = ChatGenerator(engine, plan.prompts)
    try:
        attempt = Attempt(1, jobs[0].seed, spec.sampling)
        sides = _Sides(generator, engine._engine, jobs, attempt)
        ways: list[Callable[[], Awaitable[None]]] = [sides.generator_alone, sides.all_at_once, sides.batches]
        seconds: dict[str, list[float]] = {way.__name__: [] for way in ways}
        await sides.batches()  # the first steps allocate
        for turn in range(ROUNDS):
            for way in ways if turn % 2 else reversed(ways):
                await sides.engine.reset_prefix_cache()
                start = time.perf_counter()
                await way()
                seconds[way.__name__].append(time.perf_counter() - start)
            print({name: round(values[-1], 2) for name, values in seconds.items()}, file=sys.stderr, flush=True)
    finally:
        await generator.close()
    rounds = list(zip(*seconds.values(), strict=True))
    return {
        "share": statistics.median(whole / ours for ours, whole, _ in rounds),
        "speedup": statistics.median(batches / ours for ours, _, batches in rounds),
    }


def _study(folder: Path) -> Path:
    """Texts of mixed length, and the study that transforms them; answers are those of a model made here."""
    from tests.generation.tiny_gemma import make  # noqa: PLC0415

    make(folder / "model", ending=False)
    chosen = random.Random(1337)  # noqa: S311 (texts, no secrets)
    rows = [" ".join(chosen.choices(VOCABULARY, k=chosen.randint(*WORDS))) for _ in range(PROMPTS)]
    (folder / "texts.csv").write_text("text,label\n" + "".join(f"{row},a\n" for row in rows), encoding="utf-8")
    sampling = {"max_tokens": MAX_TOKENS}
    settings = {"enforce_eager": True, "max_num_seqs": 64}
    generator = {"kind": "vllm", "model": "model", "settings": settings, "sampling": sampling}
    study = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": [TRANSFORMATION],
        "seeds": [1],
        "generator": generator,
        "evaluation": {"models": [{"name": "none"}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return folder / "study.yaml"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(asyncio.run(_measure(Path(place)))))
