"""`python -m benchmarks.screenshots --study studies/demo.yaml`: the README's pictures of the dashboard."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.browser import browser, dashboard, settle
from plumbline import cli
from plumbline.study import ROOT

FOLDER = ROOT / "docs" / "images"
SIZE = (1280, 860)
#: Picture -> address, and the words that it begins with at its top.
PICTURES = {
    "drift": ("drift", "Drift and ratings"),
    "verdicts": ("verdicts", "Means against the threshold"),
    "robustness": ("robustness", "By axis (Figure 4)"),
    "rankings": ("rankings", "Original against transformed ranks"),
}


def main() -> int:
    """Write a picture of each page; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screenshots", description="Picture the dashboard.")
    cli.add_study_options(parser)
    study = cli.study_of(parser.parse_args())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        dashboard(study, Path(folder) / "log") as (address, _),
        browser() as chromium,
    ):
        for name, (path, heading) in PICTURES.items():
            page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            page.goto(f"{address}/{path}")
            page.get_by_role("heading", name=heading).wait_for(timeout=60_000)
            settle(page)
            page.locator("[data-testid=stVegaLiteChart] svg").first.wait_for(timeout=60_000)
            page.get_by_role("heading", name=heading).evaluate("node => node.scrollIntoView({block: 'start'})")
            page.wait_for_timeout(1000)  # charts take their width after they are drawn
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"-> {(FOLDER / f'{name}.png').relative_to(ROOT)}")
            page.close()
    return 0


if __name__ == "__main__":
    cli.run(main)
