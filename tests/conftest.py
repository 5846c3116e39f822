"""Studies to test on, in folders of their own."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import shutil
import signal
import ssl
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certifi
import fsspec
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, Page, expect, sync_playwright

from plumbline.study import ROOT, Study, load_study
from tests.shared import generate_once

# Hashes of models' files are remembered: not in the home of whoever runs the tests.
if "PLUMBLINE_CACHE" not in os.environ:
    _UNUSED = tempfile.TemporaryDirectory(prefix="plumbline-hashes-")
    os.environ["PLUMBLINE_CACHE"] = _UNUSED.name

# mteb makes its cache folder when it is imported, which test modules do: not in the home of whoever runs the tests.
if "MTEB_CACHE" not in os.environ:
    _UNUSED_MTEB = tempfile.TemporaryDirectory(prefix="plumbline-mteb-")
    os.environ["MTEB_CACHE"] = _UNUSED_MTEB.name

os.environ["COLUMNS"] = "120"  # whatever terminal runs the tests: tables are as wide as the tutorials show them

# How long an example takes is the machine's business, which may be busy.
settings.register_profile("plumbline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plumbline")

DEMO = ROOT / "studies" / "demo.yaml"
EMPTY_FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="9"></svg>'
#: The files that take longest by the clock (they wait for servers and browsers), each one worker's.
LONGEST = (
    "tests/release/test_vllm.py",
    "tests/release/test_cluster_ray.py",
    "tests/release/test_tutorials.py",
    "tests/annotation/test_rating_page.py",
    "tests/streamlit_app/test_app_browser.py",
    "tests/annotation/test_rating.py",
    "tests/annotation/server/test_guard.py",
    "tests/annotation/test_next.py",
    "tests/annotation/server/test_path.py",
    "tests/annotation/test_rounds.py",
    "packages/argilla-embedded/tests/test_moving.py",
    "tests/test_flow.py",
    "tests/annotation/report/test_page.py",
    "tests/evaluation/report/test_report.py",
    "tests/annotation/test_browser.py",
    "tests/generation/test_run.py",
    "tests/streamlit_app/test_app.py",
    "tests/annotation/crowd/test_bill.py",
    "tests/annotation/crowd/test_rehearsal.py",
    "packages/argilla-embedded/tests/test_serve.py",
    "tests/evaluation/test_run.py",
    "tests/plumbline/test_store_remote.py",
    "tests/annotation/crowd/mturk/test_form_browser.py",
    "tests/annotation/crowd/test_entry.py",
    "tests/annotation/server/test_concurrency.py",
    "tests/evaluation/bundle/test_bundle.py",
    "packages/argilla-embedded/tests/test_answering.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """A shell's background job ignores Ctrl-C, and so would the commands that tests start and interrupt.

    Imports leave hardly any garbage, and looking for it takes a fifth of their time.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config.option, "loadscopereorder"):  # pytest-xdist would start files of few tests last
        config.option.loadscopereorder = False


