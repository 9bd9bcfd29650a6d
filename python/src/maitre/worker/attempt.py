"""What a handler is given: one try of one job."""

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
    """How a type is configured; empty if nobody described it."""

    # What operators configure.
    admin: Mapping[str, Any] = field(default_factory=dict)
    # What workers are told beside it.
    worker: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """What somebody published for all workers."""

    # Goes up with every change; 0 means that nothing was published.
    version: int = 0
    value: Any = None


class SaysProgress(Protocol):
    """Says how far a job is."""

    def __call__(self, fraction: float, note: str = "", *, stage: str = "") -> None:
        """From 0 to 1, in words, and which of its steps it is at, by name."""


class Attempt:
    """One try of one job, as its handler sees it. May be used from any thread."""

    def __init__(self, ticket: Ticket, configuration: Configuration, published: Published) -> None:
        self._ticket = ticket
        self.configuration = configuration
        self.published = published

    @property
    def id(self) -> int:
        """The job."""
        return self._ticket.key.job

    @property
    def number(self) -> int:
        """Which attempt at the job this is, from 1. Together with the job it is unique for ever:
        use the two as a fencing token in what you write to."""
        return self._ticket.key.attempt

    @property
    def type(self) -> str:
        """The job's type."""
        return self.spec.type

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.spec.tenant

    @property
    def labels(self) -> Mapping[str, str]:
        """The job's labels."""
        return self.spec.labels

    @property
    def spec(self) -> job_pb2.Spec:
        """What was asked for, whole, in the words of the wire."""
        return self._ticket.spec

    @property
    def payload(self) -> bytes:
        """What to do: the bytes that the submitter gave."""
        return self.spec.payload

    def json(self) -> Any:  # noqa: ANN401
        """What to do, read as JSON; `None` if there is nothing."""
        return decode(self.payload)

    @property
    def n_failures(self) -> int:
        """Earlier attempts that failed."""
        return self._ticket.n_failures

    @property
    def resource(self) -> str:
        """The named resource that it holds; empty if it asked for none."""
        return self._ticket.resource

    def progress(self, fraction: float, note: str = "", *, stage: str = "") -> None:
        """Says how far it is: from 0 to 1, in words, and which of its steps it is at, by name. At
        most one a second is sent, and always the last. Raises `Stopped` if the attempt is asked to
        stop."""
        self.check()
        fraction = 0.0 if math.isnan(fraction) else min(max(fraction, 0.0), 1.0)
        said = job_pb2.Progress(fraction=fraction, note=clean(note, ""), stage=clean(stage, ""))
        self._ticket.says_progress(said)

    def log(self, text: str | bytes, stream: str = "out") -> None:
        """Passes on output, on `out` or `err`. What there is no room for is left out, and a line
        says so."""
        self._ticket.says(_STREAMS[stream], text.encode() if isinstance(text, str) else text)

    @property
    def cancelled(self) -> bool:
        """Whether it is asked to stop, for whatever reason."""
        return self._ticket.stops.asked.is_set()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it is asked to stop; `None` while it is not."""
        return self._ticket.stops.reason

    def check(self) -> None:
        """Raises `Stopped` if it is asked to stop."""
        reason = self._ticket.stops.reason
        if reason is not None:
            raise Stopped(reason, self._ticket.stops.text)

    def sleep(self, seconds: float) -> None:
        """Waits, for handlers that are plain functions; raises `Stopped` when asked to stop."""
        self._ticket.stops.asked.wait(seconds)
        self.check()

    def __repr__(self) -> str:
        return f"Attempt({self.id}, {self.number}, type={self.type!r})"
