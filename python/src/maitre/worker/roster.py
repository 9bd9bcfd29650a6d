"""The attempts of a worker, and the slots that they use."""

from __future__ import annotations

from collections import Counter

from maitre.v1 import worker_pb2 as wire
from maitre.worker.outcome import Key
from maitre.worker.stop import StopReason
from maitre.worker.ticket import Ticket

# The limit of progress in a heartbeat. Attempts also report it themselves.
PROGRESS_BYTES_MAX = 1 << 20


class Roster:
    """The attempts of a worker. The caller holds the worker's lock."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._tickets: dict[Key, Ticket] = {}
        self._n_by_type: Counter[str] = Counter()
        self.slots_used = 0
        self.is_leaving = False

    def admit(self, type: str, slots: int, type_max: int) -> str:
        """Takes room for one attempt, or returns the reason why there is none. `type_max` 0 means
        the number of slots."""
        if self.is_leaving:
            return "draining"
        is_full = self.slots_used + slots > self._slots
        if is_full or 0 < type_max <= self._n_by_type[type]:
            return "at capacity"
        self.slots_used += slots
        self._n_by_type[type] += 1
        return ""

    def release(self, type: str, slots: int) -> None:
        """Releases the room of one attempt after its handler returned."""
        self.slots_used -= slots
        self._n_by_type[type] -= 1

    def insert(self, ticket: Ticket) -> None:
        """Adds an attempt."""
        self._tickets[ticket.key] = ticket

    def remove(self, key: Key) -> None:
        """Removes an attempt."""
        self._tickets.pop(key, None)

    def find(self, key: Key) -> Ticket | None:
        """The attempt, if it is here."""
        return self._tickets.get(key)

    @property
    def is_empty(self) -> bool:
        """Whether there is no attempt."""
        return not self._tickets

    @property
    def keys(self) -> list[Key]:
        """The attempts that the worker may report."""
        return [key for key, ticket in self._tickets.items() if not ticket.stops.is_silent]

    @property
    def progress(self) -> list[wire.ProgressReport]:
        """The progress of attempts that reported any, up to a size."""
        reports: list[wire.ProgressReport] = []
        n_bytes = 0
        for ticket in self._tickets.values():
            if ticket.progress is None:
                continue
            report = wire.ProgressReport(attempt=ticket.key.ref, progress=ticket.progress)
            n_bytes += report.ByteSize()
            if n_bytes > PROGRESS_BYTES_MAX:
                break
            reports.append(report)
        return reports

    def stop_all(self, reason: StopReason, text: str, kill_at: float) -> int:
        """Asks all attempts to stop, and returns their number."""
        tickets = list(self._tickets.values())
        for ticket in tickets:
            ticket.stops.ask(reason, text, kill_at)
        return len(tickets)
