"""The container files: what they name is there, nothing secret is in them, and nothing is open that need not be.

Docker, Compose, Caddy and Helm are not needed: the files are read, and held to rules of hadolint and to our own code.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.__main__ import _parser
from annotation.options import HOME_VARIABLE, PORT
from argilla_embedded.guard import SIGNED_IN
from tests.annotation.server.route_table import OPEN, READS

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy"
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|API_?KEY|CREDENTIAL", re.IGNORECASE)
TAGGED = re.compile(r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-\w+)*")
#: The values of Argilla's chart (argilla-io/argilla, examples/deployments/k8s/argilla-chart/values.yaml, 2b94f64).
CHART = {
    "argilla": {"replicaCount", "image", "resources", "authSecretKey", "auth", "persistence", "ingress", "configmap",
                "hpa", "db"},
    "elasticsearch": {"sslVerify", "useOperator", "version", "nodeCount", "disableAuthentication", "resources",
                      "persistence"},
    "externalElasticsearch": {"host", "port", "path"},
    "redis": {"enabled", "architecture", "auth", "master"},
    "externalRedis": {"enabled", "url", "is_redis_cluster"},
    "serviceAccount": {"create"},
    "worker": {"replicaCount", "numWorkers", "resources"},
}  # fmt: skip


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


def test_the_services_name_what_there_is_and_have_tags(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"server", "database", "proxy"}
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert "build" in service or TAGGED.fullmatch(service["image"]), f"{name}: no tag of a version"
        assert set(service.get("depends_on", {})) <= set(services)
        assert set(service.get("secrets", [])) <= set(compose["secrets"])
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).is_file(), f"{name}: no volume {source}"
        for wanted, needed in service.get("depends_on", {}).items():
            if needed["condition"] == "service_healthy":
                assert "healthcheck" in services[wanted]
        assert service["restart"] == "unless-stopped"
    build = services["server"]["build"]
    root = (DEPLOY / build["context"]).resolve()
    assert (root / "pyproject.toml").is_file() and (root / build["dockerfile"]).is_file()
    # pg_dump refuses a database that is newer than itself.
    (client,) = re.findall(r"postgresql-client-(\d+)", text("Dockerfile"))
    assert services["database"]["image"].startswith(f"postgres:{client}.")


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


def test_the_command_in_the_container_is_one_of_ours(compose: dict[str, Any]) -> None:
    shell, flag, line = compose["services"]["server"]["command"]
    assert (shell, flag) == ("sh", "-c") and line.endswith(" > /dev/null")  # the first start prints a password
    words = shlex.split(line.partition("exec python -m annotation ")[2].partition(" >")[0])
    words = [word.replace("$${WORKERS}", "2").replace("$${DOMAIN}", "argilla.example.org") for word in words]
    options = _parser().parse_args(words)
    assert (options.run.args, options.workers) == (("annotation.server_commands:serve",), 2)
    assert options.host == "127.0.0.1"
    assert options.address == ["https://argilla.example.org"]
    assert HOME_VARIABLE in text("Dockerfile")


def test_the_image_keeps_hadolints_rules() -> None:
    found = instructions()
    kinds = [kind for kind, _ in found]
    (base,) = [words for kind, words in found if kind == "FROM"]
    assert TAGGED.fullmatch(base), "DL3006, DL3007"
    assert "ADD" not in kinds and "MAINTAINER" not in kinds, "DL3020, DL4000"
    assert [words for kind, words in found if kind == "USER"] == ["${PLUMBLINE_UID}"], "DL3002, DL3066"
    assert dict(found)["ARG"] == "PLUMBLINE_UID=1000"
    assert kinds.index("USER") < kinds.index("VOLUME") and kinds.count("CMD") == 1 == kinds.count("HEALTHCHECK")
    assert dict(found)["CMD"].startswith("["), "DL3025"
    assert dict(found)["WORKDIR"].startswith("/"), "DL3000"
    for kind, words in found:
        if kind != "RUN":
            continue
        assert "sudo" not in words and not re.search(r"\bcd\b", words), "DL3004, DL3003"
        if "apt-get install" in words:
            assert "--no-install-recommends" in words and "--yes" in words, "DL3015, DL3014"
            assert words.endswith("rm -rf /var/lib/apt/lists/*"), "DL3009"
        assert "pip install" not in words or "--no-cache-dir" in words, "DL3042"
        assert "pip install" not in words or (" --constraint /opt/plumbline/constraints/platform.txt " in words), (
            "DL3013"
        )
    (asked,) = re.findall(rf"http://127\.0\.0\.1:{PORT}(/\S+?)'", dict(found)["HEALTHCHECK"])
    assert asked in [row.path for row in READS if row.statuses == OPEN]


def test_caddy_leads_to_the_server_and_writes_no_log() -> None:
    lines = [
        line.strip() for line in text("Caddyfile").splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    assert sum(line.count("{") - line.count("}") for line in lines) == 0
    assert "admin off" in lines and f"reverse_proxy 127.0.0.1:{PORT} {{" in lines
    assert not [line for line in lines if line.startswith("log")]  # addresses of /crowd/ hold participants' ids
    assert f"max_size {max(SIGNED_IN.values()) // 2**20}MB" in lines
    protocol = Path("packages/argilla-embedded/argilla_embedded/protocol.py")
    (server,) = re.findall(r'"timeout_keep_alive": (\d+)', (DEPLOY.parents[1] / protocol).read_text(encoding="utf-8"))
    (proxy,) = re.findall(r"keepalive (\d+)s", text("Caddyfile"))
    assert int(proxy) < int(server)


def test_the_values_for_argillas_chart_are_its_own_and_hold_no_secret() -> None:
    values = yaml.safe_load(text("argilla-values.yaml"))
    for name, section in values.items():
        assert set(section) <= CHART[name], name
    argilla = values["argilla"]
    assert "authSecretKey" not in argilla and set(argilla["auth"]) == {"username"}
    assert argilla["replicaCount"] == 1 and argilla["hpa"] == {"enabled": False}  # each pod has a SQLite of its own
    pins = (DEPLOY.parents[1] / "constraints" / "argilla-server.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"(?m)^argilla-server==([\d.]+)", pins)
    assert argilla["image"]["tag"] == f"v{version}"
    for secret in ("authSecretKey", "auth.password", "auth.apiKey"):
        assert f"--set-file argilla.{secret}=" in text("argilla-values.yaml")
