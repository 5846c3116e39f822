"""What MkDocs is told about this site: pages that are made of the code, and links from documents to other files.

Documents in docs/ link to the repository's files as they stand beside them (`../studies/demo.yaml`); on the site these
are files of its own, so that a link that leads nowhere ends the build. A link to a name in the code
(`../plumbline/study/crowd.py#crowdspec`) leads to the code in the repository, and to the reference on the site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # MkDocs loads this file by itself

import mathml  # noqa: E402
import reference  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

#: Documents outside docs/ that are pages here.
ELSEWHERE = {"exports/README.md": "reference/files.md"}
#: Code whose content is a page here as a whole.
CODE = {
    "plumbline/__init__.py": "reference/api.md",
    "plumbline/records.py": "reference/records.md",
    "plumbline/study/__init__.py": "reference/study.md",
}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: Any) -> Any:
    """Show blocks of formulas as such."""
    fence = {"name": "math", "class": "math", "format": mathml.block}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of the code and of documents elsewhere."""
    made = {name: make() for name, make in reference.PAGES.items()}
    made |= {page: (ROOT / file).read_text(encoding="utf-8") for file, page in ELSEWHERE.items()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    read = {f"docs/{name}": text for name, text in made.items()}
    read |= {file: (ROOT / file).read_text(encoding="utf-8") for file in ELSEWHERE}
    for path in (ROOT / "docs").rglob("*.md"):
        if not _off_site(path.relative_to(ROOT).as_posix(), config):
            read[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    linked = {_target(place, found[1]) for place, text in read.items() for found in _LINK.finditer(text)}
    for target in sorted(linked):  # files are known before the pages that link to them are read
        outside = not target.startswith(("docs/", "..")) or _off_site(target, config)
        if outside and target not in ELSEWHERE and (ROOT / target).is_file():
            files.append(File.generated(config, _site_file(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Let links to the repository's files lead to where they are on the site, and show formulas within lines."""
    place = page.file.src_uri
    here = next((file for file, name in ELSEWHERE.items() if name == place), f"docs/{place}")

    def led(found: re.Match[str]) -> str:
        target = _target(here, found[1])
        if target.startswith("docs/") and not _off_site(target, config):
            there = target.removeprefix("docs/")
        elif target in ELSEWHERE:
            there = ELSEWHERE[target]
        elif page_of_code := _page_of_code(target, found[2] or ""):
            there = page_of_code
        elif (ROOT / target).is_file() and not (target.endswith(".py") and found[2]):
            there = _site_file(target)
        else:
            return found[0]  # MkDocs says that it leads nowhere
        return posixpath.relpath(there, posixpath.dirname(place) or ".") + (found[2] or "")

    return mathml.with_formulas(_LINK.sub(led, markdown))


def _page_of_code(target: str, anchor: str) -> str:
    """Return the page of the reference that describes a name of a module; empty if there is neither."""
    if not target.endswith(".py") or not (ROOT / target).is_file():
        return ""
    code, name = (ROOT / target).read_text(encoding="utf-8"), re.escape(anchor.removeprefix("#"))
    if not name:
        return CODE.get(target, "")
    if not re.search(rf"^(def|class) {name}\b", code, re.MULTILINE | re.IGNORECASE):
        return ""
    if target.startswith("plumbline/study/"):
        return "reference/study.md"
    return "reference/records.md" if target.endswith("/records.py") else "reference/api.md"


def _off_site(target: str, config: Any) -> bool:
    """Whether a document is for readers of the repository alone (`exclude_docs`)."""
    inside = target.startswith("docs/") and target.endswith(".md")
    return inside and bool(config.exclude_docs.match_file(target.removeprefix("docs/")))


def _target(place: str, link: str) -> str:
    """The file of the repository that a link of a document leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), link))


def _site_file(target: str) -> str:
    """Where a file of the repository is on the site: as text, which a browser shows."""
    return f"files/{target}" if target.endswith((".svg", ".png", ".html")) else f"files/{target}.txt"
