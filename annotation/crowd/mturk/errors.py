"""What boto3's errors mean for a campaign on MTurk, in one line each; keys are never in them."""

from __future__ import annotations

import re
from typing import Any

from annotation.crowd.platform import NoMoneyError, RefusedError, UncertainError
from plumbline.errors import ServiceError

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
    """A call whose token was used before: it took effect then. `made` is the HIT's id where the answer names one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        named = re.search(r"\b[A-Z0-9]{30}\b", message)
        self.made = named[0] if named else None


class WrongStateError(RefusedError):
    """The assignment was decided before, perhaps by a first try of this call."""


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
    code, said = str(answer["Error"].get("Code", "")), str(answer["Error"].get("Message", ""))
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _BAD_KEYS:
        return ServiceError(f"MTurk does not accept the AWS keys ({code}); {KEYS}")
    if "must be linked" in said or code in _DENIED:
        return ServiceError(
            f"MTurk lets this AWS account do nothing ({said or code}); link it to a requester's account and allow it"
            f" {operation}. {CLOSED}"
        )
    if code in _SLOWER:
        return ServiceError(f"MTurk, {operation}: too many calls; run the command again in some minutes")
    if status in (404, 410) or code == "UnknownOperationException" or _GONE.search(said):
        return ServiceError(f"MTurk is not there any more ({said or code}). {CLOSED}")
    if status >= 500 or code == "ServiceFault":
        return UncertainError(
            f"MTurk, {operation}: failed on its side ({said or code}); run the command again. {CLOSED}"
        )
    return _refused(answer, operation, said or code)


def _refused(answer: dict[str, Any], operation: str, said: str) -> ServiceError:
    """What a RequestError means, by its TurkErrorCode."""
    turk = str(answer.get("TurkErrorCode", "")).rpartition(".")[2]
    if turk.endswith("AlreadyExists") or "has already been processed" in said:
        return DoneBeforeError(f"MTurk, {operation}: {said}")
    if turk == "InvalidAssignmentState":
        return WrongStateError(f"MTurk, {operation}: {said}")
    if answer.get("ResponseMetadata", {}).get("RetryAttempts", 0):
        # boto3 tried more than once: the refusal is of the last try, and an earlier one may have taken effect.
        return UncertainError(f"MTurk, {operation}: {said}, at the second try; run the command again")
    if turk == "InsufficientFunds" or "insufficient funds" in said.lower():
        return NoMoneyError(f"MTurk, {operation}: {said}")
    if turk.endswith("DoesNotExist"):
        return RefusedError(f"MTurk refuses {operation}: {said}; are keys and MTURK_ENDPOINT those of the account that"
                            " made it?")  # fmt: skip
    return RefusedError(f"MTurk refuses {operation}: {said}")
