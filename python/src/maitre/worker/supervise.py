"""The life of an attempt, from its offer to its completion."""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from maitre.v1 import worker_pb2 as wire
from maitre.worker.attempt import Attempt
from maitre.worker.cursor import Cursor
from maitre.worker.outcome import Failure, Key, Outcome, completion, lost, outcome_of
from maitre.worker.shared import LOG, Shared
from maitre.worker.stop import Stopped, StopReason, Stops, reason_of
from maitre.worker.ticket import Ticket

# The time that a handler has after its kill, in seconds.
PATIENCE = 5.0


def offered(shared: Shared, offer: wire.Offer) -> bool:
    """Accepts or refuses an offer. `False` if the server does not read answers."""
    key = Key(offer.job, offer.attempt)
    if shared.outbox.repeat(key):
        return True
    ticket = shared.roster.find(key)
    if ticket is None:
        problem = _start(shared, offer)
    else:
        # A repeated offer. If the attempt is stopped as stale, the worker does not have it any
        # more.
        problem = "it is being stopped" if ticket.stops.is_silent else ""
    if problem:
        LOG.info("attempt refused, job %d, attempt %d: %s", *key, problem)
        refuse = wire.Refuse(attempt=key.ref, reason=problem)
        return shared.outbox.answer(wire.WorkerMessage(refuse=refuse))
    return shared.outbox.answer(wire.WorkerMessage(accept=wire.Accept(attempt=key.ref)))


def stopped(shared: Shared, stop: wire.Stop) -> None:
    """The server stops an attempt."""
    key = Key(stop.attempt.job, stop.attempt.attempt)
    reason, text = reason_of(stop.reason)
    ticket = shared.roster.find(key)
    if ticket is not None:
        ticket.stops.ask(reason, text, time.monotonic() + stop.grace_ms / 1000)
    elif reason.is_silent:
        shared.outbox.forget(key)
    elif not shared.outbox.repeat(key):
        # The server would wait for the end of an attempt that the worker does not have.
        shared.outbox.complete(key, lost(key, "the worker does not have it"))


def _start(shared: Shared, offer: wire.Offer) -> str:
    """Starts an attempt, or returns the reason why not."""
    spec = offer.spec
    handles = shared.settings.handlers.get(spec.type)
    if handles is None:
        return f"unknown type `{spec.type}`"
    if shared.lease.is_over(time.monotonic()) or not shared.outbox.has_completion_room:
        return "at capacity"
    slots = max(1, spec.slots)
    problem = shared.roster.admit(spec.type, slots, handles.execute_max)
    if problem:
        return problem
    ticket = Ticket(offer, shared.outbox, shared.lock)
    ticket.result_bytes_max = shared.result_bytes_max
    ticket.cursor = Cursor(ticket.key, shared.log_bytes_max, shared.outbox)
    shared.roster.insert(ticket)
    attempt = Attempt(ticket, shared.configuration(spec.type), shared.published)

    def returned(outcome: Outcome) -> None:
        with shared.lock:
            shared.roster.release(spec.type, slots)
            _finish(shared, ticket, outcome)

    kind = _Task if inspect.iscoroutinefunction(handles.handler) else _Thread
    ticket.runs = kind(shared, ticket, _call(handles.handler, attempt), returned)
    ticket.stops.on_sooner = lambda kill_at: _stopping(shared, ticket, kill_at)
    _watch(shared, ticket)
    return ""


def _call(handler: Callable[..., Any], attempt: Attempt) -> Callable[[], Any]:
    """Calls a handler with the attempt. A handler with a second parameter also gets `progress`."""
    parameters = inspect.signature(handler).parameters.values()
    n_places = sum(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters
    )
    has_room = n_places > 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if has_room:
        return lambda: handler(attempt, attempt.progress)
    return lambda: handler(attempt)


def _watch(shared: Shared, ticket: Ticket) -> None:
    """Stops the attempt after a timeout. Each report of the attempt may move the silence
    timeout."""
    due = ticket.due()
    if due is None:
        return

    def is_due() -> None:
        with shared.lock:
            due = ticket.due()
            if ticket.has_ended or ticket.stops.reason is not None or due is None:
                return
            if due[0] > time.monotonic():
                _watch(shared, ticket)
            else:
                kill_at = time.monotonic() + shared.settings.stop_grace
                ticket.stops.ask(StopReason.TIMEOUT, due[1], kill_at)

    ticket.timers = [shared.timers.at(due[0], is_due)]


