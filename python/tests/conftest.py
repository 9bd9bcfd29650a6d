"""Fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from maitre import Client
from tests.site import Site, site


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """A scheduler without workers."""
    with site(tmp_path) as one:
        yield one


@pytest.fixture
def client(here: Site) -> Iterator[Client]:
    """A client of the scheduler."""
    with here.client() as one:
        yield one
