"""Fixtures: one server and one browser for the whole test run, a fresh page per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .jupyter import FRONT_ENDS, Notebook, Server, open_notebook, running_chromium, running_server

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("browser")
    # Last: Playwright keeps an event loop on this thread from its first test on, beside which no other can be run
    items.sort(key=lambda item: _HERE in item.path.parents)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Jupyter server with JupyterLab and Notebook 7."""
    with running_server(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with running_chromium() as running:
        yield running


@pytest.fixture(params=FRONT_ENDS)
def notebook(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[Notebook]:
    """A page for a notebook, once in JupyterLab and once in Notebook 7."""
    with open_notebook(server, browser, request.param) as opened:
        yield opened


@pytest.fixture
def lab(server: Server, browser: Browser) -> Iterator[Notebook]:
    """A page for a notebook in JupyterLab."""
    with open_notebook(server, browser, "lab") as opened:
        yield opened
