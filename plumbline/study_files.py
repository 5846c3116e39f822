"""`plumbline schema` and `plumbline upgrade`: what editors complete study files by, and files of before rewritten."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from plumbline import cli


def main() -> int:
    """The command that the first word names."""
    words = sys.argv[1:]
    return _upgrade(words[1:]) if words[:1] == ["upgrade"] else _schema(words[1:])


def schema() -> str:
    """The JSON Schema of study files."""
    from plumbline.study import Study  # noqa: PLC0415 (`--help` needs none of it)

    whole = Study.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}, indent=1) + "\n"


def _schema(words: list[str]) -> int:
    parser = cli.Parser(
        prog="plumbline schema",
        description="The JSON Schema of study files. Editors with a YAML language server complete keys by it, and say"
        " what they mean, in a file whose first line is `# yaml-language-server: $schema=study.schema.json`.",
        epilog="example: plumbline schema --out studies/study.schema.json",
    )
    parser.add_argument("--out", type=cli.local, metavar="FILE", help="where it is written (default: the terminal)")
    out = parser.parse_args(words).out
    if out is None:
        print(schema(), end="")
        return 0
    from plumbline.store import atomic  # noqa: PLC0415

    with atomic(out, public=True) as file:
        file.write(schema().encode())
    print(f"-> {out}")
    return 0


def _upgrade(words: list[str]) -> int:
    parser = cli.Parser(
        prog="plumbline upgrade",
        description="Rewrite a study file of an earlier version as today's are written: each engine is defined once."
        " Its records stay what they are, as all that counts for them stays. The earlier file stays beside it (.old).",
        epilog="example: plumbline upgrade studies/mine.yaml",
    )
    parser.add_argument("study", type=cli.local, metavar="FILE", help="the study file")
    path: Path = parser.parse_args(words).study
    from plumbline.reading import read_text  # noqa: PLC0415
    from plumbline.store import atomic  # noqa: PLC0415
    from plumbline.study import load_study  # noqa: PLC0415
    from plumbline.study.upgrade import upgraded  # noqa: PLC0415

    load_study(path)  # what is wrong with it is said before anything is written
    text = read_text(path)
    new = upgraded(text)
    if new == text:
        print(f"{path} is written as today's are: nothing to do")
        return 0
    with atomic(path.with_name(f"{path.name}.old"), public=True) as file:
        file.write(text.encode())
    with atomic(path, public=True) as file:
        file.write(new.encode())
    print(f"-> {path} (before: {path}.old)")
    return 0


if __name__ == "__main__":
    cli.run(main)
