"""What holds the repository together: imports follow the flow, and documents tell the truth about commands."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from docs._site import reference
from plumbline.__main__ import run
from plumbline.commands import COMMANDS, Command
from plumbline.study import ROOT, load_study

FLOW = (
    "plumbline",
    "generation",
    "annotation",
    "evaluation",
    "streamlit_app",
)  # each may import itself and what is before it
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "studies" / "demo" / "README.md",
]


@dataclass
class Contents:
    """What the tests here look at in a module."""

    imports: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # what `from a import b` may name: a.b
    assigned: set[str] = field(default_factory=set)
    classes: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)  # functions that do not say why


@functools.cache
def contents(file: Path) -> Contents:
    """The contents of a module, which is read once."""
    found = Contents()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.imports.append(node.module)
            found.names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.arg):
            found.assigned.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.assigned.add(node.id)
        elif isinstance(node, ast.ClassDef):
            found.classes.append(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > 50:
            found.long += [] if re.search(r"^Long: ", ast.get_docstring(node) or "", re.MULTILINE) else [node.name]
    return found


def modules(*folders: str | Path) -> list[Path]:
    """The files of packages."""
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    assert files
    return files


@pytest.mark.parametrize("package", FLOW)
def test_imports_follow_the_flow(package: str) -> None:
    later = FLOW[FLOW.index(package) + 1 :]
    for file in modules(package):
        wrong = [name for name in contents(file).imports if name.split(".")[0] in later]
        assert not wrong, f"{file.relative_to(ROOT)} imports {wrong[0]}, which comes after {package} in the flow"


def neighbours(package: str) -> dict[str, dict[tuple[str, str], str]]:
    """For each folder of a package which of its modules and folders import which others, with a file that does."""
    files = {file: file.relative_to(ROOT).with_suffix("").parts for file in modules(package)}
    known = {parts[:-1] if parts[-1] == "__init__" else parts for parts in files.values()}
    found: dict[str, dict[tuple[str, str], str]] = {}
    for file, parts in files.items():
        here = parts[:-1] if parts[-1] == "__init__" else parts
        for name in (*contents(file).imports, *contents(file).names):
            there = tuple(name.split("."))
            shared = next((n for n, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), None)
            if there in known and shared:
                found.setdefault(".".join(here[:shared]), {})[here[shared], there[shared]] = str(file.relative_to(ROOT))
    return found


@pytest.mark.parametrize("package", FLOW)
def test_folders_and_modules_import_each_other_without_circles(package: str) -> None:
    folders = neighbours(package)
    assert folders
    for folder, imports_of in folders.items():
        left = dict(imports_of)
        while ends := {one for pair in left for one in pair} - {
            one for one, _ in left
        }:  # what imports nothing that is left
            left = {pair: file for pair, file in left.items() if pair[1] not in ends}
        assert not left, (
            f"{folder}: a circle, by way of {', '.join(f'{a} -> {b} ({file})' for (a, b), file in left.items())}"
        )


def test_annotation_has_at_most_ten_floors() -> None:
    pairs = set(neighbours("annotation")["annotation"])
    floors = 0
    while pairs:  # what nothing imports is the top floor
        pairs = {(one, other) for one, other in pairs if one in {imported for _, imported in pairs}}
        floors += 1
    assert floors + 1 <= 10


#: The server that knows nothing of Plumbline, and what Plumbline adds to it.
EMBEDDED, PLUGIN = ROOT / "packages" / "argilla-embedded", ROOT / "annotation" / "server" / "plugin"


def test_code_inside_argilla_imports_nothing_of_the_platform() -> None:
    for folder, foreign in ((PLUGIN, set(FLOW)), (EMBEDDED, {*FLOW, "plumbline_argilla"})):
        for file in modules(folder):
            wrong = [name for name in contents(file).imports if name.split(".")[0] in foreign]
            assert not wrong, f"{file.name} imports {wrong[0]}, but runs in another environment"


def test_the_server_of_its_own_does_not_speak_of_plumbline() -> None:
    files = [file for file in sorted(EMBEDDED.rglob("*")) if file.suffix in {".py", ".toml", ".md"}]
    assert files
    for file in files:
        assert "plumbline" not in file.read_text(encoding="utf-8").lower(), file.name


def commands(text: str) -> list[str]:
    """The lines of a document's shell blocks, comments left out."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_every_yaml_block_and_file_of_ours_is_read_by_any_reader() -> None:
    """PyYAML's own reader refuses what libyaml lets through, such as an unquoted `?` at the end of a flow entry."""
    blocks = {
        f"{document.name}, block {number}": block
        for document in DOCUMENTS
        for number, block in enumerate(
            re.findall(r"```ya?ml\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
        )
    }
    files = [*(ROOT / "studies").glob("*.yaml"), *(ROOT / "prompts").glob("rubrics/*.yaml")]
    assert len(blocks) > 10 and len(files) > 10
    for place, text in {**blocks, **{file.name: file.read_text(encoding="utf-8") for file in files}}.items():
        try:
            yaml.load(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            pytest.fail(f"{place}: {error}")


def test_every_make_target_that_documents_name_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert {"demo", "test", "test-all", "serve", "dashboard"} <= named <= targets


#: What takes a tenth of a second to two seconds to import, and is no part of the list of commands.
SLOW = {"altair", "argilla", "boto3", "datasets", "httpx", "mteb", "numpy", "pandas", "pyarrow", "pydantic", "ray",
        "scipy", "sklearn", "statsmodels", "torch"}  # fmt: skip


@pytest.mark.parametrize("words", [[], ["bundle"]])
def test_the_list_of_commands_is_there_at_once(words: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "plumbline", *words, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "cyclopts" in imported and not imported & SLOW


@pytest.mark.parametrize("command", [command for command in COMMANDS.values() if command.function])
def test_a_commands_help_is_its_docstring_with_an_example(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.name.split(), "--help"]) == 0
    described = capsys.readouterr().out.partition("\n\n")[2]
    first, _, rest = described.partition("\n")
    assert first == f"{command.text[0].upper()}{command.text[1:]}."
    assert f"plumbline {command.name}" in rest


def test_every_command_that_documents_name_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """Each `plumbline ...` of a document names a command of the table, which knows the options."""
    named = {
        line.split("  #")[0].strip()
        for document in DOCUMENTS
        for line in re.findall(r"(?:^|`)plumbline ([a-z][^`\n]+)", document.read_text(encoding="utf-8"), re.MULTILINE)
    }
    groups = {name for name, command in COMMANDS.items() if not command.function}
    helps: dict[str, str] = {}
    for line in sorted(named):
        name, *rest = line.split()
        call = f"{name} {rest[0]}" if name in groups and rest and rest[0].isalpha() else name
        assert call in COMMANDS, f"there is no command {call}"
        if call not in helps:
            assert run([*call.split(), "--help"]) == 0
            helps[call] = capsys.readouterr().out
        for option in re.findall(r"(?<![\w-])(--[a-z-]+)", line):
            assert option in helps[call], f"plumbline {line}: {option} is not known"
    assert {"demo", "generate", "evaluate"} <= set(helps)


def test_studies_are_valid() -> None:
    files = sorted((ROOT / "studies").glob("*.yaml")) + sorted((ROOT / "studies" / "real").glob("*.yaml"))
    assert files
    for file in files:
        assert load_study(file).name == file.stem


def test_the_papers_threshold_and_scale_are_the_defaults() -> None:
    """HTEB, 2.4: at least 3 on a scale of 1 to 5; 100 pairs a transformation; three raters; seeds of A.1."""
    rubric = yaml.safe_load((ROOT / "prompts" / "rubrics" / "hteb.yaml").read_text(encoding="utf-8"))
    study = load_study(ROOT / "studies" / "demo.yaml")
    fields = type(study).model_fields
    assert rubric["scale"] == [1, 2, 3, 4, 5]
    assert fields["acceptance"].default.threshold == 3.0
    assert fields["sample"].default.pairs == 100
    assert fields["raters"].default.per_pair == 3
    assert fields["seeds"].get_default(call_default_factory=True, validated_data={}) == (1337, 1338, 1339)


def test_a_study_has_few_keys() -> None:
    """Each is a row of the reference: a key that has one sensible value is a constant."""
    assert len(re.findall(r"^\| `", reference.study(), re.MULTILINE)) <= 136


def promises() -> list[str]:
    """The rows of docs/promises.md."""
    rows = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines()
    found = [row for row in rows if row.startswith("| ") and not row.startswith("| promise ")]
    assert found
    return found


def test_every_promise_names_tests_that_exist() -> None:
    for row in promises():
        file = ""
        for word in re.findall(r"`((?:tests/|::|test_)[^`]*)`", row.rsplit(" | ", 1)[-1]):
            named, _, name = word.rpartition("::") if "/" in word or "::" in word else ("", "", word)
            file = named or file
            assert file and (ROOT / file).is_file(), f"docs/promises.md names {word}, which is not there"
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no test {name}"
        assert file, f"docs/promises.md: no test holds {row!r}"


def test_the_numbers_of_slow_proofs_are_those_of_the_document() -> None:
    """Each `scaled(small, full)` of a test stands in docs/promises.md, and each of its numbers is some test's."""
    written = set()
    for row in promises():
        if found := re.match(r"\| .* \| ([\d; ]+) \| ([\d; ]+) \| `(tests/[^`:]+)", row.replace(",", "")):
            pairs = zip(found[1].split("; "), found[2].split("; "), strict=True)
            written |= {(found[3], int(small), int(full)) for small, full in pairs}
    used = {
        (str(file.relative_to(ROOT)), *(ast.literal_eval(number) for number in call.args))
        for file in modules("tests")
        if file.name.startswith("test_") and "scaled(" in (text := file.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "scaled"
    }
    assert used
    assert written == used


def test_no_advised_command_leaves_the_study_open() -> None:
    found = [file.relative_to(ROOT) for file in modules(*FLOW) if "--study ..." in file.read_text(encoding="utf-8")]
    assert not found, f"{found[0]} advises a command that cannot be pasted; use Study.command"


def test_the_walks_of_a_text_and_of_a_rating_name_what_there_is_and_never_step_back() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for walk in ("text", "rating"):
        section = design.split(f"## The walk of a {walk}\n")[1].split("\n## ")[0]
        named = [name for name in re.findall(r"`([a-z_]+\.[\w.]+)`", section) if name.split(".")[0] in FLOW]
        packages = [FLOW.index(name.split(".")[0]) for name in named]
        assert named and packages == sorted(packages), f"the walk of a {walk} steps back"
        for name in named:
            assert there(name), f"docs/design.md: there is no {name}"


def there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute) or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_functions_are_small_or_say_why_not() -> None:
    """At most 50 lines a function without its docstring; a longer one says `Long: ` and why."""
    long = {str(file.relative_to(ROOT)): names for file in modules(*FLOW, EMBEDDED) if (names := contents(file).long)}
    assert not long, "split them"


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function has without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - (body[0].lineno if body else function.lineno) + 1


#: They say that something is there and not what it is.
EMPTY_WORDS = {
    *("one", "own", "found", "made", "said", "told", "given", "kept", "left", "there", "place", "known", "asked"),
    "other",
}
#: Keys of study files, columns and fields of records, names of the Python API; and a file whose text is hashed.
FIXED_NAMES = {
    "annotation/human/records.py": {"own", "place"},
    "annotation/judges/records.py": {"place"},
    "annotation/questions/entries.py": {"asked"},
    "annotation/records.py": {"known"},
    "annotation/server/backup.py": {"made"},
    "evaluation/human/records.py": {"made"},
    "evaluation/work.py": {"place", "made", "kept", "asked"},
    "generation/examples.py": {"place", "found"},
    "generation/instructions/wordings.py": {"kept"},
    "plumbline/manifest.py": {"kept"},
    "plumbline/study/subjects.py": {"known"},
}


def ours() -> Iterator[tuple[str, Contents]]:
    """The product's modules, the server's plugin aside."""
    return ((str(file.relative_to(ROOT)), contents(file)) for file in modules(*FLOW) if "plugin" not in file.parts)


def test_names_say_what_they_hold() -> None:
    empty = {file: names for file, module in ours() if (names := EMPTY_WORDS & module.assigned)}
    assert empty == FIXED_NAMES


def test_each_class_has_a_name_of_its_own_that_is_a_noun() -> None:
    classes = [name for _, module in ours() for name in module.classes]
    assert len(classes) > 100
    assert not [name for name, number in Counter(classes).items() if number > 1]
    participles = re.compile(
        r"_?(?:Told|Held|Made|Given|Taken|Left|Later|(?!Embed|Seed|Feed|Speed)[A-Z][a-z]+(?:ed|wn|ought|ound))"
    )
    assert not [name for name in classes if participles.fullmatch(name)]
