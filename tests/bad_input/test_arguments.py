"""Words on the command line and in the environment that cannot be, a row each; no secret is ever in the line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from plumbline.addresses import shown
from plumbline.errors import ServiceError
from plumbline.study import ROOT

from .ground import SECRET, Bad, Place, copy

E = "--study {s} --exports {e}"
WORDS: tuple[tuple[str, str], ...] = (
    ("generate", "parameter --study requires an argument"),
    (f"generate {E} --generator other", "no generator 'other'; known: m"),
    ("generate --study none.yaml", "no study file none.yaml"),
    ("generate --study {p}", "is a folder, not a file"),
    ("generate --study /dev/null", "is not an ordinary file"),
    (f"generate --study {'x' * 5000}", "File name too long"),
    (f"generate --study {{s}} --exports s3://u:{SECRET}@bucket",
     "without keys, passwords or options"),
    (f"generate --study {{s}} --exports s3://bucket/x?key={SECRET}", "without keys, passwords or options"),
    ("generate --study {s} --exports nope://x/y", "--exports nope://x/y"),
    ("generate --study s3://bucket/x.yaml", "no study file s3://bucket/x.yaml on this machine"),
    (f"collect {E} --archive s3://b/x.csv", "'s3://b/x.csv' is an address; name a file or folder of"),
    (f"errors {E} --by none", "'none' is none of transformation, dataset, language"),
    (f"evaluate {E} --models other", "no model 'other'"),
    (f"scores-report {E} --compare {{s}}", "is the study itself"),
    (f"scores-report {E} --baseline other", "other"),
    (f"review {E} --exclude nobody --reason x", "has no rater 'nobody'"),
    (f"review {E} --exclude a --keep b", "Mutually exclusive arguments: {--exclude, --keep}"),
    (f"accept {E} --amend because", "leave it out: the rules have not changed"),
    (f"plan {E} --pairs 0", "0"),
    (f"plan {E} --pairs x", "x"),
    (f"plan {E} --seed -1", "'-1' is not a whole number from 0 to"),
    (f"plan {E} --means nan", "'nan' is not a number"),
    (f"review {E} --reason x", "--reason goes with --exclude or --keep"),
    (f"scores-report {E} --multilingual fake", "--multilingual needs --translation"),
    (f"scores-report {E} --translation search search", "'search' is named twice"),
    (f"scores-report {E} --translation a b", "no data set 'a' has scores; known: sentences, requests, search"),
    ("sensitivity-report --scores x.csv --part a=b/c --part a=d/e", "--part: names two parts of a"),
    ("bundle evaluate x.zip --model m --data a=b c", "--data: 'c' is not NAME=FILE"),
    ("bundle evaluate x.zip --model m --data a=b a=c", "--data: names two files for a"),
    (f"collect {E} --archive {{p}}", "is a folder, not a file"),
    (f"crowd plan {E} --platform other", "'other' is none of prolific, link, rehearsal, mturk"),
    (f"crowd launch {E} --platform null --max-cost 50 --yes", "'null' is none of prolific, link"),
    (f"crowd plan {E} --platform prolific --pilot -3", "is not a whole number from 1 to 10000"),
    (f"crowd launch {E} --platform mturk --live --max-cost nan", "'nan' is not a number above 0"),
    ("serve --port 99999", "'99999' is not a whole number from 1 to 65535"),
    ("serve --backup-every 0h", "'0h' is not a duration; write for example 6h"),
    ("serve --during no-such-command", "--during: no command 'no-such-command' was found"),
    ("serve --during 'A=1", "close the quotes"),
    (f"review {E} --exclude", "--exclude requires at least 1 element"),
    (f"withdraw {E} --reason x", "Exactly 1 of {--pair, --pairs-from} must be specified"),
    ("users remove", "parameter NAME requires an argument"),
    ("backup --data {p}/none", "there is no database to back up"),
    ("restore {p}/none.tar.gz --data {p}/home", "none.tar.gz"),
    ("restore {s} --data {p}/home", "this backup cannot be restored"),
    ("users invite --study {s} --to=", "--to: is empty; name one, or leave the option out"),
    ("restore s3://b/x.tar.gz", "Invalid value for FILE: 's3://b/x.tar.gz' is an address"),
    (f"generate {E} --ray=", "--ray: is empty; name one"),
    (f"shrink {E} --task search --draw none", "--draw: 'none' is none of stratified, uniform"),
    ("sensitivity-report --scores x.csv --source null", "--source: 'null' is none of machine, human, all"),
)  # fmt: skip
URL, KEY = "ARGILLA_API_URL", "ARGILLA_API_KEY"
PUBLISH = f"publish {E}"
ENVIRONMENTS: tuple[tuple[str, str, Mapping[str, str], str], ...] = (
    ("a user in the address", PUBLISH, {URL: f"http://u:{SECRET}@127.0.0.1:1", KEY: "k"},
     "contains a user"),
    ("a key for a user", PUBLISH, {URL: f"http://{SECRET}@127.0.0.1:1", KEY: "k"}, "contains a user"),
    ("a slash in a password", PUBLISH, {URL: f"http://u:{SECRET}/x@127.0.0.1:1", KEY: "k"},
     "contains a user"),
    ("a key in the query", PUBLISH, {URL: f"http://127.0.0.1:1/?api_key={SECRET}", KEY: "k"}, "contains a user"),
    ("no address", PUBLISH, {URL: "argilla", KEY: "k"}, "'argilla' is not an address; write it like https://argilla"),
    ("a bad port", PUBLISH, {URL: "http://127.0.0.1:99999", KEY: "k"}, "is not an address"),
    ("a line break in the key", PUBLISH, {URL: "http://127.0.0.1:1", KEY: f"{SECRET}\r\nX: y"},
     "a character outside ASCII"),
    ("another alphabet", PUBLISH, {URL: "http://127.0.0.1:1", KEY: f"{SECRET}é"}, "a character outside ASCII"),
    ("an address alone", PUBLISH, {URL: "http://127.0.0.1:1"}, "ARGILLA_API_KEY is not; set both"),
    ("a key alone", PUBLISH, {KEY: SECRET}, "ARGILLA_API_URL is not; set both"),
    ("nobody there", PUBLISH, {URL: "http://127.0.0.1:1", KEY: SECRET},
     "Argilla at http://127.0.0.1:1 does not answer"),
    ("a proxy that is none", PUBLISH, {URL: "http://h.invalid", KEY: "k", "http_proxy": f"socks9://u:{SECRET}@h"},
     "the environment's http_proxy is not http://HOST:PORT"),
    ("a proxy in brackets", PUBLISH, {URL: "http://h.invalid", KEY: "k", "http_proxy": f"http://u:{SECRET}@[h"},
     "the environment's http_proxy is not http://HOST:PORT"),
    ("a backup of another's", "backup", {URL: f"http://u:{SECRET}@h"}, "names another Argilla"),
)  # fmt: skip


def rows() -> Iterator[Bad]:
    for words, says in WORDS:
        yield Bad(words[:60], words, lambda place: None, (says,))
    for name, words, environment, says in ENVIRONMENTS:
        yield Bad(name, words, lambda place: None, (says,), environment)


@pytest.mark.parametrize("bad", tuple(rows()), ids=lambda bad: bad.name)
def test_words_that_cannot_be_are_one_line(bad: Bad, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(bad)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"http://u:{SECRET}@host/v1 is down", "http://host/v1 is down"),
        (f"to 'postgresql://u:{SECRET}/x@host:5432/d'", "to 'postgresql://host:5432/d'"),
        (f"http://{SECRET}@host", "http://host"),
        (f"GET https://host/x?a=1&api_key={SECRET}&b=2", "GET https://host/x?a=1&api_key=...&b=2"),
        (f"s3://bucket/x?X-Amz-Signature={SECRET}", "s3://bucket/x?X-Amz-Signature=..."),
        ("http://host:6900/users/a@b", "http://host:6900/users/a@b"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text: str, seen: str) -> None:
    assert shown(text) == seen
    assert str(ServiceError(text)) == seen


def test_a_name_that_the_locale_cannot_write_is_one_line(ground: Place, tmp_path: Path) -> None:
    place = copy(ground, tmp_path / "place")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    study = place.file.read_text(encoding="utf-8").replace("data/pairs.csv", "data/pärchen.csv")
    file = place.root / "umlaut.yaml"
    file.write_text(study, encoding="utf-8")
    words = [sys.executable, "-m", "plumbline", "generate", "--study", str(file), "--exports", str(place.root / "c")]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
    assert b"set LC_ALL=C.UTF-8" in done.stderr
