"""What models take on a GPU: against sentence-transformers called directly, in half the bits, and one after the other.

`python -m benchmarks gpu` takes at most six minutes and no network. Beside this checkout it needs `USUAL`, which
machines with a GPU have, and what `python -m benchmarks.gpu pack FOLDER 3.12` puts into a folder on a machine with a
network, for that Python: the packages `CARRIED`, and the demo's model, 40 MB. There:

    PYTHONPATH=FOLDER/site PLUMBLINE_GPU_MODEL=FOLDER/model.tar.gz python -m benchmarks gpu

PLUMBLINE_GPU_MODEL may also name another model, of the hub or a folder; without it the demo's package is used.
`python -m benchmarks.gpu check` does all this on few texts without a GPU, in a Python that sees nothing else.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encoding import has_model
from benchmarks.evaluation_data import MODEL, VOCABULARY, made_study, made_words
from benchmarks.registry import Measurement, benchmark
from evaluation.models.encoder import Encoder, ModelHost
from plumbline.errors import StudyError
from plumbline.importing import scipy
from plumbline.study import ROOT, Study
from plumbline.study.evaluation import SentenceTransformersSpec

USUAL = (
    *("torch", "sentence-transformers", "pandas", "pyarrow", "scipy"),
    *("PyYAML", "tqdm", "charset-normalizer", "attrs", "psutil"),
)
CARRIED = (
    *("pydantic", "pydantic-core", "annotated-types", "typing-inspection", "typing-extensions"),
    *("cyclopts", "docstring-parser"),
)
OTHER = os.environ.get("PLUMBLINE_GPU_MODEL", "")
TEXTS, WORDS, PAIRS, BATCH = 50_000, (3, 60), 2_000, 128
ROUNDS = 4  # of three models each, after the first three
SECONDS = 360
PRECISIONS = ("float32", "float16", "bfloat16")


@benchmark
def models() -> Iterator[Measurement]:
    """Texts a second of a run's encoder, which keeps them on disk, as a share of the model's alone; and memory.

    In half the bits also the speed relative to float32, and how far Spearman's rho of made-up pairs lies from that in
    float32, in points of 100.
    """
    import torch  # noqa: PLC0415 (takes seconds)

    if not torch.cuda.is_available():
        print("skipped: gpu.models needs a GPU that torch sees", file=sys.stderr)
        return
    if not OTHER and not has_model("gpu.models"):
        return
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    yield from measured(TEXTS, PAIRS, ROUNDS)
    signal.alarm(0)


def measured(texts: int, pairs: int, rounds: int) -> Iterator[Measurement]:
    """All that is measured, on a GPU or, to check, on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        model = _model(Path(folder))
        speeds = dict[str, float]()
        for precision in PRECISIONS:
            share, speeds[precision] = share_of_direct(model, precision, texts)
            ending = "" if precision == "float32" else f"_{precision}"
            yield Measurement(f"gpu.encoding_share_of_direct{ending}", share, "ratio", at_least=0.95)
            yield Measurement(f"gpu.texts_a_second{ending}", speeds[precision], "texts/s")
        for precision in PRECISIONS[1:]:
            yield Measurement(f"gpu.speedup_{precision}", speeds[precision] / speeds["float32"], "ratio")
        scores, left = scores_in_turn(model, pairs)
        for precision in PRECISIONS[1:]:
            difference = 100 * abs(scores[precision] - scores["float32"])
            yield Measurement(f"gpu.score_difference_{precision}", difference, "points")
        *_, last = (scores_in_turn(model, min(pairs, 100))[1] for _ in range(rounds))
        yield Measurement("gpu.memory_left_mb", last - left, "MB", at_most=16)


def share_of_direct(model: dict[str, Any], precision: str, number: int) -> tuple[float, float]:
    """Texts a second through an encoder as a share of the model's own, and that number; the model is warm."""
    draw = random.Random(1337)  # noqa: S311 (texts, no secrets)
    texts = [f"{made_words(draw, draw.randint(*WORDS))} {n}" for n in range(number)]
    with tempfile.TemporaryDirectory() as folder:
        loaded = _loaded(model, precision, Path(folder))
        direct: Any = loaded.model._model  # type: ignore[attr-defined]  # sentence-transformers' own
        options = {"batch_size": BATCH, "show_progress_bar": False, "convert_to_numpy": True}
        direct.encode(texts[: 8 * BATCH], **options)
        start = time.perf_counter()
        direct.encode(texts, **options)
        alone = time.perf_counter() - start
        start = time.perf_counter()
        loaded.embed(texts)
        seconds = time.perf_counter() - start
        loaded.close()
    return alone / seconds, number / seconds


