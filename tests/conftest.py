"""Fixtures that several folders share: real kernels, one per ipykernel version that the package is held to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from .environments import KERNEL_VERSIONS, kernel_name
from .kernels import Session, start_session
from .local_model import BASE_URL_VARIABLE

# How long an example takes depends on what else the machine does.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

# Subshells came with ipykernel 7
PAGES = [*KERNEL_VERSIONS, *(f"{version}-subshell" for version in KERNEL_VERSIONS if version >= "7")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if {"kernel", "page", "newest_kernel", "sessions"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("kernel")
    if not os.environ.get(BASE_URL_VARIABLE):
        without = {item for item in items if item.get_closest_marker("real_model")}
        items[:] = [item for item in items if item not in without]
        config.hook.pytest_deselected(items=list(without))


@pytest.fixture(scope="session", autouse=True)
def _conversations_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What kernels and shells of tests keep on disk is not kept among the sources."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JPY_SESSION_NAME", str(tmp_path_factory.mktemp("notebook") / "test.ipynb"))
        yield


@pytest.fixture(scope="module")
def sessions() -> Iterator[Callable[[str], Session]]:
    """Running kernels by ipykernel version, one process per module; the namespace is emptied at each asking."""
    running: dict[str, Session] = {}

    def get(version: str) -> Session:
        session = running.get(version)
        if session is None:
            session = running[version] = start_session(kernel_name(version))
        else:
            session.run("%reset -f", silent=True)
        session.reset()
        return session

    yield get
    for session in running.values():
        session.close()


@pytest.fixture(params=KERNEL_VERSIONS)
def kernel(request: pytest.FixtureRequest, sessions: Callable[[str], Session]) -> Session:
    """A running kernel, once per tested ipykernel version; one process per module, its namespace emptied."""
    return sessions(request.param)


@pytest.fixture
def newest_kernel(sessions: Callable[[str], Session]) -> Session:
    """A running kernel of the newest tested ipykernel."""
    return sessions(KERNEL_VERSIONS[-1])


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, sessions: Callable[[str], Session]) -> Iterator[Session]:
    """As `kernel`, and on ipykernel 7 a second time with widget messages addressed to a subshell."""
    version, _, subshell = request.param.partition("-")
    session = sessions(version)
    if not subshell:
        yield session
        return
    with session.subshell():
        yield session
