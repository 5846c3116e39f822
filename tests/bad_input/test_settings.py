"""Study files that say what cannot be, a row each; every command meets them in turn."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .ground import COLUMNS, SECRET, Bad, Place, instead

E = "--study {s} --exports {e}"
#: Commands that read a study before anything else.
COMMANDS = (
    f"generate {E}",
    f"generate {E} --dry-run",
    f"errors {E}",
    f"compare {E}",
    f"plan {E}",
    f"sample {E}",
    "serve --study {s} --data {p}/home",
    "users add ann --study {s} --data {p}/home",
    f"publish {E}",
    f"simulate {E}",
    f"collect {E}",
    f"collect {E} --csv {{p}}/answers.csv --columns {COLUMNS}",
    f"status {E}",
    f"review {E}",
    f"accept {E}",
    f"ratings-report {E}",
    f"crowd plan {E} --platform prolific",
    f"crowd launch {E} --platform prolific",
    f"crowd status {E}",
    f"crowd approve {E} --all",
    f"crowd reject {E} X",
    f"crowd bonus {E}",
    f"crowd close {E}",
    f"evaluate {E}",
    f"scores-report {E}",
)
INF, NAN = float("inf"), float("nan")
SERVER = {"kind": "openai", "model": "m", "base_url": "http://h"}
ENGINE = {"kind": "vllm", "model": "m"}
FINITE = "should be a finite number"
VALUES: tuple[tuple[str, Any, str], ...] = (
    ("name", "../x", "name: must be made of lower-case letters, digits, - and _, such as"),
    ("name", None, "name: Input should be a valid string"),
    ("name", 7, 'write it in quotes: "7"'),
    ("nmae", "x", "unknown key 'nmae'; did you mean 'name'?"),
    ("x" * 5000, "x", "unknown key 'xxx"),
    ("description", True, 'description: Input should be a valid string; write it in quotes: "True"'),
    ("datasets", [], "datasets: Tuple should have at least 1 item"),
    ("datasets", None, "datasets: is not a list; write one, such as [a, b]"),
    ("datasets.1.name", "sentences", "data set 'sentences' appears twice"),
    ("datasets.0.name", "a/b", "datasets.0.name: must be made of letters"),
    ("datasets.0.task", "stss", "datasets.0.task: Input should be 'sts'"),
    ("datasets.0.path", "", "datasets.0.path: is empty"),
    ("datasets.0.path", "a\nb", "datasets.0.path: 'a\\nb' contains a line break"),
    ("datasets.0.path", "x" * 2000, "datasets.0.path: has 2000 characters; at most 500 are allowed"),
    ("datasets.0.language", "klingon", "language 'klingon'"),
    ("datasets.1.language", "en-de", "is a pair, but classification has single texts"),
    ("datasets.0.split", "train", "datasets.0: split: must be `test` or `all` for a file, not 'train'"),
    ("datasets.0.revision", "0" * 40, "datasets.0: revision: applies to a task of mteb"),
    ("datasets.0", {"mteb": "STS17", "revision": "main"}, "'main' is not a commit hash of 40 characters"),
    ("datasets.0", {"mteb": "STS17", "subsets": ["a", "a"]}, "subset 'a' appears twice"),
    ("datasets.0", {"name": "a", "path": "a.csv", "language": "en"}, "datasets.0: task is missing; add it"),
    ("datasets.0", {"name": "a", "task": "sts", "language": "en"}, "datasets.0: path is missing; add it"),
    ("datasets.0", 3, "datasets.0: is not a mapping; write keys with their values"),
    ("transformations", ["paraphrase"], "unknown transformation 'paraphrase'; did you mean 'paraphrasing'?"),
    ("transformations", ["translation", "translation"], "transformation 'translation' appears twice"),
    ("prompts", "../../x", "prompts: must be made of lower-case letters"),
    ("languages", ["enlish"], "languages.0: language 'enlish' is not known"),
    ("languages", ["de", "deu"], "language 'de' appears twice"),
    ("seeds", [True], "seeds: true is not a number"),
    ("seeds", [1, 1], "seed '1' appears twice"),
    ("seeds", [-1], "seeds.0: Input should be greater than or equal to 0"),
    ("seeds", [2**63], "seeds: has more than 18 digits"),
    ("seeds", [NAN], "seeds.0: Input should be a finite number"),
    ("generator", None, "generator: is not a mapping"),
    ("generator", "gemma", "generator: no engine 'gemma'; define it under `engines`"),
    ("engines", {"a": {"kind": "openai", "model": "m"}}, "engines.a.base_url: Field required"),
    ("generator", {"model": "m"}, "generator: has no `kind`; add one"),
    ("generator.kind", "gpt", "generator: unknown kind 'gpt'; known: 'recorded', "),
    ("generator.model", "a\u202eb", "generator.model: 'a\\u202eb' contains a line break or an invisible character"),
    ("generator.base_url", "http://h", "base_url: does not apply to an engine of kind recorded; take it out"),
    ("generator.sampling", {"temperature": INF}, f"generator.sampling.temperature: Input {FINITE}"),
    ("generator.sampling", {"temperature": 1e300}, "temperature: Input should be less than or equal to 2"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": "h/v1"}], "base_url: 'h/v1' is not an address"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": "http://h:99999/v1"}], "is not an address"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://u:{SECRET}@h/v1"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://u:{SECRET}/x@h/v1"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://h/v1?key={SECRET}"}], "contains a user"),
    ("candidates", [{"kind": "openai", "model": "m", "base_url": f"http://h/v1#{SECRET}"}], "contains a user"),
    ("candidates", [{**SERVER, "settings": {"api_key_env": "a=b"}}], "key_env: must be"),
    ("candidates", [{**SERVER, "settings": {"concurrency": 0}}], "greater than or"),
    ("candidates", [{**SERVER, "settings": {"concurrency": 10**9}}], "less than or equal"),
    ("candidates", [{**ENGINE, "settings": {"tensor_parallel_size": 0}}], "a number of at least 1"),
    ("candidates", [{"kind": "vllm", "model": "m"}] * 2, "candidate 'm@' appears twice"),
    ("sample.without", ["wrong"], "sample.without: unknown error type 'wrong'; known: identical"),
    ("raters.per_pair", 1, "`acceptance.min_raters: 2` is more than `raters.per_pair: 1`"),
    ("raters.people", ["owner"], "raters.people: 'owner' is reserved for the platform"),
    ("raters.people", [".."], "raters.people: '..' is not a valid account name"),
    ("raters.people", ["a" * 300], "is not a valid account name, which has 1 to 64"),
    ("raters.simulated", [{"name": "a"}, {"name": "a"}], "simulated rater 'a' appears twice"),
    ("acceptance.rule", "median", "acceptance.rule: Input should be 'mean' or 'lower_bound'"),
    ("raters.blocks", [20, 10], "raters.blocks: [20, 10] is not ascending"),
    ("acceptance.min_pairs", 7, "acceptance.min_pairs 7 is more than sample.pairs 6"),
    ("crowd", "crowd.yaml", "crowd: no file "),
    ("crowd", {"pay": {"hourly": 0}}, "greater than 0"),
    ("crowd", {"pay": {"currency": "EUR"}}, "crowd.pay: unknown key 'currency'"),
    ("crowd", {"countries": {"en": ["UK"]}}, "no country has the code 'UK'"),
    ("crowd", {"countries": {"klingon": ["DE"]}}, "'klingon'"),
    ("crowd", {"address": f"https://u:{SECRET}@h"}, "crowd.address: the address contains a user"),
    ("crowd", {"address": "https://h/a path"}, "crowd.address: 'https://h/a path' is not an address"),
    ("crowd", {"address": "https://h/%2e"}, "crowd.address: 'https://h/%2e': its path may have letters, digits and"),
    ("evaluation.models.0.name", "", "evaluation.models.0.name: is empty"),
    ("evaluation.models", [{"name": "a"}, {"name": "a"}], "model 'a@' appears twice"),
    ("evaluation.models", [{"name": "a", "kind": "openai"}], "evaluation.models.0.base_url: Field required"),
    ("evaluation.models", [{"name": "a", "base_url": "http://h"}], "base_url: does not apply to a model of kind"),
    ("evaluation.models", [{"name": "a", "kind": "openai", "base_url": f"http://{SECRET}@h"}], "contains a user"),
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
    ("3,000 lists deep", b"a: " + b"[" * 3000, "nest"),
    ("3,000 mappings deep", b"a: " + b"{a: " * 3000, "nested too deep"),
    ("a number of 5,000 digits", b"name: " + b"9" * 5000, "a number has too many digits; shorten it"),
    ("a billion laughs", LAUGHS.encode(), "more than 200000 values with aliases expanded"),
    ("an alias of itself", b"a: &a [*a]", "*a has no complete anchor before it"),
    ("a tag", b"a: !!python/object:os.system x", "tags such as tag:yaml.org,2002:python/object:os.system are not"),
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


PLACES: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("nothing", lambda file: None, "no study file"),
    ("a folder", lambda file: file.mkdir(), "is a folder, not a file"),
    ("a pipe", os.mkfifo, "is not an ordinary file (a pipe or a device)"),
    ("a link to itself", lambda file: file.symlink_to(file.name), "cannot be read: Too many levels of symbolic links"),
    ("a device", lambda file: file.symlink_to("/dev/zero"), "is not an ordinary file"),
    ("a file for a folder", lambda file: file.symlink_to("answers.csv/x"), "no study file"),
)


def rows() -> Iterator[Bad]:
    commands = itertools.cycle(COMMANDS)
    for path, value, says in VALUES:
        yield Bad(f"{path[:40]}={str(value)[:30]}", next(commands), _changed(path, value), ("study.yaml: ", says))
    for name, content, says in FILES:
        yield Bad(f"file: {name}", next(commands), _written(content), ("study.yaml: ", says))
    for name, make, says in PLACES:
        yield Bad(f"place: {name}", next(commands), instead(lambda place: place.file, make), ("study.yaml", says))


ROWS = tuple(rows())


@pytest.mark.parametrize("bad", ROWS, ids=lambda bad: bad.name)
def test_a_study_that_cannot_be_is_one_line(bad: Bad, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(bad)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_refuses_a_bad_study(words: str, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(Bad("", words, _changed("seeds", [True]), ("study.yaml: seeds: true is not a number",)))


def test_what_yaml_1_1_would_make_of_a_text_stays_a_text(ground: Place, tmp_path: Path) -> None:
    from plumbline.study import load_study

    content = yaml.safe_load(ground.file.read_text(encoding="utf-8"))
    text = yaml.safe_dump({**content, "name": "NAME", "description": "WHEN"})
    file = tmp_path / "study.yaml"
    for name, description in (("no", "2024-03-01"), ("on", "12:30"), ("yes", "010")):
        file.write_text(text.replace("NAME", name).replace("WHEN", description), encoding="utf-8")
        study = load_study(file)
        assert (study.name, study.description) == (name, description)
