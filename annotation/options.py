"""Options that several of this package's commands share.

Annotations are evaluated, as in `plumbline.cli`, for classes elsewhere that inherit them.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from annotation.server.home import Home
from plumbline.addresses import entrance
from plumbline.cli import Named, StudyOptions, reads

HOME_VARIABLE = "PLUMBLINE_ARGILLA_HOME"


Address = Annotated[str, reads(entrance), Parameter(metavar="URL")]
Hidden = Annotated[Named | None, Parameter(show=False)]  # an option that commands print, and nobody needs to know


@Parameter(name="*")
@dataclass(frozen=True)
class HomeOptions:
    """The local server, as a command's options name it.

    Args:
        data: The local server's folder (default: .argilla/).
    """

    data: Annotated[Named | None, Parameter(metavar="DIR")] = None

    @property
    def home(self) -> Home:
        """The server's home: the option's, or else the environment's."""
        folder = self.data or os.environ.get(HOME_VARIABLE)
        return Home(Path(folder)) if folder else Home()


@Parameter(name="*")
@dataclass(frozen=True)
class CampaignOptions(HomeOptions, StudyOptions):
    """The study and the local server that a command works on, as its options name them."""
