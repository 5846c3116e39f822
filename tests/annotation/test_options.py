"""What the options of commands name without importing it is what it is where it is used."""

from __future__ import annotations

from annotation.__main__ import _parser
from annotation.argilla_files import FOLDER as IN_ARGILLAS
from annotation.planning import RatingVariation
from annotation.preview import SHOWN
from annotation.server import URL_VARIABLE
from annotation.server.backup import EVERY, KEEP


def test_defaults_are_those_of_what_the_commands_call() -> None:
    parsed = {name: _parser().parse_args([name, "--study", "x"]) for name in ("plan", "preview", "serve")}
    plan, serve = parsed["plan"], parsed["serve"]
    assert RatingVariation(plan.spread, plan.bias, plan.noise) == RatingVariation()
    assert parsed["preview"].pairs == SHOWN
    assert (serve.backup_every, serve.keep) == (EVERY, KEEP)
    assert (URL_VARIABLE, IN_ARGILLAS) == ("PLUMBLINE_ARGILLA_DATABASE_URL", "export-argilla")
