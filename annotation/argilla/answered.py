"""How many answers the study's server has now, collected or not: it is only read, and none is started."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotation import server
from annotation.argilla.client import HEADER, SIMULATED
from annotation.pseudonyms import WORKER
from annotation.server.connection import probe
from plumbline.addresses import key_in
from plumbline.errors import PlumblineError
from plumbline.study import Study

_SECONDS = 3.0  # for each request; who looks at a status does not wait for a server that hangs


@dataclass(frozen=True)
class ServerAnswers:
    """What a server that was looked at has."""

    url: str  #: empty where none runs on this machine and none is configured
    trouble: str = ""  #: why it could not be looked at; empty where it was
    by_account: Mapping[str, int] = field(default_factory=dict)  #: submitted answers, by user name

    @property
    def answers(self) -> int:
        """How many there are."""
        return sum(self.by_account.values())

    @property
    def people(self) -> dict[str, int]:
        """Those of people."""
        return {name: number for name, number in self.by_account.items() if not name.startswith((SIMULATED, WORKER))}


def answered_now(study: Study, home: server.Home, datasets: Collection[str]) -> ServerAnswers:
    """The submitted answers in a study's `datasets` on the server that runs, the home's own or the configured one.

    Whatever keeps it from being looked at is noted in plain words and raises nothing. It is only read.
    """
    import httpx  # noqa: PLC0415 (a tenth of a second, and most commands ask no server)

    url = os.environ.get("ARGILLA_API_URL", "").strip().rstrip("/")
    try:
        if url:
            key, proxies = key_in("ARGILLA_API_KEY"), True
        elif (connection := probe(home)) is None:
            return ServerAnswers("", "it does not run")
        else:
            url, key, proxies = connection.url, connection.api_key, False
        with httpx.Client(
            base_url=f"{url}/api/v1", headers={HEADER: key}, timeout=_SECONDS, trust_env=proxies
        ) as client:
            return ServerAnswers(url, "", _counted(study, client, datasets))
    except PlumblineError as error:
        return ServerAnswers(url, str(error))
    except httpx.HTTPStatusError as error:
        return ServerAnswers(url, f"it refused with status {error.response.status_code}")
    except httpx.HTTPError as error:
        return ServerAnswers(url, f"it does not answer ({str(error) or type(error).__name__})")
    except (ValueError, KeyError, TypeError, AttributeError, httpx.InvalidURL):
        return ServerAnswers(url, "it does not answer as Argilla does")


def _counted(study: Study, client: Any, datasets: Collection[str]) -> dict[str, int]:
    """The submitted answers by account."""

    def read(path: str) -> Any:
        return client.get(path).raise_for_status().json()

    counts = Counter[str]()
    names = {workspace["id"]: workspace["name"] for workspace in read("/me/workspaces")["items"]}
    for dataset in read("/me/datasets")["items"]:
        if dataset["name"] in datasets and names.get(dataset["workspace_id"], "").startswith(f"{study.name}-"):
            for user in read(f"/datasets/{dataset['id']}/users/progress")["users"]:
                counts[user["username"]] += user["completed"]["submitted"] + user["pending"]["submitted"]
    return {name: number for name, number in counts.items() if number}
