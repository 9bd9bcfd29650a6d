"""What can go wrong, one class for each thing that a caller can do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from maitre.jobs import Job

_HINT = re.compile(r"[;\n]\s*hint: ")
_FIELD = re.compile(r"^`([^`]+)` ")


class MaitreError(Exception):
    """Something went wrong. `hint` says what to do about it, in the server's words, or is empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class Unavailable(MaitreError):
    """The scheduler cannot be reached, or cannot answer for now. Nothing was changed."""


class Invalid(MaitreError):
    """Something that was asked for may not be so. `field` names it, if the server did."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        match = _FIELD.match(message)
        self.field = match.group(1) if match else ""


class NotFound(MaitreError):
    """There is no such thing."""


class Conflict(MaitreError):
    """The same name or key stands for something else already."""


class LimitReached(MaitreError):
    """There is no room for more: a limit is named."""


class Unauthenticated(MaitreError):
    """A token is missing, or is not known."""


class Forbidden(MaitreError):
    """The token does not allow it."""


class Refused(MaitreError):
    """The scheduler will not do it as things are."""


class ServerError(MaitreError):
    """The scheduler failed; its log says more."""


class TimedOut(MaitreError, TimeoutError):
    """It did not happen in the time that was given."""


class JobFailed(MaitreError):
    """The job is over and has no result: it failed."""

    def __init__(self, job: Job) -> None:
        why = f" ({job.cause})" if job.cause else ""
        said = f": {job.error}" if job.error else ""
        super().__init__(f"job {job.id} {job.state}{why}{said}")
        self.job = job


class JobCancelled(JobFailed):
    """The job is over and has no result: it was called off."""


class WorkerError(MaitreError):
    """A worker cannot go on, and would not if it came back."""


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
    """What an error of the wire means for us."""
    # Only errors of calls get here, and those know both.
    code: grpc.StatusCode = error.code()
    details: str = error.details() or code.value[1]
    message, hint = split_hint(details)
    return _BY_CODE.get(code, ServerError)(message, hint)


def split_hint(text: str) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    message, *hints = _HINT.split(text, maxsplit=1)
    return message, hints[0] if hints else ""
