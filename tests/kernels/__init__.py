"""Real kernels for tests: see `session`."""

from .session import Cell, Session, start_session

__all__ = ["Cell", "Session", "start_session"]
