"""The time for which the worker may assume that its attempts are current.

**Invariant:** the time counts from when the acknowledged heartbeat was *sent*, by the worker's
clock. The server cannot have counted from an earlier time, even with delays of the network.
"""

from __future__ import annotations

from collections import OrderedDict

# The part of a lease after which the worker stops its attempts, so that clocks may differ.
SHARE = 0.9
# Heartbeats without an answer that are remembered. Older ones would not prolong the lease.
SENT_MAX = 1_024


class Lease:
    """The lease of one worker, over all its sessions. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._length = 0.0
        self._sent: OrderedDict[int, float] = OrderedDict()
        # `None` before the first welcome.
        self.over_at: float | None = None

    def welcome(self, sent_at: float, length: float) -> None:
        """The server answered a hello that was sent at this time."""
        self._length = length
        self._sent.clear()
        self._prolong(sent_at)

    def sent(self, sequence: int, at: float) -> None:
        """A heartbeat is about to be sent."""
        if len(self._sent) >= SENT_MAX:
            self._sent.popitem(last=False)
        self._sent[sequence] = at

    def acknowledged(self, sequence: int) -> bool:
        """The server acknowledged a heartbeat. `False` if it is not of this session."""
        if sequence not in self._sent:
            return False
        while True:
            older, at = self._sent.popitem(last=False)
            if older == sequence:
                self._prolong(at)
                return True

    def is_over(self, now: float) -> bool:
        """Whether the lease has run out."""
        return self.over_at is not None and self.over_at <= now

    def _prolong(self, sent_at: float) -> None:
        at = sent_at + self._length * SHARE
        if self.over_at is None or self.over_at < at:
            self.over_at = at
