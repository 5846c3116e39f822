"""What scoring under wordings of an instruction takes beside encoding: documents once, queries once a prompt.

The model is the demo's (all-MiniLM-L6-v2), loaded before the clock runs; it has no prompt of its own, so that its
default and none are encoded once. As in `benchmarks.evaluation`, encoding alone is the time spent in the model.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.encoding import Timed, has_model
from benchmarks.evaluation_data import MODEL, made_words, write_lines
from benchmarks.registry import Measurement, benchmark
from evaluation.instructions.run import evaluate_instructions
from generation.datasets.loading import iter_datasets
from generation.instructions.run import word_instructions
from plumbline.study import ROOT, Study, load_study

PROMPTS, QUERIES, PASSAGES, REQUESTS = 15, 150, 600, 300
WORDS = {"query": 11, "passage": 60, "request": 12}


@benchmark
def instructions() -> Iterator[Measurement]:
    """15 wordings, the default and none: a retrieval of 150 x 600 texts and a classification of 300, made up."""
    if not has_model("instructions"):
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.wordings", folder]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    yield Measurement("instructions.encoded_per_distinct", told["encoded"] / told["distinct"], "ratio", at_most=1.0)
    yield Measurement("instructions.wall_per_encoding", told["wall"] / told["encoding"], "ratio", at_most=1.10)
    yield Measurement("instructions.beside_encoding_seconds", told["wall"] - told["encoding"], "s")


def tell(folder: Path) -> dict[str, float]:
    """Evaluate a made study under its wordings, whether or not anybody accepted them."""
    study = _study(folder)
    word_instructions(study)
    timed = Timed(study)
    start = time.perf_counter()
    outcome = evaluate_instructions(study, include_unaccepted=True, load=timed.load)
    wall = time.perf_counter() - start
    if outcome.failures or outcome.made != 2 * (PROMPTS + 2):
        raise RuntimeError(f"{outcome.made} scores, {outcome.failures}: nothing was measured")
    texts = sum(len({one.text for one in dataset.texts()}) for dataset in iter_datasets(study))
    told = {"wall": wall, "encoding": timed.seconds, "encoded": outcome.encoded}
    return {**told, "distinct": (PROMPTS + 1) * texts + PASSAGES}


def _study(folder: Path) -> Study:
    draw = random.Random(1337)  # noqa: S311 (texts, no secrets)
    (folder / "search" / "qrels").mkdir(parents=True)
    passages = [f"{number} {made_words(draw, WORDS['passage'])}" for number in range(PASSAGES)]
    queries = [f"{number} {made_words(draw, WORDS['query'])}" for number in range(QUERIES)]
    write_lines(folder / "search" / "corpus.jsonl", [{"_id": f"p{i}", "text": text} for i, text in enumerate(passages)])
    write_lines(folder / "search" / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(queries)])
    judged = "".join(f"q{i}\tp{i}\t1\n" for i in range(QUERIES))
    (folder / "search" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8")
    requests = [
        f'"{i} {made_words(draw, WORDS["request"])}",{"abcdef"[i // 3 % 6]},{"train" if i % 3 else "test"}'
        for i in range(REQUESTS)
    ]
    (folder / "requests.csv").write_text("\n".join(["text,label,split", *requests]) + "\n", encoding="utf-8")
    replies = [
        {"context": "task_type", "task": task, "prompts": [made_words(draw, 5) + f" {n}:" for n in range(PROMPTS)]}
        for task in ("retrieval", "classification")
    ]
    (folder / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies), encoding="utf-8")
    study = {
        "name": "benchmark",
        "subject": {"kind": "instructions", "per_call": PROMPTS, "contexts": ["task_type"], "near": 0},
        "datasets": [
            {"name": "search", "task": "retrieval", "path": "search", "language": "en"},
            {"name": "requests", "task": "classification", "path": "requests.csv", "language": "en"},
        ],
        "generator": {"kind": "recorded", "model": "made", "path": "replies.jsonl"},
        "rubric": "instructions",
        "evaluation": {"models": [MODEL]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return load_study(folder / "study.yaml", folder / "exports")


if __name__ == "__main__":
    print(json.dumps(tell(Path(sys.argv[1]))))
