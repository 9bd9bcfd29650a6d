"""The worker: its settings and its run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any, Literal, TypeVar

from typing_extensions import Required, TypedDict

from maitre.door import Door
from maitre.v1 import worker_pb2 as wire
from maitre.worker.core import Core
from maitre.worker.session import PROTOCOL, PROTOCOL_OLDEST
from maitre.worker.shared import Detects, Handles, Settings

# The time for which attempts may continue when the worker leaves, and the grace period of an
# attempt that the worker stops, in seconds.
LEAVE_GRACE = 30.0
STOP_GRACE = 10.0

Function = TypeVar("Function", bound=Callable[..., Any])


# A condition: a different field has this value.
VisibleIf = TypedDict("VisibleIf", {"field": str, "is": Any})


class Field(TypedDict, total=False):
    """A configuration field of a type."""

    name: Required[str]
    # A duration has its unit: `17m`.
    kind: Required[Literal["flag", "whole", "number", "text", "length", "choice"]]
    default: Any
    # The range: of a number, of a duration in seconds, or of a text in bytes.
    min: float
    max: float
    choices: list[str]
    help: str
    # The section of the form that shows it.
    section: str
    # The condition without which it has no effect.
    visible_if: VisibleIf


class Worker:
    """Runs jobs for a scheduler with functions.

        worker = Worker("127.0.0.1:7070", name="images-1", slots=4)

        @worker.handler("resize")
        def resize(job, progress):
            ...

        worker.run()

    A worker keeps its attempts by a lease: if the scheduler acknowledges no heartbeat for too long,
    the worker stops its attempts, and never reports them as succeeded. `name` must be unique and
    the same after every restart. The default is the name of the machine.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        name: str | None = None,
        slots: int = 1,
        pool: str = "",
        has: Mapping[str, str | Iterable[str]] | None = None,
        amounts: Mapping[str, int] | None = None,
        rank: int = 0,
        hints: Iterable[str] = (),
        software: str | None = None,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        leave_grace: float = LEAVE_GRACE,
        stop_grace: float = STOP_GRACE,
    ) -> None:
        self._door = Door.at(address, token, ca)
        self._hello = wire.Hello(
            worker=name or socket.gethostname(),
            protocol=PROTOCOL,
            protocol_oldest=PROTOCOL_OLDEST,
            software=software or f"maitre-python/{metadata.version('maitre')}",
            slots=slots,
            pool=pool,
            amounts=amounts or {},
            rank=rank,
            hints=hints,
        )
        for key, values in (has or {}).items():
            listed = [values] if isinstance(values, str) else values
            self._hello.has[key].values.extend(listed)
        self._graces = (leave_grace, stop_grace)
        self._handlers: dict[str, Handles] = {}
        self._detectors: dict[str, Detects] = {}
        self._descriptors: dict[str, dict[str, Any]] = {}
        self._core: Core | None = None
        self._is_told_to_leave = False
        self._lock = threading.Lock()

    def handler(self, type: str, *, execute_max: int = 0) -> Callable[[Function], Function]:
        """The function runs jobs of this type, at most `execute_max` at once. 0 means the number of
        slots.

        It gets the attempt and, if it takes a second argument, a function that reports progress.
        Its return value is the job's result. After an exception the job is retried, unless it is a
        `PermanentFailure`. A plain function runs on a thread of its own, a coroutine on the loop of
        the worker's start.
        """

        def add(function: Function) -> Function:
            self._handlers[type] = Handles(execute_max, function)
            return function

        return add

    def detector(self, type: str, *, detect_max: int = 1) -> Callable[[Function], Function]:
        """The function detects work of this type on request, at most `detect_max` times at once. It
        gets the detection, and yields a `Proposal` for each unit of work."""

        def add(function: Function) -> Function:
            self._detectors[type] = Detects(max(1, detect_max), function)
            return function

        return add

    def describe(
        self,
        type: str,
        *,
        display_name: str = "",
        description: str = "",
        admin: Iterable[Field] = (),
        worker: Iterable[Field] = (),
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        """Sets the descriptor of a type: the fields that operators and workers configure, and a
        suggested policy."""
        self._descriptors[type] = {
            "display_name": display_name,
            "description": description,
            "admin": [dict(field) for field in admin],
            "worker": [dict(field) for field in worker],
            "policy": dict(policy or {}),
        }

    def run(self) -> None:
        """Works until SIGTERM, Ctrl-C or a shutdown by the scheduler. It then takes no more jobs,
        lets attempts finish within the grace period, gives the rest back, and says goodbye. A
        second signal stops the remaining attempts at once."""
        asyncio.run(self._run_with_signals())

    async def run_async(self) -> None:
        """The same, on the running loop, without signals. `leave` ends it. A cancellation kills all
        attempts."""
        core = Core(self._settings(), asyncio.get_running_loop())
        with self._lock:
            self._core = core
            is_told = self._is_told_to_leave
        if is_told:
            self.leave()
        try:
            await core.run()
        finally:
            self._core = None

    @contextlib.contextmanager
    def in_background(self) -> Iterator[Worker]:
        """Works on a thread of its own until the end of the block, and then leaves."""
        errors: list[BaseException] = []

        def work() -> None:
            try:
                asyncio.run(self.run_async())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, name="maitre-background", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.leave()
            thread.join()
            self._is_told_to_leave = False
        if errors:
            raise errors[0]

    def leave(self) -> None:
        """Takes no more jobs, and leaves when its attempts have ended or the grace period is over.
        Any thread may call it."""
        self._depart(self._graces[0], self._graces[1])

    def leave_now(self, grace: float = 0.0) -> None:
        """Stops its attempts within `grace` seconds, and leaves."""
        self._depart(0.0, grace)

    def unwell(self) -> None:
        """Marks the worker as unhealthy: it gets no jobs."""
        self._says("is_unwell", True)

    def well(self) -> None:
        """Marks the worker as healthy."""
        self._says("is_unwell", False)

    def hints(self, hints: Iterable[str]) -> None:
        """Replaces its locality labels."""
        self._says("hints", list(hints))

    def publish(self, value: Mapping[str, Any]) -> None:
        """Publishes a context for all workers. The scheduler accepts it only from the worker that
        the operator selected."""
        self._says("to_publish", json.dumps(value))

    def _says(self, name: str, value: object) -> None:
        core = self._core
        if core is None:
            raise RuntimeError("the worker does not run")
        with core.shared.lock:
            setattr(core.shared, name, value)

    def _depart(self, after: float, grace: float) -> None:
        with self._lock:
            self._is_told_to_leave = True
            core = self._core
        if core is not None:
            core.shared.leave(time.monotonic() + after, grace)

    async def _run_with_signals(self) -> None:
        loop = asyncio.get_running_loop()
        n_signals = 0

        def told() -> None:
            nonlocal n_signals
            n_signals += 1
            self.leave() if n_signals == 1 else self.leave_now()

        for number in (signal.SIGTERM, signal.SIGINT):
            # Only the main thread receives signals.
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(number, told)
        await self.run_async()

    def _settings(self) -> Settings:
        names = sorted({*self._handlers, *self._detectors})
        if not names:
            # For the server, a hello without types means any type.
            raise ValueError("the worker has no handler and no detector: there is nothing to do")
        hello = wire.Hello()
        hello.CopyFrom(self._hello)
        hello.instance = uuid.uuid4().hex
        hello.types.extend(self._type(name) for name in names)
        return Settings(
            door=self._door,
            hello=hello,
            handlers=dict(self._handlers),
            detectors=dict(self._detectors),
            descriptors={name: json.dumps(one) for name, one in self._descriptors.items()},
            leave_grace=self._graces[0],
            stop_grace=self._graces[1],
        )

    def _type(self, name: str) -> wire.WorkerType:
        """A type that it runs or detects, for the hello."""
        handles, detects = self._handlers.get(name), self._detectors.get(name)
        descriptor = self._descriptors.get(name, {})
        return wire.WorkerType(
            name=name,
            execute_max=handles.execute_max if handles else 0,
            detect_max=detects.detect_max if detects else 0,
            detects_only=handles is None,
            display_name=descriptor.get("display_name", ""),
            description=descriptor.get("description", ""),
        )
