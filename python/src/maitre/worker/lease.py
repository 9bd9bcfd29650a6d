"""How long the worker may believe that its attempts are its own.

**Invariant:** the time counts from when the acknowledged heartbeat was *sent*, by our own clock:
the server cannot have counted from an earlier moment, whatever the network did since.
"""

from __future__ import annotations

from collections import OrderedDict

# The part of a lease after which the worker stops by itself, so that two clocks may differ.
SHARE = 0.9
# Heartbeats without an answer that are remembered. Older ones could prolong nothing.
SENT_MAX = 1_024


class Lease:
    """The lease of one worker, over all its sessions. Moments are seconds of a clock that never
    goes back."""

    def __init__(self) -> None:
        self._length = 0.0
        self._sent: OrderedDict[int, float] = OrderedDict()
        # `None` before the first welcome.
        self.over_at: float | None = None

    def welcome(self, sent_at: float, length: float) -> None:
        """The server answered the hello that was sent then."""
        self._length = length
        self._sent.clear()
        self._prolong(sent_at)

    def sent(self, sequence: int, at: float) -> None:
        """A heartbeat is about to be sent."""
        if len(self._sent) >= SENT_MAX:
            self._sent.popitem(last=False)
        self._sent[sequence] = at

    def acknowledged(self, sequence: int) -> bool:
        """The server has a heartbeat. `False` if it was none of this session's."""
        if sequence not in self._sent:
            return False
        while True:
            older, at = self._sent.popitem(last=False)
            if older == sequence:
                self._prolong(at)
                return True

    def is_over(self, now: float) -> bool:
        """Whether attempts may no longer be believed to be ours."""
        return self.over_at is not None and self.over_at <= now

    def _prolong(self, sent_at: float) -> None:
        at = sent_at + self._length * SHARE
        if self.over_at is None or self.over_at < at:
            self.over_at = at
