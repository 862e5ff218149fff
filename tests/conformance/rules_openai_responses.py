"""Which of our rules can touch an input of openai-responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Predicate = Callable[[dict[str, Any]], bool]
REQUEST_RULES: list[tuple[str, Predicate]] = []
STREAM_RULES: list[tuple[str, Predicate]] = []
