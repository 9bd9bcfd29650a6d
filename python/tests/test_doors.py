"""Authentication and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from maitre import Attempt, Client, Forbidden, Unauthenticated, Unavailable, Worker, WorkerError
from maitre.door import Door
from tests.site import PATIENCE, Site, site


def test_token_allows_its_scopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Site(tmp_path, "1s", "")

    def token(*scopes: str) -> str:
        named = [word for scope in scopes for word in ("--scope", scope)]
        return before.run("token", "new", *named, "--data-dir", "data")

    token("admin")
    work, submit = token("work"), token("submit", "read")
    with site(tmp_path) as here:
        with Client(here.address) as nobody, pytest.raises(Unauthenticated) as denied:
            nobody.submit("a")
        assert denied.value.message == "a token is needed"
        assert denied.value.hint.startswith("set MAITRE_TOKEN")
        monkeypatch.setenv("MAITRE_TOKEN", submit)
        worker = Worker(here.address, name="w1", token=work)

        @worker.handler("a")
        def a(job: Attempt) -> str:
            return "done"

        with Client(here.address) as client:
            with worker.in_background():
                assert client.result(client.submit("a"), PATIENCE) == "done"
            with pytest.raises(Forbidden, match="cancel"):
                client.cancel(1)
        stranger = Worker(here.address, name="w2", token="maitre_stranger")
        stranger.handler("a")(lambda job: None)
        with pytest.raises(WorkerError, match="the token is not known") as unknown:
            stranger.run()
        assert "maitre token" in unknown.value.hint


def test_tls_verifies_the_certificate(tmp_path: Path) -> None:
    ca, stranger = trustme.CA(), trustme.CA()
    own = ca.issue_cert("localhost", "127.0.0.1")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    for pem in own.cert_chain_pems:
        pem.write_to_path(tmp_path / "cert.pem", append=True)
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    stranger.cert_pem.write_to_path(tmp_path / "stranger.pem")
    with site(tmp_path, settings='tls_cert = "cert.pem"\ntls_key = "key.pem"\n') as here:
        address = here.address.rpartition("://")[2]
        worker = Worker(address, name="w1", ca=tmp_path / "ca.pem")

        @worker.handler("a")
        def a(job: Attempt) -> str:
            return "done"

        with worker.in_background(), Client(f"https://{address}", ca=tmp_path / "ca.pem") as client:
            assert client.result(client.submit("a"), PATIENCE) == "done"
        for wrong in (tmp_path / "stranger.pem", None):
            with Client(address, ca=wrong, patience=0.1) as lost, pytest.raises(Unavailable):
                lost.get(1)


def test_an_address_is_read_as_the_command_line_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text("pem")
    monkeypatch.setenv("MAITRE_SERVER", "https://one:1/")
    monkeypatch.setenv("MAITRE_TOKEN", " secret\n")
    door = Door.at(None, None, None)
    assert (door.target, door.roots) == ("one:1", b"")
    assert door.metadata == (("authorization", "Bearer secret"),)
    assert "secret" not in repr(door)
    monkeypatch.setenv("MAITRE_CA", str(tmp_path / "ca.pem"))
    assert Door.at(None, None, None).roots == b"pem"
    # An address without a scheme means no TLS, unless trusted certificates are given.
    assert Door.at("two:2", "", None).roots is None
    assert Door.at("two:2", "", tmp_path / "ca.pem").roots == b"pem"
    with pytest.raises(ValueError, match="is not encrypted"):
        Door.at("http://two:2", "", tmp_path / "ca.pem")
