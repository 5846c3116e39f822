"""Transformations of one's own: what a study may say of them, what they make, and what is refused in a line."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign.rubric import load_rubric
from generation.forecast import forecast
from generation.jobs import Plan, load_function, source_hash
from generation.production import generate, read_transformed
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT, load_study
from plumbline.study.transformations import EIGHT, Transformation
from tests.generation.helpers import LETTERS, server, small_study, text, write_study
from tests.stubs import ChatStub, upper

URL = "http://127.0.0.1:1/v1"
MODULE = "own_functions_for_tests"
CODE = """
import itertools
_calls = itertools.count()

def shout(text, *, language, seed):
    return f"{text}! {text} {language} {seed}"

def none(text, *, language, seed):
    return None

def empty(text, *, language, seed):
    return " "

def raises(text, *, language, seed):
    raise KeyError(text)

def counts(text, *, language, seed):
    return f"{text} {next(_calls)}"

def some(text, *, language, seed):
    return 1 if text == "apple" else text[::-1]
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed module of functions."""
    site = tmp_path / "site"
    site.mkdir()
    file = site / f"{MODULE}.py"
    file.write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return file


def function(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": "mine", "axis": "noise", "function": f"{MODULE}:{name}", **changes}


def outputs(folder: Path, rows: str, **spec: str) -> dict[str, Any]:
    (folder / "own.csv").write_text(rows, encoding="utf-8")
    return {"name": "mine", "axis": "noise", "outputs": {"path": "own.csv", **spec}}


def refused(folder: Path, *entries: Any, **changes: Any) -> str:
    with pytest.raises(StudyError) as caught:
        small_study(folder, transformations=list(entries), **changes)
    said = str(caught.value)
    assert "\n" not in said and "study.yaml" in said
    return said


def test_a_function_makes_texts_with_no_generator(tmp_path: Path, module: Path) -> None:
    study = small_study(tmp_path, transformations=[function("shout")], generator={"kind": "none"}, seeds=[1, 2])
    assert generate(study, allow_code=True)["ok"] == 20
    (first, *_) = read_transformed(study, "mine", 2)
    assert first.output == "apple! apple en 2" and first.prompt_hash == ""
    assert (first.model, first.generator_hash) == (f"{MODULE}:shout", Plan(study).makers["mine"].hash)
    assert generate(study) == Counter(reused=20)  # nothing is called, so no code need be allowed


def test_a_study_alone_runs_no_code(tmp_path: Path, module: Path) -> None:
    module.write_text("raise SystemExit('ran')", encoding="utf-8")
    study = small_study(tmp_path, transformations=[function("shout")], generator={"kind": "none"})
    assert "no requests" in forecast(study)  # dry run, identity, status: none of them imports it
    with pytest.raises(StudyError, match=rf"'mine' runs code, {MODULE}:shout; read it, then add --allow-code"):
        generate(study)
    assert MODULE not in sys.modules
    with pytest.raises(StudyError, match=r"module cannot be imported \(SystemExit: ran\)"):
        generate(study, allow_code=True)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none", "the function returned NoneType, not a text"),
        ("empty", "the function returned an empty text"),
        ("raises", "the function raised KeyError: 'apple'"),
        ("counts", "the function returned different texts for the same arguments"),
    ],
)
def test_a_function_that_gives_no_text_leaves_a_failed_item(tmp_path: Path, module: Path, name: str, why: str) -> None:
    study = small_study(tmp_path, ("apple",), transformations=[function(name)], generator={"kind": "none"})
    assert generate(study, allow_code=True)["failed"] == 1
    (only,) = read_transformed(study, "mine", 1)
    assert (only.status, only.reason, only.output) == ("failed", why, "")


def test_one_text_that_fails_stops_no_other(tmp_path: Path, module: Path) -> None:
    study = small_study(tmp_path, transformations=[function("some")], generator={"kind": "none"})
    assert generate(study, allow_code=True) == Counter(ok=len(LETTERS) - 1, failed=1, reused=0)


def test_the_source_of_a_functions_module_is_in_the_key_and_the_model_is_not(tmp_path: Path, module: Path) -> None:
    def keys(model: str) -> list[str]:
        study = small_study(
            tmp_path, transformations=["paraphrasing", function("shout")], generator=server(URL, model=model)
        )
        return [Plan(study).job(text("Hello"), name, 1).key for name in ("paraphrasing", "mine")]

    first, other = keys("m"), keys("other")
    assert first[0] != other[0] and first[1] == other[1]
    module.write_text(CODE + "# another\n", encoding="utf-8")
    assert keys("m")[1] != first[1]


def test_functions_and_files_stand_beside_what_a_generator_makes(tmp_path: Path, module: Path) -> None:
    own = outputs(tmp_path, "text,output\n" + "".join(f"{word},a {word}\n" for word in LETTERS))
    entries = ["paraphrasing", function("shout"), {**own, "name": "other"}]
    with ChatStub(upper) as stub:
        study = small_study(tmp_path, transformations=entries, generator=server(stub.url))
        assert generate(study, allow_code=True)["ok"] == 30
    makers = {name: {row.model for row in read_transformed(study, name, 1)} for name in study.transformations}
    assert makers == {"paraphrasing": {"m"}, "mine": {f"{MODULE}:shout"}, "other": {"own.csv"}}


def test_a_file_of_outputs_serves_what_it_has(tmp_path: Path) -> None:
    entry = outputs(tmp_path, "before,after\napple,an apple\nbread,\napple,an apple\n", text="before", output="after")
    study = small_study(tmp_path, ("apple", "bread", "cloud"), transformations=[entry], generator={"kind": "none"})
    generate(study)
    found = {row.text: (row.status, row.output, row.reason) for row in read_transformed(study, "mine", 1)}
    assert found == {
        "apple": ("ok", "an apple", ""),
        "bread": ("failed", "", "the file of outputs has an empty output for it"),
        "cloud": ("failed", "", "the file of outputs does not have this text"),
    }
    before = Plan(study).job(text("apple"), "mine", 1).key
    outputs(tmp_path, "before,after\napple,the apple\n")
    assert Plan(study).job(text("apple"), "mine", 1).key != before


def test_texts_in_brackets_are_no_lists(tmp_path: Path) -> None:
    rows = "text,output\n[apple],[fruit]\n[bread],[loaf]\ncloud,[sky]\ndoor,gate\neagle,bird\n"
    study = small_study(tmp_path, ("cloud",), transformations=[outputs(tmp_path, rows)], generator={"kind": "none"})
    generate(study)
    assert [row.output for row in read_transformed(study, "mine", 1)] == ["[sky]"]


def test_a_zero_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"text": "apple", "output": 0}\n', encoding="utf-8")
    entry = {"name": "mine", "axis": "noise", "outputs": {"path": "own.jsonl"}}
    study = small_study(tmp_path, ("apple",), transformations=[entry], generator={"kind": "none"})
    with pytest.raises(DataError, match="row 1 holds 0, which is not text; correct it"):
        generate(study)


def test_one_of_several_outputs_is_chosen_by_its_number(tmp_path: Path) -> None:
    rows = 'text,output\napple,"[\'an apple\'\n \'a fruit\']"\nbread,"[""a loaf""]"\ncloud,sky\ncloud,mist\n'
    keys = set()
    for number, expected in ((1, ["an apple", "a loaf", "sky"]), (2, ["a fruit", "", "mist"])):
        entry = outputs(tmp_path, rows)
        entry["outputs"]["number"] = number
        folder = tmp_path / str(number)
        (folder).mkdir()
        (folder / "own.csv").write_text(rows, encoding="utf-8")
        study = small_study(folder, ("apple", "bread", "cloud"), transformations=[entry], generator={"kind": "none"})
        generate(study)
        made = read_transformed(study, "mine", 1)
        assert [row.output for row in made] == expected
        keys |= {row.key for row in made}
    assert made[1].reason == "the file of outputs has no output number 2 for it"
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("rows", "spec", "says"),
    [
        ("text,output\napple,a\napple,b\n", {}, "row 3 has a second output for 'apple'; keep only one, or choose"),
        (
            "text,output\napple,\"['an apple', 'a fruit']\"\nbread,[]\ncloud,sky\n",
            {},
            "column 'output' holds lists, such as \"['an apple', 'a fruit']\", for 2 of 3 texts; choose one",
        ),
        ("text,out\napple,a\n", {}, "no column 'output' among text, out; name your column under `outputs`"),
    ],
)
def test_a_file_of_outputs_that_cannot_be_used_is_refused(
    tmp_path: Path, rows: str, spec: dict[str, str], says: str
) -> None:
    study = small_study(tmp_path, transformations=[outputs(tmp_path, rows, **spec)], generator={"kind": "none"})
    with pytest.raises(DataError) as caught:
        generate(study)
    assert says in str(caught.value) and "own.csv" in str(caught.value)
    (tmp_path / "own.csv").unlink()
    with pytest.raises(DataError, match=r"transformation 'mine': no file .*own.csv; correct `outputs.path`"):
        Plan(study)


def test_all_files_that_are_missing_are_named_at_once_with_their_lines(tmp_path: Path) -> None:
    study = small_study(tmp_path, transformations=[outputs(tmp_path, "text,output\n")], generator={"kind": "none"})
    for name in ("own.csv", study.datasets[0].path):
        (tmp_path / name).unlink()
    lines = study.file.read_text(encoding="utf-8").splitlines()
    for command in (generate, forecast):
        with pytest.raises(DataError) as caught:
            command(study)
        places = [re.fullmatch(r".*(datasets|transformations)\.0.*: no file .* \(line (\d+)\)", fault)
                  for fault in caught.value.args]  # fmt: skip
        assert [place[1] for place in places if place] == ["datasets", "transformations"]
        assert all("path" in lines[int(place[2]) - 1] for place in places if place)


CALLS = {"name": "mine", "axis": "noise", "calls": [{"text": "Say: {text}"}]}


def test_two_with_one_title_are_refused_because_tables_could_not_tell_them_apart(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        small_study(tmp_path, transformations=[{**CALLS, "title": "My two"}, {**CALLS, "name": "my_two"}])
    (fault,) = caught.value.args
    assert "transformation 'mine': tables show another as 'My two', too; give each its own title" in fault


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            {"name": "mine", "axis": "noise"},
            "has no source of outputs; give it one of `calls`, `function` and `outputs`",
        ),
        ({**CALLS, "function": "a:b"}, "has calls and function; give it"),
        ({**CALLS, "name": "expansion"}, "'expansion' is one of HTEB's eight; give yours another name"),
        (
            {**CALLS, "axis": "length"},
            "its axis 'length' is reserved, because HTEB's own transformations have an axis of that name; choose",
        ),
        ({**CALLS, "name": "length"}, "its name is reserved, because HTEB's"),
        ({**CALLS, "axis": "mine"}, "its axis 'mine' is also a transformation's name; rename one of them"),
        (
            {**CALLS, "queue": "systems", "draw": "text", "languages": ["de", "fr"]},
            "give all transformations with queue 'systems' the same `language`, and draw none",
        ),
        ({**CALLS, "axis": "total"}, "'total' is reserved for rows and columns of tables; choose another name"),
        ({**CALLS, "draw": "text"}, "`draw` (text or run) and `languages` go together"),
        ({**CALLS, "draw": "run", "languages": ["de"]}, "`languages` needs at least two"),
        (
            {**CALLS, "draw": "run", "languages": ["de", "fr"], "drawn_call": 2},
            "`drawn_call` 2 is more than the number of `calls`, 1",
        ),
        ({**CALLS, "error_types": ["runnaway"]}, "unknown error type 'runnaway'; did you mean 'runaway'"),
        ({**CALLS, "rated_with": "paraphrasing"}, "rated_with 'paraphrasing' must be another of the study's own"),
        ({**CALLS, "order": 9}, "only HTEB's transformations may have `order`; take it out"),
    ],
)
def test_what_cannot_be_a_transformation_is_refused_in_a_line(tmp_path: Path, entry: Any, says: str) -> None:
    assert says in refused(tmp_path, entry, generator=server(URL))


def test_wrong_words_for_raters_are_a_fault_of_the_study_alone(tmp_path: Path) -> None:
    study = small_study(tmp_path, transformations=[function("shout", raters={"asked": 1})], generator={"kind": "none"})
    with pytest.raises(StudyError, match=r"^\S*study\.yaml: transformation 'mine': raters\.asked"):
        load_rubric(study)


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "'mine' appears twice" in refused(tmp_path, CALLS, {**CALLS, "axis": "other"}, generator=server(URL))
    assert "has no visible character" in refused(tmp_path, CALLS | {"title": " "}, generator=server(URL))
    assert "generator is missing; mine needs one: add it" in refused(tmp_path, CALLS, generator={"kind": "none"})


def test_a_prompt_without_its_variable_is_refused(tmp_path: Path) -> None:
    def prompts(*texts: str, **changes: Any) -> None:
        entry = {**CALLS, "calls": [{"text": one} for one in texts], **changes}
        Plan(small_study(tmp_path, transformations=[entry], generator=server(URL)))

    prompts("Say: {text}", "Say in {target_language}: {text}")
    with pytest.raises(StudyError, match=r"prompt 'mine-2' of mine lacks \{text\}"):
        prompts("Say: {text}", "Say it")
    with pytest.raises(StudyError, match=r"prompt 'mine-1' of mine: unknown variable \{tone\}"):
        prompts("Say in a {tone} tone: {text}")
    with pytest.raises(StudyError, match=r"prompt 'mine-1' of mine lacks \{target_language\}"):
        prompts("Say: {text}", draw="text", languages=["de", "fr"])
    with pytest.raises(StudyError, match=r"transformation 'mine': no prompt whisper.yaml in "):
        Plan(small_study(tmp_path, transformations=[{**CALLS, "calls": ["whisper"]}], generator=server(URL)))


def test_a_module_without_the_function_is_refused() -> None:
    assert source_hash("generation.examples:typos") == source_hash("generation.examples:casing")
    with pytest.raises(StudyError, match="generation.examples has no function 'typo'; correct it in the study"):
        load_function("generation.examples:typo")


def test_prompts_lie_beside_a_transformations_file(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    prompt = {"name": "translation", "source": "ours", "language": "en", "variables": ["text"], "text": "Ours: {text}"}
    (tmp_path / "own" / "translation.yaml").write_text(yaml.safe_dump(prompt), encoding="utf-8")
    (tmp_path / "own" / "mine.yaml").write_text(
        yaml.safe_dump({"name": "mine", "axis": "noise", "calls": ["translation", "paraphrasing"]}), encoding="utf-8"
    )
    entries = ["translation", "own/mine.yaml"]
    study = small_study(tmp_path, transformations=entries, generator=server(URL))
    plan = Plan(study)
    assert plan.prompts["mine"][0].text == "Ours: {text}" and plan.prompts["translation"][0].text.startswith(
        "Translate"
    )
    assert [prompt.name for prompt in plan.prompts["mine"]] == ["translation", "paraphrasing"]
    assert tmp_path / "own" / "mine.yaml" in study.data_files()


def test_what_is_expected_of_an_output_decides_about_its_error_types() -> None:
    expected = {
        "expansion": {"runaway", "summary_too_long"},
        "summarised_expansion": {"runaway", "summary_too_long"},
        "summarisation": {"truncated"},
    }
    for name, kind in EIGHT.items():
        missing = {"identical", "empty", "ellipsis", "runaway", "truncated", "summary_too_long"} - kind.flags
        assert missing == expected.get(name, {"summary_too_long"})


def test_outputs_in_a_language_of_their_own_are_expected_in_it(tmp_path: Path) -> None:
    entry = {**outputs(tmp_path, "text,output\napple,Apfel\n"), "language": "de"}
    study = small_study(tmp_path, ("apple",), transformations=[entry], generator={"kind": "none"})
    assert Plan(study).job(text("apple"), "mine", 1).languages == ("de",)
    assert study.kinds["mine"].translates


def blocks() -> list[str]:
    """The examples of docs/transformations.md."""
    page = (ROOT / "docs" / "transformations.md").read_text(encoding="utf-8")
    return [
        one for one in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL) if one.startswith("transformations:")
    ]


@pytest.mark.parametrize("block", blocks(), ids=range(len(blocks())))
def test_every_example_of_the_page_makes_texts(tmp_path: Path, block: str) -> None:
    entries = yaml.safe_load(block)["transformations"]
    (tmp_path / "simplified.csv").write_text("original,simplified\n" + "".join(f"{w},a {w}\n" for w in LETTERS))
    with ChatStub(upper) as stub:
        study = small_study(tmp_path, transformations=entries, generator=server(stub.url))
        assert generate(study, allow_code=True)["ok"] == len(LETTERS) * len(entries)
    words = load_rubric(study).pools
    assert all(words[name].asked["en"] for name in study.transformations)


def test_the_pages_table_names_every_key() -> None:
    page = (ROOT / "docs" / "transformations.md").read_text(encoding="utf-8")
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", rows)) == set(Transformation.model_fields) - {"order"}


def test_a_study_names_them_where_it_stands(tmp_path: Path) -> None:
    file = write_study(tmp_path, transformations=["paraphrasing", CALLS])
    study = load_study(file)
    assert study.transformations == ("paraphrasing", "mine") and list(study.kinds) == ["paraphrasing", "mine"]
