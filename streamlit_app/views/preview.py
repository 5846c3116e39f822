"""What raters will see of each queue, before anything is published and after."""

from __future__ import annotations

from functools import partial
from html import escape

import streamlit as st

from plumbline.study import Study
from streamlit_app.elements import section, show
from streamlit_app.readers import preview

_HEIGHT = 1200  # pixels; the page scrolls in it


def draw(study: Study) -> None:
    """The page."""
    section("Queues in Argilla and on crowd platforms", partial(_queues, study))


def _queues(study: Study) -> None:
    """The same as `annotation preview` writes, shut off from this page."""
    html = escape(preview.page(study))
    frame = f'<iframe sandbox="allow-scripts" title="What raters will see" srcdoc="{html}"'
    st.iframe(f'{frame} style="border: 0; width: 100%; height: {_HEIGHT - 20}px"></iframe>', height=_HEIGHT)


if __name__ == "__main__":
    show("What raters see", draw)