def pytest_xdist_auto_num_workers() -> int | None:
    """Of `pytest -n auto`: half as many again as there are cores, for workers wait for servers, browsers and disks."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # somebody has decided
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files start first, so that at the end no worker is left alone with one."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """What is imported by now stays: no collection of garbage need look at it again."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def certificates() -> Iterator[None]:
    """Read the usual authorities' certificates once: httpx does it for each client (30 ms), and tests make thousands.

    Any other context (of a file that a test puts into SSL_CERT_FILE, say) is made as ever.
    """
    usual, made = (certifi.where(), os.environ.get("SSL_CERT_FILE")), ssl.create_default_context
    shared = functools.cache(lambda file: made(cafile=file))

    def create(*purpose: ssl.Purpose, **sources: Any) -> ssl.SSLContext:
        if purpose or sources.keys() != {"cafile"} or sources["cafile"] not in usual:
            return made(*purpose, **sources)
        return shared(sources["cafile"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create)
        yield


@pytest.fixture(scope="session", autouse=True)
def components() -> Iterator[None]:
    """Ask once which packages bring components for Streamlit: it asks all 170 for each page (300 ms)."""
    with pytest.MonkeyPatch.context() as patch:
        if (scanner := sys.modules.get("streamlit.components.v2.manifest_scanner")) is not None:
            patch.setattr(scanner, "scan_component_manifests", functools.cache(scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session", autouse=True)
def seeds() -> Iterator[None]:
    """Note seeds for no device that is not there: for each, torch keeps the words of three stacks (20 ms a score)."""
    with pytest.MonkeyPatch.context() as patch:
        if (torch := sys.modules.get("torch")) is not None:
            for device in (torch.cuda, torch.xpu, torch.mtia):
                if not device.is_available():
                    patch.setattr(device, "manual_seed_all", lambda seed: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_disk() -> Iterator[None]:
    """Nothing waits for the disk: processes end here, not the machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def areas() -> Iterator[None]:
    """Compute mteb's nAUC once for the same numbers: it does so for each metric at each k, mostly of the same ones."""
    with pytest.MonkeyPatch.context() as patch:
        if (module := sys.modules.get("mteb._evaluators.retrieval_metrics")) is not None:
            found, nauc, auc = dict[tuple[Any, ...], Any](), module.nauc, module.auc

            def once(*arrays: Any) -> Any:
                key = tuple((one.shape, one.dtype.str, one.tobytes()) for one in arrays)
                if key not in found:
                    found[key] = nauc(*arrays)
                return found[key]

            patch.setattr(module, "nauc", once)

            def area(x: Any, y: Any) -> float:
                """The trapezoids alone: what scikit-learn looks at before them takes ten times as long."""
                return float(np.trapezoid(y, x)) if np.isfinite(y).all() else auc(x, y)

            patch.setattr(module, "auc", area)
        yield


@pytest.fixture
def demo(tmp_path: Path) -> Study:
    """The sample study, nothing done yet, with its records in a folder of the test's own."""
    return load_study(DEMO, tmp_path / "exports")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of reports are made and checked, and not drawn, which takes most of a report's time."""
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda _: EMPTY_FIGURE)


@pytest.fixture
def generated(demo: Study) -> Study:
    """The sample study with its texts transformed."""
    generate_once(demo)
    return demo


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Study], Study]]:
    """Have a study's records at an address (in this process's memory), with what is there already."""
    monkeypatch.setattr("plumbline.study.working", lambda _: tmp_path / "machine")
    address = f"memory://{uuid.uuid4()}"

    def moved(study: Study) -> Study:
        there = load_study(study.file, address)
        if study.folder.exists() and not there.folder.exists():
            fsspec.filesystem("memory").put(f"{study.folder}/", f"{there.folder}/", recursive=True)
        return there

    yield moved
    memory = fsspec.filesystem("memory")
    if memory.exists(address):
        memory.rm(address, recursive=True)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Debian's chromium, without windows if that is there; skipped where there is none, but never in CI.

    While it is there its event loop runs in this thread, and nothing else can start one: generation, for instance.
    """
    chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have chromium: see the Makefile's target `browser`")
        pytest.skip("no chromium: sudo apt-get install chromium")
    expect.set_options(timeout=60_000)  # on a busy machine Argilla's pages take more than the usual 5 s
    # No calls to the outside; no sandbox because containers and root have none.
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """A browser of a test's own; a file whose tests start no event loop shares one, by a fixture of this name."""
    with browsing() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page of a visitor's own: with no cookies and nothing kept of the test before."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def variant(tmp_path: Path) -> Callable[..., Study]:
    """Make a study like the sample one with some parts replaced: `variant(name="other", sample={"pairs": 5})`."""
    return make_variant(tmp_path)


def make_variant(tmp_path: Path) -> Callable[..., Study]:
    """The same in a folder that the caller names."""

    def make(**changes: Any) -> Study:
        content = yaml.safe_load(DEMO.read_text(encoding="utf-8")) | {"training": "", "judges": []} | changes
        sample, acceptance = content["sample"], dict(content["acceptance"])
        if "acceptance" not in changes:  # a small sample can still be decided
            acceptance["min_pairs"] = min(acceptance["min_pairs"], sample["pairs"])
            content["acceptance"] = acceptance
        for part in (*content["datasets"], *content["engines"].values(), content["generator"]):
            if isinstance(part, dict) and "path" in part:
                part["path"] = str(DEMO.parent / part["path"])
        file = tmp_path / f"{content['name']}.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return load_study(file, tmp_path / "exports")

    return make
