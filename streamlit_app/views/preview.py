"""What raters will see of each queue, before anything is published and after."""

from __future__ import annotations

from html import escape

import streamlit as st

from plumbline.study import Study
from streamlit_app.elements import show
from streamlit_app.readers import campaign

_HEIGHT = 1200  # pixels; the page scrolls in it


def draw(study: Study) -> None:
    """The same page as `annotation preview` writes, shut off from this one."""
    html = escape(campaign.page(study))
    frame = f'<iframe sandbox="allow-scripts" title="The preview" srcdoc="{html}"'
    inner = f'{frame} style="border: 0; width: 100%; height: {_HEIGHT - 20}px"></iframe>'
    st.iframe(f'<!doctype html><html lang="en"><title>What raters will see</title>{inner}</html>', height=_HEIGHT)


if __name__ == "__main__":
    show(draw)
