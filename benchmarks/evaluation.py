"""What an evaluation takes beside encoding: every distinct text is encoded once, and all else is to be little.

Runs are processes of their own (`python -m benchmarks.evaluation KIND FOLDER`), so that peaks of memory are theirs.
The model is the demo's (all-MiniLM-L6-v2), loaded before the clock runs.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.encoding import Timed, has_model
from benchmarks.evaluation_data import DATA, SEEDS, made_scores, made_study, made_words, write_lines, write_shuffled
from benchmarks.memory import forget_peak, memory
from benchmarks.registry import Measurement, benchmark
from evaluation.measures import measures
from evaluation.models import embeddings
from evaluation.models.embeddings import EmbeddingStore
from evaluation.models.encoder import Encoder
from evaluation.models.text_models import TextModel
from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate, evaluate_units
from evaluation.sources import Folder
from evaluation.tables.comparisons import split_half_table
from evaluation.tasks.scoring import make_task, silent_mteb
from evaluation.units import plan_units
from generation.datasets.loading import iter_datasets
from plumbline.study import ROOT, Study
from plumbline.study.evaluation import ModelSpec
from plumbline.study.subject import ORIGINAL
from plumbline.study.transformations import AXES, EIGHT

QUERIES, PASSAGES = 1_000, 5_000
WORDS = {"query": 11, "passage": 160}  # as TREC-COVID's are (BEIR, Table 1)
STORED, WIDTH, PIECE = 1_000_000, 384, 2_048


@benchmark
def retrieval() -> Iterator[Measurement]:
    """1,000 queries x 5,000 passages, made up: the original and 8 transformations x 3 seeds of the queries."""
    if not has_model("retrieval"):
        return
    with tempfile.TemporaryDirectory() as folder:
        told = _run("retrieval", Path(folder))
        start = time.perf_counter()
        command = [sys.executable, "-m", "plumbline", "evaluate", "--study", str(Path(folder) / "study.yaml")]
        command += ["--exports", str(Path(folder) / "exports"), "--include-rejected"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        seconds = time.perf_counter() - start
    if "0 scores computed, 25 already stored" not in done:
        raise RuntimeError("the second run computed scores again: nothing was measured")
    yield Measurement("evaluation.encoded_per_distinct", told["encoded"] / told["distinct"], "ratio", at_most=1.0)
    yield Measurement("evaluation.wall_over_encoding_retrieval", told["wall"] / told["encoding"], "ratio")
    yield Measurement("evaluation.beside_encoding_seconds_retrieval", told["wall"] - told["encoding"], "s", at_most=60)
    yield Measurement("evaluation.memory_mb_retrieval", told["mb"], "MB")
    yield Measurement("evaluation.rerun_seconds", seconds, "s", at_most=10)


@benchmark
def peer() -> Iterator[Measurement]:
    """Time of an evaluation over that of mteb's own runs of the same tasks, one after another, by the same model.

    A made-up retrieval of 30 queries x 60 passages: the original and 8 transformations x 3 seeds of the queries. Parts
    of Banking77 and of STS-B: the original alone, whose texts both encode once. Both have loaded the model before. The
    median of three rounds, each with texts of its own.
    """
    if not has_model("peer"):
        return
    if not DATA.is_dir():
        print(f"retrieval alone: no data in {DATA}; set PLUMBLINE_DATA to the folder of the data", file=sys.stderr)
    for kind, most in {"retrieval": 0.25, **({"classification": 1.25, "sts": 1.25} if DATA.is_dir() else {})}.items():
        ratios = []
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                told = _run("peer", Path(folder), kind, str(seed))
            ratios.append(told["wall"] / told["mteb"])
        yield Measurement(f"evaluation.wall_over_mteb_{kind}", float(np.median(ratios)), "ratio", at_most=most)


@benchmark
def whole() -> Iterator[Measurement]:
    """A whole evaluation of Banking77 and STS-B over mteb's own runs: the original and two variants.

    Every text differs from variant to variant, training texts too, so that both encode as many texts.
    """
    if not has_model("whole") or not DATA.is_dir():
        print(f"skipped: whole needs the data of {DATA}; PLUMBLINE_DATA names another folder", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        told = _run("peer", Path(folder), "whole", "1337")
    yield Measurement("evaluation.wall_over_mteb_whole", told["wall"] / told["mteb"], "ratio")
    yield Measurement("evaluation.cpu_over_mteb_whole", told["cpu"] / told["mteb_cpu"], "ratio")


@benchmark
def store() -> Iterator[Measurement]:
    """What the process grows by at most while a million embeddings of 384 numbers are stored and read back."""
    with tempfile.TemporaryDirectory() as folder:
        told = _run("store", Path(folder))
    yield Measurement("evaluation.store_mb", told["mb"], "MB", at_most=300)


@benchmark
def checksums() -> Iterator[Measurement]:
    """What verifying stored embeddings (1,024 numbers) takes of a run that encodes nothing, by kind of task.

    The model is a stub, and all is stored before the clock runs: the share of a run that encodes is less.
    """
    for kind in ("retrieval", "sts"):
        with tempfile.TemporaryDirectory() as folder:
            told = _run(f"checksums_{kind}", Path(folder))
        yield Measurement(f"evaluation.checksum_share_{kind}", told["checksums"] / told["wall"], "ratio", at_most=0.02)


@benchmark
def split_half() -> Iterator[Measurement]:
    """Seconds of Table 3: 1,000 splits, 11 models, 19 data sets, 8 transformations x 3 seeds."""
    frame = made_scores(np.random.default_rng(1337))
    start = time.perf_counter()
    table = split_half_table(frame, 1337, n_splits=1000)
    seconds = time.perf_counter() - start
    if list(table["n_splits"]) != [1000] * len(AXES):
        raise RuntimeError(f"{table}: nothing was measured")
    yield Measurement("evaluation.split_half_seconds", seconds, "s", at_most=5)


def _run(kind: str, folder: Path, *options: str) -> dict[str, float]:
    """One kind of run in a process of its own; what it tells of itself."""
    command = [sys.executable, "-m", "benchmarks.evaluation", kind, str(folder), *options]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def tell_retrieval(folder: Path) -> dict[str, float]:
    """Evaluate the made-up retrieval set."""
    search, passages = _search(folder)
    return _tell(made_study(folder, [search], list(EIGHT), SEEDS), passages)


def _search(
    folder: Path, queries: int = QUERIES, n_passages: int = PASSAGES, seed: int = 1337
) -> tuple[dict[str, Any], list[str]]:
    """The made-up retrieval set as a study has it, and its passages."""
    draw = random.Random(seed)  # noqa: S311 (texts, no secrets)
    (folder / "search" / "qrels").mkdir(parents=True)
    passages = [made_words(draw, WORDS["passage"]) for _ in range(n_passages)]
    write_lines(folder / "search" / "corpus.jsonl", [{"_id": f"p{i}", "text": text} for i, text in enumerate(passages)])
    asked = [" ".join(draw.sample(passages[i].split(), WORDS["query"])) for i in range(queries)]
    write_lines(folder / "search" / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(asked)])
    judged = "".join(f"q{i}\tp{i}\t1\n" for i in range(queries))
    (folder / "search" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8")
    return {"name": "search", "task": "retrieval", "path": "search", "language": "en"}, passages


def tell_peer(folder: Path, kind: str, seed: str) -> dict[str, float]:
    """Evaluate data sets, then run mteb on each of their tasks; the scores must agree."""
    import mteb  # noqa: PLC0415 (takes seconds)
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (as above)
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (as above)

    passages, specs, number, varied = list[str](), list[dict[str, Any]](), int(seed), kind in ("retrieval", "whole")
    if kind == "retrieval":
        spec, passages = _search(folder, 30, 60, number)
        specs.append(spec)
    if kind in ("classification", "whole"):
        specs.append(_intents(folder, number, 1 if varied else 0.2))
    if kind in ("sts", "whole"):
        specs.append(_sentences(folder, number, 1 if varied else 0.5))
    changes = (list(EIGHT), SEEDS) if kind == "retrieval" else (list(EIGHT)[:2], SEEDS[:1])
    study = made_study(folder, specs, *changes)
    told = _tell(study, passages, varied=varied)
    scores = EvaluationRecords(study).scores.set_index(["dataset", "transformation", "seed"])["score"].dropna()
    model = SentenceTransformer(study.evaluation.models[0].location(ROOT), device="cpu")
    model.encode(["the first text takes longer"])
    wall = cpu = 0.0
    for unit in plan_units(Folder(study), [], [], include_rejected=True):
        key = unit.name, unit.transformation, unit.seed
        if key not in scores.index:
            continue
        task = make_task(unit.data(), study.evaluation.protocol)
        if hasattr(task, "evaluator_model"):
            task.evaluator_model = LogisticRegression(max_iter=100)  # mteb's own
        start, used = time.perf_counter(), time.process_time()
        with silent_mteb():
            (result,) = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False).task_results
        wall, cpu = wall + time.perf_counter() - start, cpu + time.process_time() - used
        # Of 3,080 texts one near two labels may be predicted otherwise by embeddings that differ in their last bits.
        if abs(result.get_score() - scores[key]) > (1e-3 if kind == "whole" else 1e-4):
            raise RuntimeError(f"{key}: the score differs from mteb's; nothing was measured")
    return {"wall": told["wall"], "cpu": told["cpu"], "mteb": wall, "mteb_cpu": cpu}


def _intents(folder: Path, seed: int, share: float) -> dict[str, Any]:
    """A share of Banking77 as a study has it."""
    splits = [pd.read_csv(DATA / f"banking77-{split}.csv").assign(split=split) for split in ("train", "test")]
    pd.concat(splits).sample(frac=share, random_state=seed).to_csv(folder / "banking77.csv", index=False)
    spec = {"name": "banking77", "task": "classification", "path": "banking77.csv", "language": "en"}
    return {**spec, "columns": {"label": "category"}}


def _sentences(folder: Path, seed: int, share: float) -> dict[str, Any]:
    """A share of STS-B as a study has it."""
    pairs = pd.read_csv(DATA / "stsb-en-test.csv", header=None, names=["sentence1", "sentence2", "score"])
    pairs.sample(frac=share, random_state=seed).to_csv(folder / "stsb.csv", index=False)
    return {"name": "stsb", "task": "sts", "path": "stsb.csv", "language": "en"}


def tell_checksums_retrieval(folder: Path) -> dict[str, float]:
    """Verify the embeddings of the made-up retrieval set."""
    return _tell_checksums(made_study(folder, [_search(folder)[0]], list(EIGHT)[:2], SEEDS[:1]))


def tell_checksums_sts(folder: Path) -> dict[str, float]:
    """The same of 5,000 made-up pairs of sentences."""
    draw = random.Random(1337)  # noqa: S311 (texts, no secrets)
    rows = [(made_words(draw, 11), made_words(draw, 11), draw.uniform(0, 5)) for _ in range(PASSAGES)]
    pd.DataFrame(rows, columns=["sentence1", "sentence2", "score"]).to_csv(folder / "pairs.csv", index=False)
    pairs = {"name": "pairs", "task": "sts", "path": "pairs.csv", "language": "en"}
    return _tell_checksums(made_study(folder, [pairs], list(EIGHT)[:2], SEEDS[:1]))


def _tell_checksums(study: Study) -> dict[str, float]:
    """Seconds of a run whose embeddings are all stored, and how many of them went into checksums."""
    write_shuffled(study)
    load = functools.partial(_stub, folder=study.scratch / "embeddings" / "stub")
    evaluate(study, include_rejected=True, load=load)
    shutil.rmtree(study.folder / "made")
    (study.folder / "drift.parquet").unlink()
    seconds, verify = 0.0, embeddings.digests

    def timed(*args: Any) -> Any:
        nonlocal seconds
        start = time.perf_counter()
        made = verify(*args)
        seconds += time.perf_counter() - start
        return made

    vars(embeddings)["digests"] = timed
    start = time.perf_counter()
    outcome = evaluate(study, include_rejected=True, load=load)
    wall = time.perf_counter() - start
    if outcome.failures or outcome.kept or outcome.encoded or not seconds:
        raise RuntimeError(f"{outcome}: nothing was measured")
    return {"wall": wall, "checksums": seconds}


def _stub(_: Study, spec: ModelSpec, folder: Path) -> Encoder:
    return Encoder(_Stub(), spec.name, "", store=EmbeddingStore(folder))


class _Stub(TextModel):
    """A model that draws its vectors."""

    def __init__(self) -> None:
        self.prompts = {}

    def embed(self, texts: Sequence[str], **_: Any) -> Any:
        """A row for each text."""
        return np.random.default_rng(1337).normal(size=(len(texts), 1024)).astype(np.float32)


def tell_store(folder: Path) -> dict[str, float]:
    """Store a million embeddings, and read a tenth of them in pieces, in another order than they were stored."""
    rng = np.random.default_rng(1337)
    keys = [number.to_bytes(16) for number in rng.permutation(STORED).tolist()]
    store = EmbeddingStore(folder / "store")
    forget_peak()
    before = memory("VmRSS")
    for first in range(0, STORED, PIECE):
        some = keys[first : first + PIECE]
        store.add(some, rng.random((len(some), WIDTH), dtype=np.float32))
    shuffled = rng.permutation(STORED)[: STORED // 10]
    for first in range(0, len(shuffled), PIECE):
        some = [keys[place] for place in shuffled[first : first + PIECE]]
        if store.rows(some).shape != (len(some), WIDTH):
            raise RuntimeError("rows are missing: nothing was measured")
    store.close()
    return {"mb": memory("VmHWM") - before}


def _tell(study: Study, untouched: Sequence[str], *, varied: bool = True) -> dict[str, float]:
    """Evaluate a study whose outputs are shuffled words; `untouched` are the texts that have none.

    Unless `varied`, the originals alone are scored.
    """
    made = write_shuffled(study)
    distinct = list(
        dict.fromkeys([*untouched, *(text for data in iter_datasets(study) for text in _texts(data)), *made])
    )
    timed = Timed(study)
    forget_peak()
    before = memory("VmRSS")
    start, used = time.perf_counter(), time.process_time()
    if varied:
        outcome = evaluate(study, include_rejected=True, load=timed.load)
    else:
        records = EvaluationRecords(study)
        units = plan_units(Folder(study), [], [], include_rejected=True)
        originals = [unit for unit in units if unit.transformation == ORIGINAL]
        outcome = evaluate_units(records, originals, [], [], measures(records), timed.load)
    wall, cpu = time.perf_counter() - start, time.process_time() - used
    mb = memory("VmHWM") - before
    if outcome.failures or outcome.kept:
        raise RuntimeError(f"{outcome}: nothing was measured")
    told = {"wall": wall, "cpu": cpu, "encoding": timed.seconds, "mb": mb}
    told |= {"encoded": outcome.encoded, "distinct": len(distinct)}
    print(told, file=sys.stderr, flush=True)
    return told


def _texts(dataset: Any) -> Iterator[str]:
    return (text.text for text in dataset.texts())


KINDS: dict[str, Callable[..., dict[str, float]]] = {
    "retrieval": tell_retrieval,
    "peer": tell_peer,
    "store": tell_store,
    "checksums_retrieval": tell_checksums_retrieval,
    "checksums_sts": tell_checksums_sts,
}

if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
