from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.feature_extraction.text import HashingVectorizer

from annotation.campaign.records import CampaignRecords
from annotation.records import Look, Origin, PairMean, RuleResult, Supply, Verdict
from annotation.verdicts.acceptance import accept
from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.text_models import TextModel
from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from generation.production import read_transformed
from plumbline.hashes import packed, set_hash
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating, pair_id
from plumbline.store import read_frame, read_models, write_json
from plumbline.study import Study, load_study
from plumbline.study.evaluation import ModelSpec
from plumbline.study.transformations import EIGHT
from tests.generation.outputs import output
from tests.shared import made_once, note_outputs, rating_of

WORDS = ["red", "blue", "green", "cat", "dog", "bird", "runs", "sleeps", "eats", "fast", "slow", "today", "here",
         "there"]  # fmt: skip


def word_vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=16)


def vectors(texts: Sequence[str], prompt: str = "") -> Embeddings:
    """A bag of words, each word a fixed random direction: deterministic, and like texts are near each other."""
    return np.stack([sum(map(word_vector, (prompt + text).split())) for text in texts]).astype(np.float32)


def cosine(first: str, second: str) -> float:
    """The cosine of two texts' vectors."""
    a, b = vectors([first, second]).astype(float)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@contextmanager
def ngrams_of(sizes: Mapping[str, tuple[int, int]]) -> Iterator[None]:
    """Meanwhile, lexical models of these names count n-grams of these lengths, so that their scores differ."""
    load = ModelHost.load_model

    def load_model(host: ModelHost, spec: ModelSpec) -> tuple[Any, str]:
        model: Any
        model, revision = load(host, spec)
        if spec.name in sizes:
            model._vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=sizes[spec.name], n_features=2048)
        return model, revision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelHost, "load_model", load_model)
        yield


@dataclass
class FakeModel(TextModel):
    """A model that remembers what it was asked."""

    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str = ""
    roles: bool = False
    spoil: Callable[[str], bool] = lambda _: False
    calls: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        self.calls.append((prompt, role, tuple(texts)))
        made = vectors(texts, prompt)
        for row, text in enumerate(texts):
            if self.spoil(text):
                made[row, 0] = np.nan
        return made

    def routed(self) -> bool:
        return self.roles

    @property
    def seen(self) -> list[str]:
        return [text for _, _, texts in self.calls for text in texts]


@dataclass
class Loader:
    """Stands in for `ModelHost.load` and counts."""

    model: FakeModel = field(default_factory=FakeModel)
    loaded: list[str] = field(default_factory=list)
    broken: Callable[[str], Exception | None] = lambda _: None

    def __call__(self, host: ModelHost, spec: ModelSpec) -> Encoder:
        error = self.broken(spec.name)
        if error is not None:
            raise error
        self.loaded.append(spec.name)
        return Encoder(self.model, spec.name, spec.revision, host.evaluation.batch_size)


@pytest.fixture
def loader() -> Loader:
    return Loader()


def sentence(number: int, words: int = 4) -> str:
    rng = np.random.default_rng(number)
    return " ".join(rng.choice(WORDS, size=words)) + f" {number}"


def write_study(folder: Path, **changes: Any) -> Study:
    """A study of two data sets, two transformations, one seed and two models, with its files."""
    rng = np.random.default_rng(0)
    pairs = pd.DataFrame(
        {
            "sentence1": [sentence(i) for i in range(12)],
            "sentence2": [sentence(i + (100 if i % 2 else 0), 3) for i in range(12)],
            "score": rng.uniform(0, 5, 12).round(1),
        }
    )
    pairs.to_csv(folder / "sts.csv", index=False)
    texts = [f"{'cat' if i % 2 else 'dog'} {sentence(i + 50)}" for i in range(24)]
    requests = pd.DataFrame({"text": texts, "label": ["cat" if i % 2 else "dog" for i in range(24)]})
    requests["split"] = ["train"] * 16 + ["test"] * 8
    requests.to_csv(folder / "requests.csv", index=False)
    data = {
        "name": "small",
        "datasets": [
            {"name": "sts", "task": "sts", "path": "sts.csv", "language": "en"},
            {"name": "requests", "task": "classification", "path": "requests.csv", "language": "en"},
        ],
        "transformations": ["paraphrasing", "translation"],
        "seeds": [1337],
        "generator": {"kind": "recorded", "model": "writer", "path": "outputs.jsonl"},
        "sample": {"pairs": 5},
        "acceptance": {"min_pairs": 5},
        "evaluation": {"models": [{"name": "one", "revision": "1"}, {"name": "two", "revision": "1"}]},
        **changes,
    }
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    return load_study(file, folder / "exports")


