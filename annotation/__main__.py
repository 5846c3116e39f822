"""`python -m annotation COMMAND`: pairs out to people, ratings back, verdicts."""

from __future__ import annotations

import argparse
import shlex
import subprocess
from collections.abc import Callable

from annotation import server
from annotation.campaign import admit_annotators, collect, publish
from annotation.client import attach, connect
from annotation.maintenance import add_commands, add_data_option, add_serve_options, home_of, keeper_of
from annotation.sample import draw_sample
from annotation.simulate import simulate
from annotation.tables import agreement_text, verdict_text
from annotation.verdicts import accept
from generation import command
from generation.manifest import stage
from generation.study import Study

PORT = 6900


def main() -> int:
    """The command line."""
    options = _parser().parse_args()
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _sample(options: argparse.Namespace) -> int:
    study = command.study_of(options)
    transformed = [study.folder / "texts.parquet", study.folder / "transformations"]
    with stage(study, "sample", transformed, [study.folder / "pairs.parquet"]):
        pairs = draw_sample(study)
    print(f"{study.name}: {len(pairs)} pairs drawn -> {study.folder / 'pairs.parquet'}")
    for name in study.transformations:
        drawn = sum(pair.transformation == name for pair in pairs)
        if drawn < study.sample.pairs:
            print(f"  {name}: {drawn} pairs, the study asks for {study.sample.pairs}; there are no more outputs")
    return 0


def _serve(options: argparse.Namespace) -> int:
    if options.during:
        with server.running(home_of(options), database_url=options.database_url):
            return subprocess.run(shlex.split(options.during), check=False).returncode
    study = command.study_of(options) if options.study else None

    def welcome(connection: server.Connection) -> None:
        if study is not None:
            _make_annotators(study, connection)
        print("Ready", flush=True)

    server.serve(
        home_of(options), options.host, options.port, on_ready=welcome,
        database_url=options.database_url, keeper=keeper_of(options),
    )  # fmt: skip
    return 0


def _make_annotators(study: Study, connection: server.Connection) -> None:
    """See that as many annotators as the study wants for a pair have accounts and may see it."""
    for number in range(1, study.raters.per_pair + 1):
        name = f"rater-{number}"
        known = connection.home is not None and server.credentials(connection.home).find(name)
        user = server.ensure_user(connection, name, first_name=f"Rater {number}")
        if not known:
            print(f"Annotator {user.username}, password {user.password}   (shown this once)")
    argilla = attach(connection)
    workspace = argilla.workspace(study.name)
    if workspace is not None:  # else publishing lets them in
        admit_annotators(workspace, argilla)


def _publish(options: argparse.Namespace) -> int:
    study = command.study_of(options)
    with stage(study, "publish", [study.folder / "pairs.parquet"]), connect(home_of(options)) as argilla:
        new = publish(study, argilla)
    print(f"{study.name}: {sum(new.values())} new pairs published in {len(new)} datasets of workspace {study.name!r}")
    return 0


def _simulate(options: argparse.Namespace) -> int:
    study = command.study_of(options)
    with connect(home_of(options)) as argilla:
        given = simulate(study, argilla)
    print(f"{study.name}: {given} answers given by simulated raters")
    return 0


def _collect(options: argparse.Namespace) -> int:
    study = command.study_of(options)
    outputs = [study.folder / "ratings.parquet"]
    with stage(study, "collect", [study.folder / "pairs.parquet"], outputs), connect(home_of(options)) as argilla:
        ratings = collect(study, argilla, replace=options.replace)
    counts = ratings["status"].value_counts()
    parts = ", ".join(f"{counts.get(status, 0)} {status}" for status in ("submitted", "draft", "discarded"))
    simulated = f", {int(ratings['simulated'].sum())} of them simulated" if ratings["simulated"].any() else ""
    print(f"{study.name}: {len(ratings)} ratings ({parts}{simulated}) -> {study.folder / 'ratings.parquet'}")
    return 0


def _accept(options: argparse.Namespace) -> int:
    study = command.study_of(options)
    inputs = [study.folder / "pairs.parquet", study.folder / "ratings.parquet"]
    outputs = [study.folder / "agreement.json", study.folder / "verdicts.json"]
    with stage(study, "accept", inputs, outputs):
        groups, verdicts = accept(study)
    print(f"Ratings and agreement (HTEB, Table 2), study {study.name}\n\n{agreement_text(groups)}\n")
    print(f"Verdicts, study {study.name}\n\n{verdict_text(verdicts)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m annotation",
        description="Pairs out to people, ratings back, verdicts. Every command may be run again.",
        epilog="example: python -m annotation sample --study studies/demo.yaml",
    )
    commands = parser.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, argilla: bool
    ) -> argparse.ArgumentParser:
        example = f"example: python -m annotation {name} --study studies/demo.yaml"
        added = commands.add_parser(name, help=text, description=text, epilog=example)
        added.set_defaults(run=run)
        if name != "serve":
            command.add_study_options(added)
        if argilla:
            add_data_option(added)
        return added

    add("sample", _sample, "draw the pairs that people rate", argilla=False)
    serve = add("serve", _serve, "start Argilla on this machine and keep it running until Ctrl-C", argilla=True)
    serve.add_argument("--study", metavar="FILE", help="make sure of as many annotators as this study wants for a pair")
    serve.add_argument("--exports", help=argparse.SUPPRESS)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    serve.add_argument("--port", type=int, default=PORT, help=f"port to listen on (default: {PORT})")
    serve.add_argument("--during", metavar="COMMAND", help="run a command while the server runs, then stop it")
    add_serve_options(serve)
    add("publish", _publish, "put the pairs before the annotators in Argilla", argilla=True)
    add("simulate", _simulate, "rehearse: let the study's simulated raters answer", argilla=True)
    collecting = add("collect", _collect, "fetch the answers given so far", argilla=True)
    collecting.add_argument(
        "--replace", action="store_true", help="also drop earlier collected answers that the server no longer has"
    )
    add("accept", _accept, "compute agreement and verdicts from the collected answers", argilla=False)
    add_commands(commands)
    return parser


if __name__ == "__main__":
    command.run(main)
