"""One connection to a server, from the hello to the goodbye."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import grpc

from maitre.door import Waits
from maitre.errors import WorkerError, split_hint
from maitre.v1 import worker_pb2 as wire
from maitre.v1 import worker_pb2_grpc
from maitre.worker.attempt import Published
from maitre.worker.detection import asked
from maitre.worker.outcome import RESULT_BYTES_MAX, Key, key_of, lost
from maitre.worker.shared import LOG, Shared
from maitre.worker.stop import StopReason
from maitre.worker.supervise import offered, stopped

# The supported versions of the protocol.
PROTOCOL = 1
PROTOCOL_OLDEST = 1
# Durations are in seconds. This is the timeout from the start of a connection to the welcome.
WELCOME_TIMEOUT = 10.0
# Defaults for a welcome without these fields.
HEARTBEAT = 5.0
LEASE = 30.0
RECONNECT, RECONNECT_MAX = 0.2, 10.0
# The shortest interval of heartbeats, even if the server sets a shorter one.
HEARTBEAT_MIN = 0.01
# A completion is sent again after this many heartbeats, and not before this time.
REPEAT_HEARTBEATS = 3
REPEAT_MIN = 5.0

# With these codes, the next hello would get the same answer.
_MEANT = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ALREADY_EXISTS,
)
# The answer may also come from a proxy that cannot reach the server for now. But a worker that was
# never welcomed has probably a wrong address.
_WRONG_DOOR = (
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
)


@dataclass(frozen=True)
class Broken:
    """A session ended, and a retry may succeed."""

    why: str


@dataclass(frozen=True)
class Gone:
    """The worker said goodbye."""


End = Broken | Gone


class Session:
    """One session. Raises `WorkerError` if a retry cannot succeed."""

    def __init__(self, shared: Shared, waits: Waits) -> None:
        self._shared = shared
        self._waits = waits
        self._is_welcome = False
        self._is_closed = False
        self._is_cut = False
        self._hello_at = 0.0
        self._said: list[Key] = []
        self._every = HEARTBEAT

    def run(self) -> End:
        """Runs until it ends."""
        shared = self._shared
        channel = shared.settings.door.channel()
        try:
            stub = worker_pb2_grpc.WorkerStub(channel)
            hello = self._hello()
            metadata = shared.settings.door.metadata
            call = stub.Session(self._batches(hello), metadata=metadata)
            shared.cut = lambda: self._cut(call)
            shared.timers.at(self._hello_at + WELCOME_TIMEOUT, lambda: self._welcome_due(call))
            return self._read(call)
        finally:
            with shared.lock:
                self._is_closed = True
                shared.cut = lambda: None
                shared.outbox.disconnected()
                # The server that requested them is disconnected.
                shared.detections.stop_all()
            channel.close()

    def _hello(self) -> wire.Hello:
        with self._shared.lock:
            self._said = self._shared.attempts()
        self._hello_at = time.monotonic()
        hello = wire.Hello()
        hello.CopyFrom(self._shared.settings.hello)
        hello.attempts.extend(key.ref for key in self._said)
        return hello

    def _cut(self, call: grpc.Call) -> None:
        self._is_cut = True
        call.cancel()

    def _welcome_due(self, call: grpc.Call) -> None:
        if not self._is_welcome and not self._is_closed:
            call.cancel()

    def _batches(self, hello: wire.Hello) -> Iterator[wire.WorkerBatch]:
        """All waiting messages as one batch, in a loop. gRPC asks for the next batch when the last
        one is sent, so messages that leave the outbox are sent."""
        yield wire.WorkerBatch(messages=[wire.WorkerMessage(hello=hello)])
        shared = self._shared
        while True:
            with shared.changed:
                wait: float | None = None
                messages: list[wire.WorkerMessage] = []
                is_last = False
                while not self._is_closed:
                    if self._is_welcome:
                        now = time.monotonic()
                        parcel = shared.outbox.next(now)
                        messages, is_last = parcel.messages, parcel.is_last
                        wait = None if parcel.next_at is None else parcel.next_at - now
                    if messages:
                        break
                    shared.changed.wait(wait)
                # There is room again.
                shared.changed.notify_all()
            if not messages:
                return
            yield wire.WorkerBatch(messages=messages)
            if is_last:
                return

    def _read(self, call: Iterator[wire.ServerBatch]) -> End:
        try:
            for batch in call:
                with self._shared.lock:
                    for message in batch.messages:
                        if not self._heard(message):
                            return Broken("the server does not read our answers")
            if self._shared.outbox.is_goodbye_sent:
                return Gone()
            return Broken("the server hung up")
        except grpc.RpcError as error:
            return self._ended(error)

    def _ended(self, error: grpc.RpcError) -> End:
        """The consequence of an error of the server."""
        if self._shared.outbox.is_goodbye_sent:
            return Gone()
        if self._is_cut:
            return Broken("no heartbeat is acknowledged")
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.CANCELLED and not self._is_welcome:
            return Broken("the server did not say welcome in time")
        is_wrong_door = code in _WRONG_DOOR and not self._shared.was_welcomed
        if code in _MEANT or is_wrong_door:
            message, hint = split_hint(details)
            raise WorkerError(f"the server does not take this worker: {message}", hint)
        return Broken(f"{code.name}: {details}")

    def _heard(self, message: wire.ServerMessage) -> bool:
        """Handles a message of the server. `False` if the session cannot continue."""
        shared = self._shared
        kind = message.WhichOneof("message")
        if not self._is_welcome and kind != "welcome":
            LOG.warning("server sent no welcome first")
            return False
        match kind:
            case "welcome":
                self._welcomed(message.welcome)
            case "heartbeat_ack" | "log_ack" | "complete_ack":
                self._acknowledged(message, kind)
            case "offer":
                return offered(shared, message.offer)
            case "stop":
                stopped(shared, message.stop)
            case "drain":
                # Without an exit, the server alone stops its offers.
                if message.drain.then_exit:
                    shared.leave(None, 0)
            case "shutdown":
                shared.leave(time.monotonic(), message.shutdown.grace_ms / 1000)
            case _:
                return self._heard_of_types(message, kind)
        return True

    def _acknowledged(self, message: wire.ServerMessage, kind: str) -> None:
        """Handles an acknowledgement: the message need not be sent again."""
        shared = self._shared
        match kind:
            case "heartbeat_ack":
                if shared.lease.acknowledged(message.heartbeat_ack.sequence):
                    shared.watch_lease()
                    # An acknowledgement proves that the server works. A connection alone does not.
                    self._waits.reset()
            case "log_ack":
                shared.outbox.logs_acknowledged(message.log_ack.number)
            case "complete_ack":
                key = key_of(message.complete_ack.attempt)
                if message.complete_ack.stale:
                    LOG.warning("completion rejected as stale, job %d, attempt %d", *key)
                shared.outbox.forget(key)

    def _heard_of_types(self, message: wire.ServerMessage, kind: str | None) -> bool:
        shared = self._shared
        match kind:
            case "configured":
                shared.configured(message.configured)
            case "context":
                context = message.context
                shared.published = Published(context.version, json.loads(context.json or "null"))
            case "describe":
                type = message.describe.type
                descriptor = shared.settings.descriptors.get(type, "{}")
                described = wire.Described(type=type, json=descriptor)
                return shared.outbox.answer(wire.WorkerMessage(described=described))
            case "detect":
                asked(shared, message.detect)
            case "stop_detection":
                shared.detections.stop(message.stop_detection.run)
            case _:
                LOG.debug("server sent an unknown message")
        return True

    def _welcomed(self, welcome: wire.Welcome) -> None:
        """Applies a welcome."""
        if self._is_welcome:
            LOG.warning("server sent a second welcome")
            return
        if not PROTOCOL_OLDEST <= welcome.protocol <= PROTOCOL:
            raise WorkerError(
                f"the server speaks version {welcome.protocol} of the worker's protocol, this "
                f"worker versions {PROTOCOL_OLDEST} to {PROTOCOL}",
                "update the older one of the two",
            )
        shared = self._shared
        LOG.info("worker session opened, generation %d", welcome.generation)
        shared.was_welcomed = self._is_welcome = True
        shared.result_bytes_max = min(
            welcome.result_bytes_max or RESULT_BYTES_MAX, RESULT_BYTES_MAX
        )
        shared.log_bytes_max = welcome.log_bytes_max
        shared.lease.welcome(self._hello_at, welcome.lease_ms / 1000 or LEASE)
        shared.watch_lease()
        self._forget_stale([key_of(ref) for ref in welcome.stale])
        if shared.roster.is_leaving:
            draining = wire.WorkerMessage(draining=wire.Draining(draining=True))
            shared.outbox.answer(draining)
        shared.outbox.connected()
        self._waits.set(
            welcome.reconnect_ms / 1000 or RECONNECT,
            welcome.reconnect_ms_max / 1000 or RECONNECT_MAX,
        )
        self._every = max(welcome.heartbeat_ms / 1000 or HEARTBEAT, HEARTBEAT_MIN)
        shared.timers.at(time.monotonic(), self._beat)

    def _forget_stale(self, stale: list[Key]) -> None:
        shared = self._shared
        for key in stale:
            shared.outbox.forget(key)
            ticket = shared.roster.find(key)
            if ticket is not None:
                ticket.stops.ask(StopReason.STALE, "it was given to another", time.monotonic())
        # The server still expects attempts whose lease ended after the hello.
        here = {*shared.attempts(), *stale}
        for key in self._said:
            if key not in here:
                shared.outbox.complete(key, lost(key, "its lease was over"))

    def _beat(self) -> None:
        """Sends a heartbeat, and schedules the next."""
        shared = self._shared
        with shared.lock:
            if self._is_closed:
                return
            now = time.monotonic()
            shared.timers.at(now + self._every, self._beat)
            age = max(self._every * REPEAT_HEARTBEATS, REPEAT_MIN)
            shared.outbox.repeat_older_than(age, now)
            if shared.to_publish is not None:
                publish = wire.Publish(json=shared.to_publish)
                shared.to_publish = None
                shared.outbox.page(wire.WorkerMessage(publish=publish))
            shared.sequence += 1
            shared.lease.sent(shared.sequence, now)
            shared.outbox.heartbeat(self._heartbeat())

    def _heartbeat(self) -> wire.Heartbeat:
        shared = self._shared
        hello = shared.settings.hello
        hints = None if shared.hints is None else wire.Hints(hints=shared.hints)
        return wire.Heartbeat(
            sequence=shared.sequence,
            slots_used=shared.roster.slots_used,
            slots_total=hello.slots,
            detections_used=len(shared.detections.running),
            detections_total=sum(one.detect_max for one in hello.types),
            # It goes before the completions of its batch: an ended attempt that it does not name is
            # lost.
            attempts=[key.ref for key in shared.attempts()],
            unhealthy=shared.is_unwell,
            hints=hints,
            progress=shared.roster.progress,
        )