def changed(text: str, transformation: str) -> str:
    """What the made-up generator makes of a text."""
    first, *rest = text.split()
    return (
        " ".join([*rest, first]) if transformation == "paraphrasing" else " ".join(f"{word}o" for word in text.split())
    )


def write_outputs(
    study: Study, status: Callable[[str, str], str] = lambda text, transformation: "ok", *, drawn_from: bool = True
) -> None:
    """Outputs of all transformations, as generation leaves them; `status` of a text and a transformation.

    A sample that there is counts as drawn from them.
    """
    plan = Plan(study)
    texts = [text for dataset in iter_datasets(study) for text in dataset.texts()]
    for name in study.transformations:
        for seed in study.seeds:
            made = {"model": "writer", "generator_hash": plan.generator_hash, "prompt_hash": plan.prompt_hashes[name]}
            rows = []
            for job in plan.jobs(texts, name, seed):
                found = status(job.text, name)
                said = {"output": changed(job.text, name)} if found == "ok" else {"output": "", "reason": "refused"}
                rows.append(output(job, status=found, **said, **made))
            note_outputs(study, name, seed, rows)
    if (study.folder / "sample.json").exists() and drawn_from:
        note_supplies(study)


def supplies(study: Study, without: Collection[str] = (), *names: str) -> list[Supply]:
    """What a sample of the present outputs is drawn from, by transformation (all, or those named) and language."""
    plan, texts = Plan(study), {dataset.name: list(dataset.texts()) for dataset in iter_datasets(study)}
    made: dict[tuple[str, str], dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for name, seed in itertools.product(names or study.transformations, study.seeds):
        file = study.transformation_file(name, seed)
        rows = read_transformed(study, name, seed) if file.exists() else []
        usable = {row.key: row.output for row in rows if row.status == "ok" and not {*row.flags} & {*without}}
        for dataset, its_texts in texts.items():
            ids: dict[str, set[str]] = defaultdict(set)
            for text in its_texts:
                key = plan.job(text, name, seed).key
                ids[text.language] |= {pair_id(key, usable[key])} if key in usable else set()
            for language, some in ids.items():
                made[name, language][dataset][seed] = set_hash(packed(sorted(some), ""))
    return [
        Supply(
            transformation=name, language=language, ok=9, failed=0, unanswered=0, without=tuple(without), outputs=pools
        )
        for (name, language), pools in made.items()
    ]


def note_supplies(study: Study) -> None:
    """Let the sample be drawn from the present outputs, and the verdicts be about these."""
    Manifest.of(study).write_models("sample.json", supplies(study))
    if (study.folder / "ratings.parquet").exists():
        accept(study)


def pair_of(plan: Plan, job: Job, dataset: Dataset) -> Pair:
    """The pair of a text and what the made-up generator makes of it."""
    kind = EIGHT[job.transformation]
    return Pair(
        pair_id=identity("pair", job.key),
        key=job.key,
        transformation=kind.name,
        axis=kind.axis,
        pool=kind.name,
        dataset=dataset.name,
        task_type=dataset.task,
        language=job.source_language,
        output_language=kind.output_language(job.source_language, job.language),
        seed=job.seed,
        original=job.text,
        transformed=changed(job.text, kind.name),
        model="writer",
        generator_hash=plan.generator_hash,
        prompt_hash=plan.prompt_hashes[kind.name],
        generator_kind="recorded",
    )


def write_pairs(study: Study) -> list[Pair]:
    """Five texts of each transformation, as annotation draws them: four of the first data set, one of the last.

    A translation's language is the data set's own, so each has some.
    """
    plan = Plan(study)
    loaded = list(iter_datasets(study))
    dataset, *_, last = [*loaded, loaded[-1]]
    texts = [*list({t.text: t for t in dataset.texts()}.values())[: 5 if dataset.name == last.name else 4]]
    texts += [next(iter(last.texts()))]
    pairs = list[Pair]()
    for name in study.transformations:
        jobs = list(plan.jobs(texts, name, study.seeds[0]))[:5]
        pairs += [pair_of(plan, job, dataset) for job in jobs]
    Manifest.of(study).write_table("pairs.parquet", pairs, Pair)
    Manifest.of(study).write_table("controls.parquet", list[Pair](), Pair)
    note_supplies(study)
    return pairs


def verdict(study: Study, transformation: str, /, **changes: Any) -> Verdict:
    """A verdict that accepts a transformation of English texts in every language."""
    plan, without = Plan(study), changes.pop("without", ())
    origin = {
        "model": "writer",
        "generator_hash": plan.generator_hash,
        "prompt_hash": plan.prompt_hashes[transformation],
        "generator_kind": "recorded",
    }
    unit = {"transformation": transformation, "language": changes.get("language", "en")}
    none = Supply(**unit, ok=0, failed=0, unanswered=0, without=without)
    by_unit = {(each.transformation, each.language): each for each in supplies(study, without, transformation)}
    data = {
        "supply": by_unit.get((unit["transformation"], unit["language"]), none),
        "origin": Origin(**{name: changes.pop(name, value) for name, value in origin.items()}),
        "result": RuleResult(threshold=3.0),
        "transformation": transformation,
        "axis": EIGHT[transformation].axis,
        "pool": transformation,
        "language": "en",
        "output_languages": ("ar", "de", "en", "es", "fr", "tr"),
        "decision": "accepted",
        "reasons": ("mean quality 4.20 is at least 3",),
        "n_pairs": 20,
        "questions": (),
        "simulated": False,
    }
    return Verdict(**{**data, **changes})


REJECTED = "mean quality 2.00 is below 3; mean fluency 2.00 is below 3"


def write_verdicts(study: Study, *rejected: str, raters: int = 3) -> None:
    """Ratings of all pairs, by which all transformations are accepted but those that are named (REJECTED)."""
    ratings = [
        rating_of(pair, f"rater-{number}", question, 2 if pair.transformation in rejected else 4)
        for pair in CampaignRecords(study).pairs
        for number in range(raters)
        for question in ("quality", "fluency")
    ]
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    Manifest.of(study).write_table("control_ratings.parquet", list[Rating](), Rating)
    accept(study)


class _Printed:
    """Verdicts and means that a test made up, in place of those that follow from ratings."""

    def __init__(self, records: EvaluationRecords) -> None:
        folder = records.study.folder
        self.verdicts = read_models(folder / "verdicts.json", Verdict, "plumbline accept")
        means = folder / "pair_means.parquet"
        self.means = read_frame(means, PairMean, "") if means.exists() else None


def believe_print_outs(patch: pytest.MonkeyPatch) -> None:
    """Take verdicts that a test makes up as they are (in this process)."""
    patch.setattr("evaluation.records.looked_at", _Printed)


def print_verdicts(study: Study, verdicts: Sequence[Verdict]) -> None:
    """Print verdicts that a test makes up, with a look at them."""
    write_json(study.folder / "verdicts.json", list(verdicts))
    look = Look(at=datetime(2026, 2, 1, tzinfo=UTC), n_ratings=1, rests_on={}, decisions={})
    Manifest.of(study).write_models("looks.json", [look])


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts that a test makes up are taken as they are."""
    believe_print_outs(monkeypatch)


def make_study(folder: Path) -> None:
    """A study that is ready to be evaluated: outputs, sample, and every transformation accepted."""
    made = write_study(folder)
    write_outputs(made)
    write_pairs(made)
    write_verdicts(made)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Such a study in a folder of the test's own."""
    return copied("accepted", make_study, tmp_path)


@pytest.fixture
def evaluated_one(tmp_path: Path) -> Study:
    """The same with the scores of the first of its models."""
    return copied("evaluated-one", partial(make_evaluated, models=["one"]), tmp_path)


@pytest.fixture
def evaluated(tmp_path: Path) -> Study:
    """The same with the scores of both."""
    return copied("evaluated", make_evaluated, tmp_path)


def make_evaluated(folder: Path, **options: Any) -> None:
    """An evaluated study."""
    evaluate(copied("accepted", make_study, folder), load=Loader(), **options)


def copied(name: str, make: Callable[[Path], None], folder: Path) -> Study:
    """A copy, in this folder, of a study that is made once."""
    shutil.copytree(made_once(name, make), folder, dirs_exist_ok=True)
    return load_study(folder / "study.yaml", folder / "exports")


def json_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
