"""`python -m annotation status`: where a study stands, without what the other commands of a campaign import."""

from __future__ import annotations

import argparse

from annotation.names import known_names
from annotation.options import home_of
from annotation.status.status import status_now
from annotation.status.text import status_text
from plumbline import cli
from plumbline.commands import as_called


def show_status(options: argparse.Namespace) -> int:
    """Show where the study stands."""
    study = cli.study_of(options)
    names = known_names(home_of(options), study.name)
    print(as_called(status_text(status_now(study, home_of(options)), study.arguments, names)))
    return 0
