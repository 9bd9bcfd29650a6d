"""Errors, one class for each reaction of the caller."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from maitre.jobs import Job

_HINT = re.compile(r"[;\n]\s*hint: ")
_FIELD = re.compile(r"^`([^`]+)` ")


class MaitreError(Exception):
    """An error. `hint` is the server's remedy, or empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class Unavailable(MaitreError):
    """The scheduler cannot be reached, or cannot answer for now. Nothing was changed."""


class Invalid(MaitreError):
    """An invalid request. `field` names the field, if the server did."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        match = _FIELD.match(message)
        self.field = match.group(1) if match else ""


class NotFound(MaitreError):
    """The named object does not exist."""


class Conflict(MaitreError):
    """The name or key is in use for different content."""


class LimitReached(MaitreError):
    """A limit is reached. The message names it."""


class Unauthenticated(MaitreError):
    """The token is missing or unknown."""


class Forbidden(MaitreError):
    """The token does not allow it."""


class Refused(MaitreError):
    """The scheduler rejects the request in the current state."""


class ServerError(MaitreError):
    """The scheduler failed. Its log has the details."""


class TimedOut(MaitreError, TimeoutError):
    """The timeout passed."""


class JobFailed(MaitreError):
    """The job failed and has no result."""

    def __init__(self, job: Job) -> None:
        why = f" ({job.cause})" if job.cause else ""
        said = f": {job.error}" if job.error else ""
        super().__init__(f"job {job.id} {job.state}{why}{said}")
        self.job = job


class JobCancelled(JobFailed):
    """The job was cancelled and has no result."""


class WorkerError(MaitreError):
    """A worker cannot continue, and a retry would not help."""


_BY_CODE: dict[grpc.StatusCode, type[MaitreError]] = {
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.CANCELLED: Unavailable,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.OUT_OF_RANGE: Invalid,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitReached,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.FAILED_PRECONDITION: Refused,
    grpc.StatusCode.ABORTED: Refused,
    grpc.StatusCode.UNIMPLEMENTED: Refused,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOut,
}


def from_rpc(error: grpc.RpcError) -> MaitreError:
    """Converts an error of gRPC."""
    # Only errors of calls come here, and they have both values.
    code: grpc.StatusCode = error.code()
    details: str = error.details() or code.value[1]
    message, hint = split_hint(details)
    return _BY_CODE.get(code, ServerError)(message, hint)


def split_hint(text: str) -> tuple[str, str]:
    """Splits a message into the problem and the hint."""
    message, *hints = _HINT.split(text, maxsplit=1)
    return message, hints[0] if hints else ""
