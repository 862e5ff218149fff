from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio alone."""
    return "asyncio"
