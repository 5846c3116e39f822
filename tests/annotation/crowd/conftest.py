"""The services of crowd platforms, each a local server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import Site, prolific_site


@pytest.fixture
def site() -> Iterator[MTurkSite]:
    with MTurkSite() as running:
        yield running


@pytest.fixture
def prolific() -> Iterator[Site]:
    with prolific_site() as running:
        yield running
