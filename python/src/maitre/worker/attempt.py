"""The attempt that a handler runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from maitre.spec import decode
from maitre.v1 import job_pb2
from maitre.worker.outcome import clean
from maitre.worker.stop import Stopped, StopReason
from maitre.worker.ticket import Ticket

_STREAMS = {"out": job_pb2.STREAM_OUT, "err": job_pb2.STREAM_ERR}


@dataclass(frozen=True)
class Configuration:
    """The configuration of a type. Empty if it has no descriptor."""

    # The settings of operators.
    admin: Mapping[str, Any] = field(default_factory=dict)
    # Further settings for workers.
    worker: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """The context that is published to all workers."""

    # Increases with every change. 0 means that there is none.
    version: int = 0
    value: Any = None


class SaysProgress(Protocol):
    """Reports progress."""

    def __call__(self, fraction: float, note: str = "", *, stage: str = "") -> None:
        """From 0 to 1, with a note and the name of the current step."""


class Attempt:
    """One attempt of a job, as its handler sees it. Any thread may use it."""

    def __init__(self, ticket: Ticket, configuration: Configuration, published: Published) -> None:
        self._ticket = ticket
        self.configuration = configuration
        self.published = published

    @property
    def id(self) -> int:
        """The id of the job."""
        return self._ticket.key.job

    @property
    def number(self) -> int:
        """The number of the attempt, from 1. The job and this number are unique for ever: use them
        as a fencing token in external writes."""
        return self._ticket.key.attempt

    @property
    def type(self) -> str:
        """The job's type."""
        return self.spec.type

    @property
    def tenant(self) -> str:
        """The job's tenant."""
        return self.spec.tenant

    @property
    def labels(self) -> Mapping[str, str]:
        """The job's labels."""
        return self.spec.labels

    @property
    def spec(self) -> job_pb2.Spec:
        """The complete specification, as a protobuf message."""
        return self._ticket.spec

    @property
    def payload(self) -> bytes:
        """The job's payload."""
        return self.spec.payload

    def json(self) -> Any:  # noqa: ANN401
        """The payload, parsed as JSON. `None` if it is empty."""
        return decode(self.payload)

    @property
    def n_failures(self) -> int:
        """Earlier attempts that failed."""
        return self._ticket.n_failures

    @property
    def resource(self) -> str:
        """The exclusive lock that it holds. Empty if the job asked for none."""
        return self._ticket.resource

    def progress(self, fraction: float, note: str = "", *, stage: str = "") -> None:
        """Reports progress, from 0 to 1, with a note and the name of the current step. The worker
        sends at most one report a second, and always the last. Raises `Stopped` if the attempt
        should stop."""
        self.check()
        fraction = 0.0 if math.isnan(fraction) else min(max(fraction, 0.0), 1.0)
        said = job_pb2.Progress(fraction=fraction, note=clean(note, ""), stage=clean(stage, ""))
        self._ticket.says_progress(said)

    def log(self, text: str | bytes, stream: str = "out") -> None:
        """Sends output, on `out` or `err`. If there is no room, the output is dropped, and a line
        says so."""
        self._ticket.says(_STREAMS[stream], text.encode() if isinstance(text, str) else text)

    @property
    def cancelled(self) -> bool:
        """Whether it should stop, for any reason."""
        return self._ticket.stops.asked.is_set()

    @property
    def stop_reason(self) -> StopReason | None:
        """The reason why it should stop. `None` while it should not."""
        return self._ticket.stops.reason

    def check(self) -> None:
        """Raises `Stopped` if it should stop."""
        reason = self._ticket.stops.reason
        if reason is not None:
            raise Stopped(reason, self._ticket.stops.text)

    def sleep(self, seconds: float) -> None:
        """Sleeps, for handlers that are plain functions. Raises `Stopped` if it should stop."""
        self._ticket.stops.asked.wait(seconds)
        self.check()

    def __repr__(self) -> str:
        return f"Attempt({self.id}, {self.number}, type={self.type!r})"
