"""Fixtures that several folders share: real kernels, one per ipykernel version that the package is held to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .environments import KERNEL_VERSIONS, kernel_name
from .kernels import Session, start_session

# Subshells came with ipykernel 7
PAGES = [*KERNEL_VERSIONS, *(f"{version}-subshell" for version in KERNEL_VERSIONS if version >= "7")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"kernel", "page", "newest_kernel", "sessions"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("kernel")


class Sessions:
    """Kernels by ipykernel version, started when first asked for."""

    def __init__(self) -> None:
        self._running: dict[str, Session] = {}

    def get(self, version: str) -> Session:
        """The module's kernel of `version`, its namespace and its outputs as good as new."""
        session = self._running.get(version)
        if session is None:
            session = self._running[version] = start_session(kernel_name(version))
        else:
            session.run("%reset -f", silent=True)
        session.reset()
        return session

    def close(self) -> None:
        for session in self._running.values():
            session.close()


@pytest.fixture(scope="module")
def sessions() -> Iterator[Sessions]:
    found = Sessions()
    yield found
    found.close()


@pytest.fixture(params=KERNEL_VERSIONS)
def kernel(request: pytest.FixtureRequest, sessions: Sessions) -> Session:
    """A running kernel, once per tested ipykernel version; one process per module, its namespace emptied."""
    return sessions.get(request.param)


@pytest.fixture
def newest_kernel(sessions: Sessions) -> Session:
    """A running kernel of the newest tested ipykernel."""
    return sessions.get(KERNEL_VERSIONS[-1])


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, sessions: Sessions) -> Iterator[Session]:
    """As `kernel`, and on ipykernel 7 a second time with widget messages addressed to a subshell."""
    version, _, subshell = request.param.partition("-")
    session = sessions.get(version)
    if not subshell:
        yield session
        return
    with session.subshell():
        yield session
