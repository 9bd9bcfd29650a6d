"""The worker: programs that run and detect jobs.

**Invariant:** an attempt whose lease may have ended is stopped, and never reported as a success.
"""

from maitre.worker.attempt import Attempt, Configuration, Published, SaysProgress
from maitre.worker.detection import Detection, Proposal
from maitre.worker.outcome import Done, Failure, PermanentFailure, TimeoutFailure
from maitre.worker.stop import Stopped, StopReason
from maitre.worker.worker import Field, VisibleIf, Worker

__all__ = [
    "Attempt",
    "Configuration",
    "Detection",
    "Done",
    "Failure",
    "Field",
    "PermanentFailure",
    "Proposal",
    "Published",
    "SaysProgress",
    "StopReason",
    "Stopped",
    "TimeoutFailure",
    "VisibleIf",
    "Worker",
]
