"""Calls to MTurk through boto3: where it is, its errors as ours, its lists page by page, its amounts in cents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from annotation.crowd.platform import NoMoneyError, RefusedError, UncertainError, dollars
from annotation.offering import Mode
from plumbline.addresses import proxy_for, refuse_no_address
from plumbline.errors import ServiceError, StudyError
from plumbline.resources import installing

CLOSED = (
    "MTurk closed on 30 September 2026, so there may be nobody to answer; results that were downloaded from its site"
    " (CSV) can still be read, and new campaigns run on Prolific (--platform prolific)"
)
KEYS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a profile in ~/.aws/credentials; the keys are"
    " those of the AWS account that is linked to the requester's account"
)
_BAD_KEYS = {
    "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
    "ExpiredTokenException", "ExpiredToken", "MissingAuthenticationTokenException", "IncompleteSignatureException",
}  # fmt: skip
_DENIED = {"AccessDeniedException", "AccessDenied", "NotAuthorized", "UnauthorizedOperation", "OptInRequired"}
_SLOWER = {"ThrottlingException", "Throttling", "RequestThrottled", "RequestLimitExceeded", "TooManyRequestsException"}
_GONE = re.compile(r"\bclosed\b|discontinued|shut ?down|no longer (available|supported)|end of (life|support)", re.I)


class DoneBeforeError(ServiceError):
    """A call whose token was used before: it took effect then. `hit_id` is the HIT's id where the answer names one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        named = re.search(r"\b[A-Z0-9]{30}\b", message)
        self.hit_id = named[0] if named else None


def translated(error: Exception, operation: str) -> ServiceError | None:
    """An error of boto3's as one of ours; None for one that is a bug here."""
    from botocore import exceptions as boto  # noqa: PLC0415 (extra `crowd`)

    if isinstance(error, boto.ClientError):
        return _answered(error.response, operation)
    no_keys = (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError)
    settings = (boto.ProfileNotFound, boto.ConfigParseError, boto.TokenRetrievalError)
    unreached = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError)
    meanings: tuple[tuple[Any, type[ServiceError], str], ...] = (
        (no_keys, ServiceError, f"MTurk: no AWS keys were found; {KEYS}"),
        (settings, ServiceError, f"MTurk: the AWS settings cannot be used ({error}); {KEYS}"),
        (boto.ParamValidationError, RefusedError, f"MTurk, {operation}: {error}"),
        (unreached, ServiceError, f"MTurk cannot be reached ({error}); {CLOSED}"),
        (boto.HTTPClientError, UncertainError, f"MTurk, {operation}: no answer came ({error}); run the command again"),
        (boto.BotoCoreError, ServiceError, f"MTurk, {operation}: {error}"),
    )
    return next((kind(line) for errors, kind, line in meanings if isinstance(error, errors)), None)


def _answered(answer: dict[str, Any], operation: str) -> ServiceError:
    """What an error of the service's own means."""
    code, message = str(answer["Error"].get("Code", "")), str(answer["Error"].get("Message", ""))
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _BAD_KEYS:
        return ServiceError(f"MTurk does not accept the AWS keys ({code}); {KEYS}")
    if "must be linked" in message or code in _DENIED:
        return ServiceError(
            f"MTurk lets this AWS account do nothing ({message or code}); link it to a requester's account and allow it"
            f" {operation}. {CLOSED}"
        )
    if code in _SLOWER:
        return ServiceError(f"MTurk, {operation}: too many calls; run the command again in some minutes")
    refused = answer.get("TurkErrorCode")  # the service is there, and refuses: a worker's account may be closed, too
    if status in (404, 410) or code == "UnknownOperationException" or (not refused and _GONE.search(message)):
        return ServiceError(f"MTurk is not there any more ({message or code}). {CLOSED}")
    if status >= 500 or code == "ServiceFault":
        return UncertainError(
            f"MTurk, {operation}: failed on its side ({message or code}); run the command again. {CLOSED}"
        )
    return _refused(answer, operation, message or code)


def _refused(answer: dict[str, Any], operation: str, message: str) -> ServiceError:
    """What a RequestError means, by its TurkErrorCode."""
    turk = str(answer.get("TurkErrorCode", "")).rpartition(".")[2]
    if turk.endswith("AlreadyExists") or "has already been processed" in message:
        return DoneBeforeError(f"MTurk, {operation}: {message}")
    if turk == "InvalidAssignmentState":  # it was decided before, perhaps by a first try of this call
        return RefusedError(f"MTurk, {operation}: {message}")
    if answer.get("ResponseMetadata", {}).get("RetryAttempts", 0):
        # boto3 tried more than once: the refusal is of the last try, and an earlier one may have taken effect.
        return UncertainError(f"MTurk, {operation}: {message}, at the second try; run the command again")
    if turk == "InsufficientFunds" or "insufficient funds" in message.lower():
        return NoMoneyError(f"MTurk, {operation}: {message}")
    if turk.endswith("DoesNotExist"):
        return RefusedError(f"MTurk refuses {operation}: {message}; are keys and MTURK_ENDPOINT those of the account"
                            " that made it?")  # fmt: skip
    return RefusedError(f"MTurk refuses {operation}: {message}")


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
            service_error = translated(error, method)
            if service_error is None:
                raise
            raise self._with_balance(service_error) from None
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
            funds = f"the account has {dollars(self.balance())}"
        except ServiceError:
            funds = "what the account has cannot be asked now"
        return NoMoneyError(f"{error} ({funds}); add money on the requester's site, then run the command again")


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
        parts = urlsplit(endpoint or ENDPOINTS[mode])
        proxy_for(parts.scheme, parts.netloc)
    except ValueError as error:
        raise StudyError(f"MTURK_ENDPOINT: {error}") from None
    host = parts.hostname
    for mode_name, address in ENDPOINTS.items():
        if mode_name != mode and host == urlsplit(address).hostname:
            raise StudyError(
                f"MTURK_ENDPOINT {endpoint} is MTurk's {mode_name} service, but the mode is {mode}; unset it"
            )


def cents_of(amount: str) -> int:
    """Dollars as MTurk writes them, in cents."""
    return int(Decimal(amount) * 100)
