"""Calls to MTurk through boto3: where it is, its errors as ours, its lists page by page, its amounts in cents."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from annotation.crowd.mturk.errors import DoneBeforeError, translated
from annotation.crowd.pay import dollars
from annotation.crowd.platform import NoMoneyError
from annotation.offering import Mode
from plumbline.addresses import proxy_for, refuse_no_address
from plumbline.errors import ServiceError, StudyError
from plumbline.resources import installing

REGION = "us-east-1"  # MTurk has one
ENDPOINTS: dict[Mode, str] = {
    "sandbox": "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
    "live": "https://mturk-requester.us-east-1.amazonaws.com",
}
PAGE = 100  # rows that MTurk lists at a time, at most


class Requester:
    """A requester's account, over a client of boto3's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """One call of boto3's. Raises ServiceError as `mturk_errors` has it."""
        try:
            answer: dict[str, Any] = getattr(self._client, method)(**arguments)
        except Exception as error:
            known = translated(error, method)
            if known is None:
                raise
            raise self._with_balance(known) from None
        return answer

    def once(self, method: str, **arguments: Any) -> None:
        """A call with a token: that it was done before is as good."""
        try:
            self.call(method, **arguments)
        except DoneBeforeError:
            return

    def pages(self, method: str, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        token: dict[str, str] = {}
        while True:
            page = self.call(method, MaxResults=PAGE, **arguments, **token)
            yield from page.get(name, [])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def balance(self) -> int:
        """Cents that can be spent."""
        return cents_of(self.call("get_account_balance")["AvailableBalance"])

    def _with_balance(self, error: ServiceError) -> ServiceError:
        """For want of money, the error with what there is."""
        if not isinstance(error, NoMoneyError):
            return error
        try:
            there = f"the account has {dollars(self.balance())}"
        except ServiceError:
            there = "what the account has cannot be asked now"
        return NoMoneyError(f"{error} ({there}); add money on the requester's site, then run the command again")


def connected(endpoint: str, retries: int) -> Any:
    """A client of boto3's, with keys from where boto3 looks for them.

    Raises StudyError where boto3 is not installed, ServiceError where its settings are wrong.
    """
    try:
        import boto3  # noqa: PLC0415 (extra `crowd`)
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise StudyError(f"MTurk needs boto3; install it: {installing('crowd')}") from None
    config = Config(
        region_name=REGION,
        retries={"mode": "standard", "total_max_attempts": retries + 1},
        connect_timeout=10,
        read_timeout=60,
    )
    try:
        return boto3.Session().client("mturk", endpoint_url=endpoint, config=config)
    except Exception as error:
        raise translated(error, "client") or error from None


def refuse_other_mode(mode: Mode, endpoint: str) -> None:
    """Raise StudyError for the endpoint of the other mode: sandbox and live never meet, whatever is set."""
    try:
        if endpoint:
            refuse_no_address(endpoint, ENDPOINTS[mode])
        place = urlsplit(endpoint or ENDPOINTS[mode])
        proxy_for(place.scheme, place.netloc)
    except ValueError as error:
        raise StudyError(f"MTURK_ENDPOINT: {error}") from None
    host = place.hostname
    for other, address in ENDPOINTS.items():
        if other != mode and host == urlsplit(address).hostname:
            raise StudyError(f"MTURK_ENDPOINT {endpoint} is MTurk's {other} service, but the mode is {mode}; unset it")


def amount(cents: int) -> str:
    """Cents as MTurk writes dollars: 125 is `1.25`."""
    return f"{cents // 100}.{cents % 100:02d}"


def cents_of(amount: str) -> int:
    """Dollars as MTurk writes them, in cents."""
    return int(Decimal(amount) * 100)
