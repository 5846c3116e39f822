"""How much of what vLLM and a chat server can do judges get out of them, and how much the prefix cache spares.

As in `benchmarks.engine` vLLM is real, on a CPU, in its own environment (`make engine`), and the model tiny. The server
is the tests' one, as in `benchmarks.generation`; judges run in a process of their own.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.engine import run_there
from benchmarks.generation import chat_server, server_stats
from benchmarks.registry import Measurement, benchmark
from generation.production import generate
from plumbline.study import ROOT, Study, load_study

PAIRS = 256  # each with two questions
ROUNDS = 11
SEQUENCES = 64
LATENCY = 0.5  # seconds; a chat model takes as long and more, which makes it easier
CONCURRENCY = 256
LATENCIES = 30  # judgements for each request in flight, so that start and end weigh little
RUNS = 3  # the median counts


@benchmark
def vllm() -> Iterator[Measurement]:
    """Run the measurement in the engine's environment; it prints JSON as its last line."""
    measured = run_there("benchmarks.judging", "judges in vLLM")
    yield Measurement("judges.share_of_engine", measured["share"], "ratio", at_least=0.95)
    yield Measurement("judges.prefix_cache_hits", measured["cached"], "share", at_least=0.5)


@benchmark
def http_share_of_concurrency() -> Iterator[Measurement]:
    """How many requests the server had in flight on the mean, as a share of those that may be in flight."""
    with chat_server(LATENCY) as url:
        shares = [_share(url) for _ in range(RUNS)]
    yield Measurement("judges.http_share_of_concurrency", statistics.median(shares), "ratio", at_least=0.90)


def _share(url: str) -> float:
    engine = {"kind": "openai", "model": "stub", "base_url": url, "settings": {"concurrency": CONCURRENCY}}
    judge = {"name": "stub", "engine": engine, "score": "text"}
    pairs = CONCURRENCY * LATENCIES // 2  # each with two questions
    with tempfile.TemporaryDirectory() as folder:
        study = judged_study(Path(folder), pairs, judge)
        server_stats(url)  # forgets what was before
        command = [sys.executable, "-m", "plumbline", "judge", "run", *study.arguments.split(), "--outputs", str(pairs)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    stats = server_stats(url)
    expected = 2 * pairs + 1  # the first asks what the server takes
    if stats["answered"] != expected:
        raise RuntimeError(f"{expected} requests expected, {stats['answered']} answered: something else was measured")
    return float(stats["worked"] / stats["seconds"] / CONCURRENCY)


async def _measure(study: Study) -> dict[str, float]:
    """Medians of the rounds' ratios; every other round goes the other way, and each side starts with an empty cache."""
    from annotation.judges.pool import draw_judged  # noqa: PLC0415
    from annotation.judges.prompts import RecordedJudgements  # noqa: PLC0415
    from annotation.judges.run import (  # noqa: PLC0415
        JudgeChatClient,
        JudgeProgress,
        questionnaires,
        start,
    )
    from plumbline.models.asking import all_through  # noqa: PLC0415

    (asked,) = questionnaires(study)
    kept = JudgeProgress(study, asked, draw_judged(study, PAIRS), study.judgements)
    todo = list(kept.jobs())
    asker = await start(study, asked.spec, RecordedJudgements.read, ["1", "2", "3", "4", "5"])
    assert isinstance(asker, JudgeChatClient)
    engine: Any = asker.chat

    async def judges() -> None:
        async def ask(one: Any) -> None:
            kept.journal.append(await kept.answer(asker, one))

        await all_through(iter(todo), ask, min(asker.concurrency, len(todo)), [kept.journal])

    async def all_at_once() -> None:
        await _all_at_once(engine._engine, [asking.message for asking in todo], engine)

    seconds: dict[str, list[float]] = {"judges": [], "all_at_once": []}
    try:
        await all_at_once()  # the first steps allocate
        asker.sent = asker.cached = 0
        for turn in range(ROUNDS):
            for way in (judges, all_at_once) if turn % 2 else (all_at_once, judges):
                await engine._engine.reset_prefix_cache()
                begun = time.perf_counter()
                await way()
                seconds[way.__name__].append(time.perf_counter() - begun)
            print({name: round(values[-1], 2) for name, values in seconds.items()}, file=sys.stderr, flush=True)
    finally:
        await asker.close()
        kept.journal.close()
    rounds = zip(*seconds.values(), strict=True)
    share = statistics.median(whole / ours for ours, whole in rounds)
    return {"share": share, "cached": asker.cached / asker.sent}


async def _all_at_once(engine: Any, messages: Sequence[str], labels: Any) -> None:
    """VLLM gets all prompts in one go and renders them in one go, as `vllm.LLM.chat` does."""
    from vllm import SamplingParams  # noqa: PLC0415
    from vllm.renderers import ChatParams  # noqa: PLC0415
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

    tokens = [labels.label_token(label) for label in ("1", "2", "3", "4", "5")]
    sampling = SamplingParams(
        temperature=0, max_tokens=1, logprob_token_ids=tokens, output_kind=RequestOutputKind.FINAL_ONLY
    )
    chat = ChatParams(chat_template_kwargs={"add_generation_prompt": True, "continue_final_message": False})
    _, prompts = engine.renderer.render_chat([[{"role": "user", "content": one}] for one in messages], chat)

    async def ask(number: int, prompt: Any) -> None:
        async for _ in engine.generate(prompt, sampling, f"all-{time.monotonic_ns()}-{number}"):
            pass

    await asyncio.gather(*(ask(number, prompt) for number, prompt in enumerate(prompts)))


def _study(folder: Path) -> Study:
    """Recorded paraphrases, and a judge of a model made here."""
    from tests.generation.tiny_gemma import make  # noqa: PLC0415

    make(folder / "model", digits=True)
    engine = {"kind": "vllm", "model": "model", "settings": {"enforce_eager": True, "max_num_seqs": SEQUENCES}}
    return judged_study(folder, PAIRS, {"name": "tiny", "engine": engine})


def judged_study(folder: Path, pairs: int, judge: dict[str, Any]) -> Study:
    """A study of so many recorded paraphrases, all to be judged, transformed already."""
    texts = [f"person {number} asked in the town when the bus to the river goes before noon" for number in range(pairs)]
    (folder / "texts.csv").write_text("text,label\n" + "".join(f"{text},a\n" for text in texts), encoding="utf-8")
    lines = [
        {
            "text": text,
            "transformation": "paraphrasing",
            "language": None,
            "intermediate": None,
            "output": f"new {text}",
        }
        for text in texts
    ]
    (folder / "outputs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    study = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "seeds": [1],
        "generator": {"kind": "recorded", "model": "recorded", "path": "outputs.jsonl"},
        "judges": [judge],
        "attempts": 1,  # the server answers with words
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    loaded = load_study(folder / "study.yaml", folder / "exports")
    generate(loaded)
    return loaded


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(asyncio.run(_measure(_study(Path(place))))))
