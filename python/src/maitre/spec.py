"""What a submitter asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from typing_extensions import Unpack

from maitre.v1 import job_pb2 as wire

if TYPE_CHECKING:
    from maitre.jobs import Job, Submitted

# Bytes go as they are, everything else as JSON; `None` is nothing.
Payload: TypeAlias = Any
# A length of time: seconds, or a `timedelta`.
Length: TypeAlias = "float | timedelta"
JobLike: TypeAlias = "int | Submitted | Job"


@dataclass(frozen=True)
class Retry:
    """How often to try."""

    # Attempts that may fail or time out; the last of them is final.
    attempts_max: int
    # The wait after the first failure; it doubles with each further one.
    backoff: Length = 1.0
    backoff_max: Length = 60.0


class Options(TypedDict, total=False):
    """What may be said about a job besides its type and payload. Absent means nothing special."""

    tenant: str
    """Whose it is; `default` if nothing is said."""
    pool: str
    """The pool it must run in."""
    needs: Mapping[str, str | Iterable[str]]
    """What it needs of a worker: for each key, any one of these values."""
    slots: int
    """Slots that it takes, all on one worker."""
    amounts: Mapping[str, int]
    """Amounts that it takes: `ram_mb`, `gpu`, ..."""
    priority: int
    """Higher is sooner, from -1000 to 1000."""
    on_demand: bool
    """A person waits for the result."""
    traits: Iterable[str]
    """Facts that rules ask about."""
    hint: str
    """The locality label that it wants."""
    inputs: Mapping[str, int]
    """What it reads: digests with their sizes in bytes."""
    resource: str
    """What it must hold alone while it runs: a name, or `*` for any free one of its tenant's."""
    after: Iterable[JobLike]
    """The jobs that it waits for."""
    after_indexes: Iterable[int]
    """Further jobs that it waits for: their places in the same submission, from 0."""
    run_if_failed: bool
    """It runs even if one of those does not succeed."""
    dedupe_key: str
    """Its tenant has at most one unfinished job of this type and key."""
    not_before: datetime
    """Not to start earlier."""
    start_before: datetime
    """Not worth starting later."""
    run_timeout: Length
    """The longest an attempt may run."""
    silence_timeout: Length
    """The longest an attempt may go without progress or output."""
    retry: Retry | int
    """How often to try; a number is `Retry(number)`."""
    labels: Mapping[str, str]
    """For people, and for filters."""
    estimate: Length
    """How long it is expected to run."""
    cost: float
    """What it is expected to cost."""
    history_key: str
    """Jobs of one type, tenant and key have one history."""
    group: str
    """Jobs that belong together."""
    parent: JobLike
    """The job on whose behalf it is submitted."""
    on_hold: bool
    """It starts out on hold."""
    webhook: str
    """Where to tell that it is over: an `http` or `https` address."""


class Spec:
    """A job to submit: its type, what to do, and what may be said about it."""

    def __init__(self, type: str, payload: Payload = None, **options: Unpack[Options]) -> None:
        self.wire = wire.Spec(type=type, payload=encode(payload))
        for name, value in options.items():
            if value is not None:
                _set(self.wire, name, value)

    @property
    def type(self) -> str:
        """Its type: who can run it, and what its payload means."""
        return self.wire.type

    def __repr__(self) -> str:
        return f"Spec({self.type!r}, {bytes(self.wire.payload)!r})"


_PLAIN = frozenset(
    [
        *("tenant", "pool", "slots", "priority", "on_demand", "hint", "resource", "group"),
        *("run_if_failed", "dedupe_key", "cost", "history_key", "on_hold", "webhook"),
    ]
)
_LENGTHS = frozenset(["run_timeout", "silence_timeout", "estimate"])
_MOMENTS = frozenset(["not_before", "start_before"])
_LISTS = frozenset(["traits", "after_indexes"])
_MAPS = frozenset(["amounts", "labels"])


def _set(spec: wire.Spec, name: str, value: Any) -> None:  # noqa: ANN401
    if name in _PLAIN:
        setattr(spec, name, value)
    elif name in _LENGTHS:
        setattr(spec, f"{name}_ms", milliseconds(value))
    elif name in _MOMENTS:
        setattr(spec, f"{name}_ms", moment(value))
    elif name in _LISTS:
        getattr(spec, name).extend(value)
    elif name in _MAPS:
        getattr(spec, name).update(value)
    elif name == "needs":
        for key, values in value.items():
            spec.needs[key].values.extend([values] if isinstance(values, str) else values)
    elif name == "inputs":
        spec.inputs.extend(wire.Input(digest=digest, bytes=n) for digest, n in value.items())
    elif name == "after":
        spec.after.extend(number(job) for job in value)
    elif name == "parent":
        spec.parent = number(value)
    elif name == "retry":
        spec.retry.CopyFrom(_retry(value))
    else:
        raise TypeError(f"a job has no `{name}`")


def _retry(retry: Retry | int) -> wire.Retry:
    retry = Retry(retry) if isinstance(retry, int) else retry
    return wire.Retry(
        attempts_max=retry.attempts_max,
        backoff_ms=milliseconds(retry.backoff),
        backoff_ms_max=milliseconds(retry.backoff_max),
    )


def encode(value: Payload) -> bytes:
    """Bytes as they are, nothing as nothing, everything else as JSON."""
    if value is None:
        return b""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Any:  # noqa: ANN401
    """What is JSON in these bytes; nothing is `None`."""
    return json.loads(value) if value else None


def number(job: JobLike) -> int:
    """The id of a job."""
    return job if isinstance(job, int) else job.id


def milliseconds(length: Length) -> int:
    """A length of time on the wire."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    return round(seconds * 1000)


def moment(at: datetime) -> int:
    """A moment on the wire. One without a time zone is local time, as everywhere in Python."""
    return round(at.timestamp() * 1000)