def scores_in_turn(model: dict[str, Any], pairs: int) -> tuple[dict[str, float], float]:
    """Scores by precision, each model loaded after the one before was closed; MB that a GPU has reserved at the end."""
    import torch  # noqa: PLC0415

    draw = random.Random(7)  # noqa: S311 (texts, no secrets)
    firsts, seconds, gold = list[str](), list[str](), list[int]()
    for _ in range(pairs):
        words, kept = made_words(draw, 12).split(), draw.randint(0, 12)
        firsts.append(" ".join(words))
        seconds.append(" ".join([*words[:kept], *made_words(draw, 12).split()[kept:]]))
        gold.append(kept)
    found = {}
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            loaded = _loaded(model, precision, Path(folder))
            sides = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in map(loaded.embed, (firsts, seconds))]
            loaded.close()
        found[precision] = float(scipy.stats.spearmanr((sides[0] * sides[1]).sum(axis=1), gold).statistic)
    return found, torch.cuda.memory_reserved() / 2**20


def _loaded(model: dict[str, Any], precision: str, folder: Path) -> Encoder:
    data = {"name": "none", "task": "sts", "path": "none.csv", "language": "en"}
    study: Study = made_study(folder, [data], ["paraphrasing"], [1])
    evaluation = type(study.evaluation).model_validate({"models": [model], "precision": precision, "batch_size": BATCH})
    study = study.model_copy(update={"evaluation": evaluation})
    return ModelHost.of(study).load(study.evaluation.models[0])


def _model(folder: Path) -> dict[str, Any]:
    """The model as a study names it; a packed one is unpacked into a folder."""
    if OTHER.endswith(".tar.gz"):
        shutil.unpack_archive(OTHER, folder, filter="data")
        return {"name": MODEL["name"], "path": str(folder / "model")}
    return {"name": OTHER, **({"path": OTHER} if Path(OTHER).is_dir() else {})} if OTHER else MODEL


def _too_long(*_: Any) -> None:
    raise StudyError(f"it took more than {SECONDS} seconds")


def pack(folder: Path, python: str) -> None:
    """Put the packages and the model into a folder. All of its numbers stay but the rows of tokens in no text here."""
    from safetensors.numpy import load_file, save_file  # noqa: PLC0415 (only here)

    pinned = [f"{name}=={importlib.metadata.version(name)}" for name in CARRIED]
    options = ["--no-deps", "--only-binary=:all:", "--python-version", python, "--target", str(folder / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *pinned], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        shutil.copytree(SentenceTransformersSpec.model_validate(MODEL).location(ROOT), model)
        tokens = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        used = [row for token, row in tokens.items() if re.fullmatch(r"(##)?\d+|\[\w+]", token) or token in VOCABULARY]
        weights = load_file(model / "model.safetensors")
        (name,) = (name for name in weights if name.endswith("word_embeddings.weight"))
        rows = np.zeros_like(weights[name])
        rows[used] = weights[name][used]
        save_file(weights | {name: rows}, model / "model.safetensors", {"format": "pt"})
        shutil.make_archive(str(folder / "model"), "gztar", scratch, "model")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB, for Python {python}")


def check() -> None:
    """Measure few texts without a GPU, by the packed model, in a Python that has only `USUAL`, `CARRIED` and theirs."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, site = Path(scratch), Path(scratch, "site")
        pack(folder / "packed", f"{sys.version_info.major}.{sys.version_info.minor}")
        site.mkdir()
        for name in _with_needs(USUAL):
            here = importlib.metadata.distribution(name)
            for top in {file.parts[0] for file in here.files or () if file.parts[0] not in ("..", "__pycache__")}:
                if not (site / top).exists():
                    (site / top).symlink_to(Path(str(here.locate_file(top))))
        environment = {"PYTHONPATH": f"{folder / 'packed' / 'site'}:{site}", "HF_HUB_OFFLINE": "1", "HOME": scratch}
        environment |= {"PLUMBLINE_GPU_MODEL": str(folder / "packed" / "model.tar.gz"), "PATH": os.environ["PATH"]}
        # As `python -m benchmarks gpu` starts, with the rest of this environment's packages out of sight.
        for module in ("benchmarks.gpu", "benchmarks"):
            command = [sys.executable, "-S", "-m", module, "gpu"]
            subprocess.run(command, cwd=ROOT, env=environment, check=module == "benchmarks.gpu")


@functools.cache
def _with_needs(names: tuple[str, ...]) -> set[str]:
    """Distributions and all that they need, where it is installed."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        needed = {re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need}
        left += needed - found
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"]:
        pack(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:2] == ["check"]:
        check()
    else:
        for one in measured(20, 10, 1):
            print(f"{one.name} {one.value:.3f} {one.unit}", flush=True)
