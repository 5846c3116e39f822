"""Study files that say what cannot be, a row each; every command meets them in turn."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .ground import COLUMNS, SECRET, Bad, Place

E = "--study {s} --exports {e}"
#: Commands that read a study before anything else.
COMMANDS = (
    f"generation.run {E}",
    f"generation.run {E} --dry-run",
    f"generation.errors {E}",
    f"generation.compare {E}",
    f"annotation plan {E}",
    f"annotation sample {E}",
    "annotation serve --study {s} --data {p}/home",
    "annotation users add ann --study {s} --data {p}/home",
    f"annotation publish {E}",
    f"annotation simulate {E}",
    f"annotation collect {E}",
    f"annotation collect {E} --csv {{p}}/answers.csv --columns {COLUMNS}",
    f"annotation status {E}",
    f"annotation review {E}",
    f"annotation accept {E}",
    f"annotation report {E}",
    f"annotation crowd plan {E} --platform prolific",
    f"annotation crowd launch {E} --platform prolific",
    f"annotation crowd status {E}",
    f"annotation crowd collect {E}",
    f"annotation crowd review {E}",
    f"annotation crowd approve {E} --all",
    f"annotation crowd reject {E} X",
    f"annotation crowd bonus {E}",
    f"annotation crowd close {E}",
    f"evaluation.run {E}",
    f"evaluation.report {E}",
)
INF, NAN = float("inf"), float("nan")
SERVER = {"kind": "openai", "model": "m", "base_url": "http://h"}
ENGINE = {"kind": "vllm", "model": "m"}
FINITE = "should be a finite number"
VALUES: tuple[tuple[str, Any, str], ...] = (
    ("name", "../x", "name: must be made of lower-case letters, digits, - and _, such as"),
    ("name", "", "name: must be made of lower-case letters"),
    ("name", "Small", "name: must be made of lower-case letters"),
    ("name", None, "name: Input should be a valid string"),
    ("name", 7, 'write it in quotes: "7"'),
    ("nmae", "x", "unknown key 'nmae'; did you mean 'name'?"),
    ("x" * 5000, "x", "unknown key 'xxx"),
    ("description", True, 'description: Input should be a valid string; write it in quotes: "True"'),
    ("datasets", [], "datasets: Tuple should have at least 1 item"),
    ("datasets", None, "datasets: is not a list; write one, such as [a, b]"),
    ("datasets", "x", "datasets: is not a list; write one, such as [a, b]"),
    ("datasets.1.name", "sentences", "data set 'sentences' appears twice"),
    ("datasets.0.name", "a/b", "datasets.0.name: must be made of letters"),
    ("datasets.0.task", "stss", "datasets.0.task: Input should be 'sts'"),
    ("datasets.0.path", "", "datasets.0.path: is empty"),
    ("datasets.0.path", "\u200b", "datasets.0.path: is empty"),
    ("datasets.0.path", "a\nb", "datasets.0.path: 'a\\nb' contains a line break"),
    ("datasets.0.path", "x" * 2000, "datasets.0.path: has 2000 characters; at most 500 are allowed"),
    ("datasets.0.language", "klingon", "language 'klingon'"),
    ("datasets.0.language", 5, "datasets.0.language: Input should be a valid string"),
    ("datasets.1.language", "en-de", "is a pair, but classification has single texts"),
    ("datasets.0.split", "train", "datasets.0: split: must be `test` or `all` for a file, not 'train'"),
    ("datasets.0.columns", {"score": 4}, "datasets.0.columns.score: Input should be a valid string"),
    ("datasets.0.passages", "perhaps", "datasets.0.passages: Input should be a valid boolean"),
    ("datasets.0.revision", "0" * 40, "datasets.0: revision: applies to a task of mteb"),
    ("datasets.0", {"mteb": "STS17", "revision": "main"}, "'main' is not a commit hash of 40 characters"),
    ("datasets.0", {"mteb": "STS17", "subsets": ["a", "a"]}, "subset 'a' appears twice"),
    ("datasets.0", {"mteb": "STS17", "languages": {"a": "klingon"}}, "language 'klingon'"),
    ("datasets.0", 3, "datasets.0: is not a mapping; write keys with their values"),
    ("transformations", [], "transformations: Tuple should have at least 1 item"),
    ("transformations", ["paraphrase"], "unknown transformation 'paraphrase'; did you mean 'paraphrasing'?"),
    ("transformations", ["translation", "translation"], "transformation 'translation' appears twice"),
    ("transformations", [True], "transformations.0: Input should be a valid string"),
    ("prompts", "../../x", "prompts: must be made of lower-case letters"),
    ("prompts", "../studies", "prompts: must be made of lower-case"),
    ("prompts", "/etc", "prompts: must be made of lower-case letters"),
    ("rubric", "../../x", "rubric: must be made of lower-case letters"),
    ("rubric", "", "rubric: must be made of lower-case letters"),
    ("seeds", [], "seeds: Tuple should have at least 1 item"),
    ("seeds", [True], "seeds: true is not a number"),
    ("seeds", [1, 1], "seed '1' appears twice"),
    ("seeds", [-1], "seeds.0: Input should be greater than or equal to 0"),
    ("seeds", [2**63], "seeds: has more than 18 digits"),
    ("seeds", [10**400], "seeds: has more than 18 digits"),
    ("seeds", [1.5], "seeds.0: Input should be a valid integer"),
    ("seeds", [NAN], "seeds.0: Input should be a finite number"),
    ("seeds", ["x"], "seeds.0: Input should be a valid integer"),
    ("seeds", {"a": 1}, "seeds: is not a list; write one"),
    ("generator", None, "generator: is not a mapping"),
    ("generator", {"model": "m"}, "generator: has no `kind`; add one"),
    ("generator.kind", "gpt", "generator: unknown kind 'gpt'; known: 'recorded', "),
    ("generator.model", " ", "generator.model: is empty"),
    ("generator.model", "a\u202eb", "generator.model: 'a\\u202eb' contains a line break or an invisible character"),
    ("generator.path", "", "generator.path: is empty"),
    ("generator.base_url", "http://h", "base_url: does not apply to an engine of kind recorded; take it out"),
    ("generator.sampling", {"temperature": INF}, f"generator.sampling.temperature: Input {FINITE}"),
    ("generator.sampling", {"temperature": -1}, "temperature: Input should be greater than or equal to 0"),
    ("generator.sampling", {"temperature": 1e300}, "temperature: Input should be less than or equal to 2"),
    ("generator.sampling", {"temperature": True}, "temperature: true is not a number"),
    ("generator.sampling", {"top_p": 0}, "top_p: Input should be greater than 0"),
    ("generator.sampling", {"top_p": NAN}, f"top_p: Input {FINITE}"),
    ("generator.sampling", {"max_tokens": 10**18}, "max_tokens: Input should be less than or equal to 10000000"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": "h/v1"}], "base_url: 'h/v1' is not an address"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": "http://h:99999/v1"}], "is not an address"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": "http://h/v1\r\nX: y"}], "is not an address"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://u:{SECRET}@h/v1"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://u:{SECRET}/x@h/v1"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://h/v1?key={SECRET}"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://h/v1#{SECRET}"}], "contains a user"),
    ("candidates", [{**SERVER, "settings": {"api_key_env": "a=b"}}], "key_env: must be"),
    ("candidates", [{**SERVER, "settings": {"timeout_seconds": INF}}], FINITE),
    ("candidates", [{**SERVER, "settings": {"timeout_seconds": 0}}], "greater than 0"),
    ("candidates", [{**SERVER, "settings": {"concurrency": 0}}], "greater than or"),
    ("candidates", [{**SERVER, "settings": {"retries": 10**9}}], "less than or equal"),
    ("candidates", [{**ENGINE, "settings": {"gpu_memory_utilization": 1.5}}], "less than or equal to 1"),
    ("candidates", [{**ENGINE, "settings": {"tensor_parallel_size": True}}], "_size: true is not a number"),
    ("candidates", [{"kind": "vllm", "model": "m"}] * 2, "candidate 'm@' appears twice"),
    ("retry", {"attempts": 0}, "retry.attempts: Input should be greater than or equal to 1"),
    ("retry", {"flags": ["emtpy"]}, "unknown error type 'emtpy'; did you mean 'empty'?"),
    ("retry", {"more_tokens": INF}, "retry: more_tokens is no longer a key: it is 2.0 in every study; take it out"),
    ("sample.pairs", 0, "sample.pairs: Input should be greater than or equal to 1"),
    ("sample.pairs", INF, f"sample.pairs: Input {FINITE}"),
    ("sample.pairs", True, "pairs: true is not a number"),
    ("sample.pairs", "many", "sample.pairs: Input should be a valid integer"),
    ("sample.pairs", 10**18, "sample.pairs: Input should be less than or equal to 10000000"),
    ("sample.seed", -1, "sample.seed: Input should be greater than or equal to 0"),
    ("sample.controls", {"positive": 10**9}, "positive: Input should be less than or equal to 1000"),
    ("sample.repeats", -1, "sample.repeats: Input should be greater than or equal to 0"),
    ("sample.batch", NAN, f"sample.batch: Input {FINITE}"),
    ("sample.without", "wrong_language", "sample.without: is not a list; write one, such as [a, b]"),
    ("sample.without", ["wrong"], "sample.without: unknown error type 'wrong'; known: identical"),
    ("raters.per_pair", 1, "`acceptance.min_raters: 2` is more than `raters.per_pair: 1`"),
    ("raters.per_pair", True, "per_pair: true is not a number"),
    ("raters.people", ["owner"], "raters.people: 'owner' is reserved for the platform"),
    ("raters.people", ["simulated-a"], "'simulated-a' is reserved for the platform"),
    ("raters.people", [".."], "raters.people: '..' is not a valid account name"),
    ("raters.people", ["ada", "<script>"], "'<script>' is not a valid account name"),
    ("raters.people", ["a/b/c"], "'a/b/c' is not a valid account name"),
    ("raters.people", ["a" * 300], "is not a valid account name, which has 1 to 64"),
    ("raters.simulated", [{"name": "a", "bias": NAN}], f"raters.simulated.0.bias: Input {FINITE}"),
    ("raters.simulated", [{"name": "a", "noise": -1}], "noise: Input should be greater than or equal to 0"),
    ("raters.simulated", [{"name": "a"}, {"name": "a"}], "simulated rater 'a' appears twice"),
    ("raters.simulation_seed", 2**64, "simulation_seed: has more than 18 digits"),
    ("acceptance.threshold", NAN, f"acceptance.threshold: Input {FINITE}"),
    ("acceptance.threshold", INF, f"acceptance.threshold: Input {FINITE}"),
    ("acceptance.threshold", True, "threshold: true is not a number"),
    ("acceptance.threshold", "3,5", "acceptance.threshold: Input should be a valid number"),
    ("acceptance.rule", "median", "acceptance.rule: Input should be 'mean' or 'lower_bound'"),
    ("acceptance.stop", "anytime", "set `rule: lower_bound` and `interval: pairs`"),
    ("acceptance.stop", "blocks", "`stop: blocks` decides by an interval over pairs; set `rule: lower_bound`"),
    ("acceptance", {"stop": "blocks", "rule": "lower_bound", "min_pairs": 6}, "stop: blocks` needs `raters.blocks`"),
    ("acceptance.spending", "pocock", "`spending` applies only to `stop: blocks`"),
    ("raters.blocks", [20, 10], "raters.blocks: [20, 10] is not ascending"),
    ("raters.blocks", [4, 6], "raters.blocks.0: Input should be greater than or equal to 8"),
    ("raters.blocks", [8, 16], "`raters.blocks` needs `acceptance.stop: blocks`, not `fixed`"),
    ("acceptance.min_pairs", 7, "acceptance.min_pairs 7 is more than sample.pairs 6"),
    ("acceptance.min_ac2", 2, "acceptance.min_ac2: Input should be less than or equal to 1"),
    ("acceptance.min_ac2", NAN, f"acceptance.min_ac2: Input {FINITE}"),
    ("quality", {"too_fast": 1}, "quality: too_fast is no longer a key: it is 0.25 in every study; take it out"),
    ("quality", {"low": NAN}, f"quality.low: Input {FINITE}"),
    ("quality", {"apart": INF}, f"quality.apart: Input {FINITE}"),
    ("crowd", {"pay": {"extra": {"expansion": NAN}}}, f"crowd.pay.extra.expansion: Input {FINITE}"),
    ("crowd", {"pay": {"extra": {"expansion": True}}}, "extra: true is not a number"),
    ("crowd", {"pay": {"hourly": 3}}, "hourly 3 is below 24 dollars, the lowest fair wage"),
    ("crowd", {"pay": {"hourly": INF}}, f"crowd.pay.hourly: Input {FINITE}"),
    ("crowd", {"pay": {"currency": "EUR"}}, "crowd.pay: unknown key 'currency'"),
    ("crowd", {"share": 0}, "crowd.share: Input should be greater than 0"),
    ("crowd", {"countries": {"en": ["UK"]}}, "no country has the code 'UK'"),
    ("crowd", {"countries": {"klingon": ["DE"]}}, "'klingon'"),
    ("crowd", {"address": f"https://u:{SECRET}@h"}, "crowd.address: the address contains a user"),
    ("crowd", {"address": "ftp://h"}, "crowd.address: 'ftp://h' is not an address"),
    ("crowd", {"comprehension": [{"text": "q", "options": ["a", "b"], "right": 2}]}, "right 2 is too large"),
    ("crowd", {"comprehension": [{"text": "\u200b", "options": ["a", "b"], "right": 0}]}, "text: is empty"),
    ("crowd", {"consent": " "}, "crowd.consent: is empty"),
    ("evaluation", None, "evaluation: is not a mapping; write keys with their values"),
    ("evaluation.models", [], "evaluation.models: Tuple should have at least 1 item"),
    ("evaluation.models.0.name", "", "evaluation.models.0.name: is empty"),
    ("evaluation.models", [{"name": "a"}, {"name": "a"}], "model 'a@' appears twice"),
    ("evaluation.models", [{"name": "a", "kind": "openai"}], "needs `base_url`"),
    ("evaluation.models", [{"name": "a", "base_url": "http://h"}], "takes no 'base_url'"),
    ("evaluation.models", [{"name": "a", "kind": "openai", "base_url": f"http://{SECRET}@h"}], "contains a user"),
    ("evaluation.models", [{"name": "a", "kind": "openai", "base_url": "x"}], "'x' is not an address"),
    ("evaluation.batch_size", 0, "evaluation.batch_size: Input should be greater than or equal to 1"),
    ("evaluation.batch_size", True, "batch_size: true is not a number"),
    ("evaluation.embeddings_gb", INF, f"evaluation.embeddings_gb: Input {FINITE}"),
    ("evaluation.precision", "int8", "evaluation.precision: Input should be 'float32'"),
    ("evaluation.protocol", "hteb", "evaluation.protocol: Input should be 'paper' or 'mteb'"),
    ("evaluation.failed", "skip", "evaluation.failed: Input should be 'drop' or 'original'"),
)  # fmt: skip
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + turn)}: &{chr(98 + turn)} [{','.join(['*' + chr(97 + turn)] * 10)}]\n" for turn in range(9)
)
FILES: tuple[tuple[str, bytes, str], ...] = (
    ("empty", b"", "a study is a mapping"),
    ("a list", b"- a\n", "a study is a mapping"),
    ("a text", b"hello\n", "a study is a mapping"),
    ("nulls", bytes(10), "holds a null character (line 1)"),
    ("latin-1", b"name: small\ndescription: caf\xe9\n", "not UTF-8 (byte 0xe9 in line 2); save it as UTF-8"),
    ("UTF-16", "name: small\n".encode("utf-16"), "not UTF-8 (byte 0xff in line 1)"),
    ("3,000 lists deep", b"a: " + b"[" * 3000, "line 1: nested too deep"),
    ("3,000 mappings deep", b"a: " + b"{a: " * 3000, "nested too deep"),
    ("a number of 5,000 digits", b"name: " + b"9" * 5000, "a number has too many digits; shorten it"),
    ("a billion laughs", LAUGHS.encode(), "more than 200000 values with aliases expanded"),
    ("an alias of itself", b"a: &a [*a]", "*a has no complete anchor before it"),
    (
        "a tag",
        b"a: !!python/object:os.system x",
        "tags such as tag:yaml.org,2002:python/object:os.system are not supported",
    ),
    ("an empty number", b"a: !!int ''", "tags such as"),
    ("a key twice", b"name: a\nname: b\n", "key 'name' appears twice"),
    ("two documents", b"--- {}\n--- {}\n", "expected a single document"),
    ("half a character", b'name: "\\ud800"', "not valid YAML"),
    ("a null escaped", b'name: "\\0"', "line 1: holds a null character or half a surrogate pair"),
    ("a control character", b"name: \x01", "control characters are not allowed"),
    ("a list for a key", b"[a]: b", "unhashable key"),
    ("a bracket open", b"name: [", "not valid YAML"),
    ("a tab", b"name:\n\t- a", "not valid YAML"),
    ("10 MB", b"# " + b"x" * 10_000_000, "larger than 8 MB"),
)


def _changed(path: str, value: Any) -> Callable[[Place], None]:
    return lambda place: place.change(path, value)


def _written(content: bytes) -> Callable[[Place], None]:
    return lambda place: place.file.write_bytes(content) and None


def _instead(make: Callable[[Path], object]) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        place.file.unlink()
        make(place.file)

    return spoil


PLACES: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("nothing", lambda file: None, "no study file"),
    ("a folder", lambda file: file.mkdir(), "is a folder, not a file"),
    ("a pipe", os.mkfifo, "is not an ordinary file (a pipe or a device)"),
    ("a link to itself", lambda file: file.symlink_to(file.name), "cannot be read: Too many levels of symbolic links"),
    ("a device", lambda file: file.symlink_to("/dev/zero"), "is not an ordinary file"),
    ("a file for a folder", lambda file: file.symlink_to("answers.csv/x"), "no study file"),
)


def rows() -> Iterator[Bad]:
    """A row for each value, file and place, the commands in turn."""
    commands = itertools.cycle(COMMANDS)
    for path, value, says in VALUES:
        yield Bad(f"{path[:40]}={str(value)[:30]}", next(commands), _changed(path, value), ("study.yaml: ", says))
    for name, content, says in FILES:
        yield Bad(f"file: {name}", next(commands), _written(content), ("study.yaml: ", says))
    for name, make, says in PLACES:
        yield Bad(f"place: {name}", next(commands), _instead(make), ("study.yaml", says))


ROWS = tuple(rows())


@pytest.mark.parametrize("bad", ROWS, ids=lambda bad: bad.name)
def test_a_study_that_cannot_be_is_one_line(bad: Bad, refused: Callable[[Bad], None]) -> None:
    refused(bad)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_refuses_a_bad_study(words: str, refused: Callable[[Bad], None]) -> None:
    refused(Bad("", words, _changed("seeds", [True]), ("study.yaml: seeds: true is not a number",)))


def test_what_yaml_1_1_would_make_of_a_text_stays_a_text(ground: Place, tmp_path: Path) -> None:
    from plumbline.study import load_study

    content = yaml.safe_load(ground.file.read_text(encoding="utf-8"))
    text = yaml.safe_dump({**content, "name": "NAME", "description": "WHEN"})
    file = tmp_path / "study.yaml"
    for name, description in (("no", "2024-03-01"), ("on", "12:30"), ("yes", "010")):
        file.write_text(text.replace("NAME", name).replace("WHEN", description), encoding="utf-8")
        study = load_study(file)
        assert (study.name, study.description) == (name, description)