def _stopping(shared: Shared, ticket: Ticket, kill_at: float) -> None:
    """Asks the attempt to stop, kills it after the grace period, and then gives up on it."""

    def give_up() -> None:
        with shared.lock:
            failure = Failure("it did not stop when it was made to")
            _finish(shared, ticket, Outcome(None, failure))

    def kill() -> None:
        with shared.lock:
            if not ticket.has_ended and ticket.runs is not None:
                ticket.runs.kill()
                ticket.timers.append(shared.timers.at(time.monotonic() + PATIENCE, give_up))

    if not ticket.has_ended and ticket.runs is not None:
        ticket.runs.ask()
        ticket.timers.append(shared.timers.at(kill_at, kill))


def _finish(shared: Shared, ticket: Ticket, outcome: Outcome) -> None:
    """Reports the end of an attempt, unless its lease is over."""
    if ticket.has_ended:
        return
    if shared.lease.is_over(time.monotonic()):
        # After a suspension of the process, the timer may be late. The worker must not report then.
        shared.fence()
    ticket.end()
    stops = ticket.stops
    if stops.is_silent:
        shared.outbox.forget(ticket.key)
    else:
        stop = None if stops.reason is None else (stops.reason, stops.text)
        complete = completion(ticket.key, outcome, stop, ticket.result_bytes_max)
        shared.outbox.complete(ticket.key, complete)
    shared.roster.remove(ticket.key)
    shared.changed.notify_all()


class _Thread:
    """A handler that is a plain function, on a thread of its own."""

    def __init__(
        self,
        shared: Shared,
        ticket: Ticket,
        call: Callable[[], Any],
        returned: Callable[[Outcome], None],
    ) -> None:
        self._ticket = ticket
        self._is_in_handler = True
        self._call = call
        self._returned = returned
        name = f"maitre-job-{ticket.key.job}"
        # A daemon thread does not prevent the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Does nothing: the handler notices the stop when it reports progress, checks, or
        sleeps."""

    def kill(self) -> None:
        """Raises `Stopped` in the handler at its next Python instruction. A blocking call outside
        of Python cannot be stopped. Its slots are in use until it returns."""
        with self._ticket.guard:
            if self._is_in_handler and self._thread.ident is not None:
                _raise_in(self._thread.ident, _stopped(self._ticket.stops))

    def _run(self) -> None:
        outcome = Outcome(None, Failure("it was killed"))
        try:
            outcome = outcome_of(self._call)
        finally:
            try:
                with self._ticket.guard:
                    self._is_in_handler = False
                    _raise_in(threading.get_ident(), None)
            finally:
                self._returned(outcome)


def _stopped(stops: Stops) -> type[Stopped]:
    """A thread can raise a class, and not an instance."""

    class StoppedNow(Stopped):
        def __init__(self) -> None:
            super().__init__(stops.reason or StopReason.CANCELLED, stops.text)

    return StoppedNow


def _raise_in(ident: int, kind: type[BaseException] | None) -> None:
    """Raises an exception in a thread. `None` cancels one that was not raised yet."""
    error = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), error)


class _Task:
    """A handler that is a coroutine, on the loop of the worker's start."""

    def __init__(
        self,
        shared: Shared,
        ticket: Ticket,
        call: Callable[[], Any],
        returned: Callable[[Outcome], None],
    ) -> None:
        self._loop = shared.loop
        self._call = call
        self._returned = returned
        self._task: asyncio.Task[Any] | None = None
        self._loop.call_soon_threadsafe(self._start)

    def ask(self) -> None:
        """Cancels it. It has the grace period to clean up."""
        self._loop.call_soon_threadsafe(self._cancel)

    def kill(self) -> None:
        """Cancels it again."""
        self._loop.call_soon_threadsafe(self._cancel)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._call())
        self._task.add_done_callback(lambda task: self._returned(outcome_of(task.result)))

    def _cancel(self) -> None:
        # The task is created on the loop after the start.
        if self._task is not None:
            self._task.cancel()
