"""axe-core, which looks for what keeps people from using a page: `python -m tests.axe` fetches it, tests run it.

It is one file of an npm package. It is fetched by HTTP from the registry that npm is set to, or takes by itself, and
kept where Plumbline keeps what it has fetched. The package is this version and none other: its hash stands here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Frame, Page

from plumbline.store import atomic

VERSION = "4.14.0"
INTEGRITY = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
# Not `resources.user_cache`, of which each run of tests has its own.
FILE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline" / f"axe-core-{VERSION}.min.js"
MEMBER = "package/axe.min.js"
SETTINGS = (".npmrc", "~/.npmrc", "/usr/local/etc/npmrc", "/usr/etc/npmrc", "/etc/npmrc")
SETTING = "npm_config_registry"
HEAVY = ("serious", "critical")  # of what axe finds, by what it does to people; the rest is `moderate` or `minor`
_SECONDS = 60
_RUN = """rules => axe.run({
    iframes: false, resultTypes: ["violations"], ...(rules ? {runOnly: {type: "rule", values: rules}} : {}),
}).then(({violations}) => violations.flatMap(
    ({id, impact, nodes}) => nodes.map(node => [impact, `${id}: ${node.target} ${node.html.slice(0, 120)}`])
))"""


def registry(environment: Mapping[str, str], settings: Iterable[Path]) -> str:
    """npm's registry: of the environment, else of the first of npm's files that names one, else as npm itself says.

    Raises ValueError where none of them is there.
    """
    named = [value for name, value in environment.items() if name.lower() == SETTING]
    for path in settings:
        if path.is_file():
            named += re.findall(r"(?m)^\s*registry\s*=\s*[\"']?([^\"'\s]+)", path.read_text(encoding="utf-8"))
    named = named or [_npms_own()]
    if found := next(filter(None, named), ""):
        return found.rstrip("/")
    raise ValueError(f"npm has no setting `registry` here and is not installed; set {SETTING} to a registry's address")


def _npms_own() -> str:
    """The registry that npm takes where nobody set one; empty where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        return ""
    said = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, check=False).stdout
    return said.strip() if said.startswith("http") else ""


def unpacked(package: bytes) -> bytes:
    """The one file. Raises ValueError for another package than the one whose hash stands here."""
    found = f"sha512-{base64.b64encode(hashlib.sha512(package).digest()).decode()}"
    if found != INTEGRITY:
        raise ValueError(f"axe-core {VERSION} has another hash than it should have: {found}")
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        member = archive.extractfile(MEMBER)
        assert member is not None
        return member.read()


def main() -> int:
    """Fetch it, unless it is there."""
    if FILE.exists():
        return 0
    try:
        place = registry(os.environ, [Path(name).expanduser() for name in SETTINGS])
        address = f"{place}/axe-core/-/axe-core-{VERSION}.tgz"
        content = unpacked(_fetched(address))
    except (OSError, ValueError) as error:
        print(f"axe-core is not fetched, and nothing looks at the accessibility of pages: {error}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    with atomic(FILE) as kept:
        kept.write(content)
    return 0


def _fetched(address: str) -> bytes:
    """What stands there. Raises OSError where it cannot be had in three tries."""
    for pause in (1, 5, None):
        try:
            with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 (npm's setting)
                return bytes(answer.read())
        except OSError:
            if pause is None:
                raise
            time.sleep(pause)
    raise AssertionError


def grave(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What keeps people from using a page and those of its frames that run scripts: rule, selector and HTML.

    `rules` are those that are looked at, if not all. Where axe-core was not fetched nothing is found, which
    `tests/test_axe.py` says; in CI the test fails.
    """
    if not FILE.exists() and not os.environ.get("CI"):
        return []
    source = _source()
    return [line for frame in page.frames if _runs(frame) for line in _grave(frame, source, rules)]


@functools.cache
def _source() -> str:
    return FILE.read_text(encoding="utf-8")


def findings(page: Page) -> list[str]:
    """All that axe-core finds on a page without frames, however light it is; nothing where it was not fetched."""
    if not FILE.exists() and not os.environ.get("CI"):
        return []
    return [line for _, line in _found(page.main_frame, _source(), ())]


def grave_of_file(page: Page, path: Path) -> list[str]:
    """What `grave` finds on a page of a file, by day and, of its colours, by night."""
    found = []
    for scheme, rules in (("light", ()), ("dark", ("color-contrast",))):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(path.as_uri())
        found += grave(page, rules=rules)
    return found


def _runs(frame: Frame) -> bool:
    """Whether a script may run in it."""
    sandbox = frame.frame_element().get_attribute("sandbox") if frame.parent_frame else None
    return sandbox is None or "allow-scripts" in sandbox


def _grave(frame: Frame, source: str, rules: Sequence[str]) -> list[str]:
    return [line for impact, line in _found(frame, source, rules) if impact in HEAVY]


def _found(frame: Frame, source: str, rules: Sequence[str]) -> list[tuple[str, str]]:
    """Impact and place of all findings."""
    if frame.evaluate("typeof axe === 'undefined'"):
        frame.evaluate(source)
    found: list[tuple[str, str]] = frame.evaluate(_RUN, list(rules) or None)
    return found


if __name__ == "__main__":
    sys.exit(main())
