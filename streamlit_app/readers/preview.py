"""The page that shows what raters will see."""

from __future__ import annotations

from annotation.preview import preview_html
from plumbline.study import Study
from streamlit_app.records import cached


@cached("pairs.parquet", watches=("controls.parquet", "rules.json", "ratings.parquet", "control_ratings.parquet"))
def page(study: Study) -> str:
    """The page of `annotation preview`, for a page that has a heading."""
    return preview_html(study, headed=False)
