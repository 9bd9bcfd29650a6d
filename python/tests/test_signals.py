"""Webhooks and metrics, with independent readers."""

from __future__ import annotations

import json
import queue
import re
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from maitre import Attempt, Worker
from tests.site import PATIENCE, Site, site, until

WEBHOOKS = f"""
webhooks = true
webhook_private = true
webhook_secret = "{"0123456789abcdef" * 2}"
"""
METRICS = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


class Ear(BaseHTTPRequestHandler):
    """A receiver of webhooks that records them."""

    heard: queue.Queue[dict[str, object]]

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.heard.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Writes no log."""


@contextmanager
def ear(vouches: trustme.CA, host: str) -> Iterator[tuple[str, queue.Queue[dict[str, object]]]]:
    """The URL of a receiver, and its records."""
    heard: queue.Queue[dict[str, object]] = queue.Queue()
    server = HTTPServer(("127.0.0.1", 0), type("Own", (Ear,), {"heard": heard}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    vouches.issue_cert(host).configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    # A client that does not trust the certificate disconnects during the handshake, which is
    # expected.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://{host}:{server.server_port}/done", heard
    finally:
        server.shutdown()
        server.server_close()


def families(text: str) -> Iterator[Metric]:
    return text_string_to_metric_families(text)  # type: ignore[no-untyped-call, no-any-return]


def metrics(here: Site) -> dict[str, Metric]:
    """All metrics by name, parsed by a strict reader."""
    with urllib.request.urlopen(f"http://{here.address}/metrics", timeout=PATIENCE) as page:
        assert page.headers["content-type"].startswith("application/openmetrics-text")
        text = page.read().decode()
    return {family.name: family for family in families(text)}


def count(here: Site, name: str, **labels: str) -> float:
    samples = metrics(here)[name].samples
    return sum(one.value for one in samples if one.labels == labels)


def call_off(here: Site, webhook: str) -> str:
    """A job with a webhook that is cancelled at once."""
    said = here.run("submit", "--server", here.address, "--webhook", webhook, "--", "true")
    job = said.split()[-1]
    here.run("cancel", "--server", here.address, job)
    return job


def test_webhook_verifies_the_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, stranger = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    # This variable names the certificates of the system, as for most programs.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with (
        site(tmp_path, settings=WEBHOOKS) as here,
        # After an unreachable host there is a pause for that host, so these are two hosts.
        ear(stranger, "127.0.0.1") as (wrong, nothing),
        ear(ca, "localhost") as (right, heard),
    ):
        call_off(here, wrong)
        until("it is not told", lambda: count(here, "maitre_webhooks", outcome="failed"))
        job = call_off(here, right)
        told = heard.get(timeout=PATIENCE)
        assert told["type"] == "job.cancelled"
        assert told["data"]["job"] == int(job)  # type: ignore[index]
        until("it is told", lambda: count(here, "maitre_webhooks", outcome="delivered"))
        assert nothing.empty()


def test_metrics_match_their_documentation(here: Site) -> None:
    worker = Worker(here.address, name="w1")

    @worker.handler("a")
    def a(job: Attempt) -> None:
        """Does nothing."""

    with worker.in_background(), here.client() as client:
        client.wait(client.submit("a", tenant='odd "name"\\'), PATIENCE)
        client.submit("a", needs={"gpu": "a100"})
        until("it wants a slot", lambda: metrics(here)["maitre_slots_wanted"].samples)
        page = metrics(here)
    table = METRICS.read_text().partition("## Metrics")[2].partition("```")[0]
    written = {name.removesuffix("_total") for name in re.findall(r"`(maitre_[a-z_]+)", table)}
    assert written == set(page)
    assert all(family.documentation for family in page.values())
    waits = page["maitre_job_wait_seconds"]
    assert waits.type == "histogram"
    assert {"tenant": 'odd "name"\\', "type": "a"} in [one.labels for one in waits.samples]
    assert page["maitre_claims"].type == "counter"
