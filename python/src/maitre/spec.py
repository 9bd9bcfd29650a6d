"""Job specifications."""

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

# Bytes are sent unchanged, other values as JSON. `None` is empty.
Payload: TypeAlias = Any
# A duration: seconds, or a `timedelta`.
Length: TypeAlias = "float | timedelta"
JobLike: TypeAlias = "int | Submitted | Job"


@dataclass(frozen=True)
class Retry:
    """The retries of a job."""

    # Attempts that may fail or time out. The last of them is final.
    attempts_max: int
    # The wait after the first failure, which doubles with each further one.
    backoff: Length = 1.0
    backoff_max: Length = 60.0


class Options(TypedDict, total=False):
    """Options of a job besides its type and payload. All have defaults."""

    tenant: str
    """Its tenant. The default is `default`."""
    pool: str
    """Its pool."""
    needs: Mapping[str, str | Iterable[str]]
    """Its requirements: for each key, the worker must have one of these values."""
    slots: int
    """Slots that it needs, all on one worker."""
    amounts: Mapping[str, int]
    """Amounts that it needs: `ram_mb`, `gpu`, ..."""
    priority: int
    """Higher starts sooner, from -1000 to 1000."""
    on_demand: bool
    """A person waits for the result."""
    traits: Iterable[str]
    """Facts that rules read."""
    hint: str
    """The locality label that it prefers."""
    inputs: Mapping[str, int]
    """The inputs that it reads: digests with their sizes in bytes."""
    resource: str
    """The exclusive lock that it needs: a name, or `*` for any free one of its tenant."""
    after: Iterable[JobLike]
    """Its dependencies."""
    after_indexes: Iterable[int]
    """Further dependencies: indexes in the same submission, from 0."""
    run_if_failed: bool
    """It runs even if a dependency does not succeed."""
    dedupe_key: str
    """Its tenant has at most one unfinished job of this type and key."""
    not_before: datetime
    """The earliest start."""
    start_before: datetime
    """The latest start."""
    run_timeout: Length
    """The longest run time of an attempt."""
    silence_timeout: Length
    """The longest time that an attempt may go without progress or output."""
    retry: Retry | int
    """Its retries. A number is `Retry(number)`."""
    labels: Mapping[str, str]
    """For users, and for filters."""
    estimate: Length
    """Its expected run time."""
    cost: float
    """Its expected cost."""
    history_key: str
    """Jobs with the same type, tenant and key share a history."""
    group: str
    """Jobs that belong together."""
    parent: JobLike
    """The job that submits it."""
    on_hold: bool
    """It starts on hold."""
    webhook: str
    """The URL to call when it is final, with `http` or `https`."""


class Spec:
    """A job to submit: its type, its payload and its options."""

    def __init__(self, type: str, payload: Payload = None, **options: Unpack[Options]) -> None:
        self.wire = wire.Spec(type=type, payload=encode(payload))
        for name, value in options.items():
            if value is not None:
                _set(self.wire, name, value)

    @property
    def type(self) -> str:
        """Its type, which selects workers and the meaning of the payload."""
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
    """Encodes a payload: bytes unchanged, `None` as empty, other values as JSON."""
    if value is None:
        return b""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Any:  # noqa: ANN401
    """Decodes JSON. Empty bytes are `None`."""
    return json.loads(value) if value else None


def number(job: JobLike) -> int:
    """The id of a job."""
    return job if isinstance(job, int) else job.id


def milliseconds(length: Length) -> int:
    """Converts a duration to milliseconds."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    return round(seconds * 1000)


def moment(at: datetime) -> int:
    """Converts a time to milliseconds. A time without a time zone is local, as usual in Python."""
    return round(at.timestamp() * 1000)
