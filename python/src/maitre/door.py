"""The connection to a scheduler: its address, its token, and the waits of retries."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import grpc

ADDRESS = "127.0.0.1:7070"
# The largest message that the client accepts and sends.
MESSAGE_BYTES_MAX = 16 << 20
# The first wait before a retry, and the longest, in seconds.
FIRST = 0.1
LONGEST = 2.0

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # A connection that answers no ping for the sum of the two is closed.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # After a restart of the scheduler, a request reconnects at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Otherwise a new channel shares the connection of an old one.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True)
class Door:
    """The address of a scheduler, and the token."""

    target: str
    # Trusted certificates, as PEM. `None` means no TLS.
    roots: bytes | None
    token: str = field(repr=False)

    @classmethod
    def at(cls, address: str | None, token: str | None, ca: str | os.PathLike[str] | None) -> Door:
        """For `host:port` or a URL. The environment has the defaults."""
        address = address or os.environ.get("MAITRE_SERVER") or ADDRESS
        token = token if token is not None else os.environ.get("MAITRE_TOKEN", "")
        scheme, _, target = address.rpartition("://")
        if scheme not in ("", "http", "https") or not target:
            raise ValueError(f"`{address}` is not the address of a scheduler: host:port, or a URL")
        roots: bytes | None = None
        if ca is not None and scheme == "http":
            raise ValueError(f"`{address}` is not encrypted: with `ca`, say https://, or nothing")
        if scheme == "https":
            ca = ca or os.environ.get("MAITRE_CA") or None
            # Empty means the certificates of the system.
            roots = b""
        if ca is not None:
            roots = Path(ca).read_bytes()
        return cls(target.rstrip("/"), roots, token.strip())

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call, with the token."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def channel(self) -> grpc.Channel:
        """A channel to the scheduler, for threads."""
        if self.roots is None:
            return grpc.insecure_channel(self.target, options=_OPTIONS)
        return grpc.secure_channel(self.target, self._credentials(), options=_OPTIONS)

    def async_channel(self) -> grpc.aio.Channel:
        """A channel to the scheduler, for the running event loop."""
        if self.roots is None:
            return grpc.aio.insecure_channel(self.target, options=_OPTIONS)
        return grpc.aio.secure_channel(self.target, self._credentials(), options=_OPTIONS)

    def _credentials(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(root_certificates=self.roots or None)


class Waits:
    """Waits that double, with a random part, in seconds."""

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self.set(first, longest)
        self._next = first

    def set(self, first: float, longest: float) -> None:
        """Sets the first and the longest wait."""
        self._first = first
        self._longest = max(first, longest)
        self._next = min(max(getattr(self, "_next", first), first), self._longest)

    def reset(self) -> None:
        """After a success, the next wait is the first one again."""
        self._next = self._first

    def next(self) -> float:
        """Between a half and all of the next wait."""
        full = self._next
        self._next = min(full * 2, self._longest)
        return full * random.uniform(0.5, 1.0)
