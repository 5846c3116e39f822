"""The container files: what they name is there, nothing secret is in them, and nothing is open that need not be.

Docker, Compose, Caddy and Helm are not needed: the files are read, and held to rules of hadolint and to our own code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy"
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|API_?KEY|CREDENTIAL", re.IGNORECASE)


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text("compose.yaml"))
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its words in one line."""
    whole = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", text("Dockerfile")))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in whole.splitlines() if line.strip()]


def test_only_the_proxy_is_reached_and_from_this_machine_alone_unless_told(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {name for name, service in services.items() if "ports" in service} == {"server"}
    assert services["proxy"]["network_mode"] == "service:server"  # so that the server can stay on its loopback
    for port in services["server"]["ports"]:
        assert re.fullmatch(r"\$\{PLUMBLINE_BIND:-127\.0\.0\.1\}:(80:80|443:443)", port), port
    for name, service in services.items():
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "pid", "ipc", "devices"} & set(service), name
    for name in ("server", "proxy"):
        assert services[name]["read_only"] is True and services[name]["cap_drop"] == ["ALL"], name


def test_no_secret_stands_in_any_file_and_there_is_no_default_password(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name in service.get("environment", {}):
            assert not SECRET_NAME.search(name) or name.endswith("_FILE"), name
    for kind, words in instructions():
        assert kind not in {"ENV", "ARG"} or not SECRET_NAME.search(words), words
    assert compose["secrets"] == {"database_password": {"file": "./database_password"}}
    assert not (DEPLOY / "database_password").exists() or (DEPLOY / "database_password").stat().st_mode & 0o077 == 0
    for ignored in (DEPLOY / "Dockerfile.dockerignore", DEPLOY.parents[1] / ".gitignore"):
        assert "docs/deploy/database_password" in ignored.read_text(encoding="utf-8"), ignored
    for needed in re.findall(r"\$\{PLUMBLINE_DOMAIN[^}]*\}", text("compose.yaml")):
        assert needed.startswith("${PLUMBLINE_DOMAIN:?"), "no name is made up"


def test_the_values_for_argillas_chart_hold_no_secret() -> None:
    argilla = yaml.safe_load(text("argilla-values.yaml"))["argilla"]
    assert "authSecretKey" not in argilla and set(argilla["auth"]) == {"username"}
    assert argilla["replicaCount"] == 1 and argilla["hpa"] == {"enabled": False}  # each pod has a SQLite of its own
    pins = (DEPLOY.parents[1] / "constraints" / "argilla-server.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"(?m)^argilla-server==([\d.]+)", pins)
    assert argilla["image"]["tag"] == f"v{version}"
    for secret in ("authSecretKey", "auth.password", "auth.apiKey"):
        assert f"--set-file argilla.{secret}=" in text("argilla-values.yaml")
