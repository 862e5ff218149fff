"""The set of decorated tools, in order of definition."""

from __future__ import annotations

import difflib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function_tool import FunctionTool


class _Entry:
    """A tool that somebody else keeps alive. `named`: it was seen as a variable of the notebook."""

    __slots__ = ("definition", "named", "reference")

    def __init__(self, tool: FunctionTool[Any, Any], forget: Callable[[Any], None]) -> None:
        self.reference = weakref.ref(tool, forget)
        self.definition = _definition(tool)
        self.named = False


def _definition(tool: FunctionTool[Any, Any]) -> tuple[str, str]:
    function = tool.function
    return getattr(function, "__module__", "") or "", getattr(function, "__qualname__", "") or ""


class ToolRegistry:
    """Tools by name. A tool goes when its function is deleted (`del f`), replaced, or unregistered.

    Args:
        notify: Told in one line when a definition changed what a model knows: another name or schema.
    """

    def __init__(self, notify: Callable[[str], object] = print) -> None:
        self.notify = notify
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.RLock()

    def add(self, tool: FunctionTool[Any, Any]) -> None:
        """Register `tool`, quietly in the place of the one with its name; says so only if name or schema changed."""
        name = tool.name
        with self._lock:
            renamed = self._renamed(tool)
            before = self._entries.get(name)
            old = before.reference() if before is not None else None
            if old is tool:
                return
            entry = _Entry(tool, lambda reference: self._forget(name, reference))
            if renamed is not None and before is None:
                self._entries = {name if key == renamed else key: value for key, value in self._entries.items()}
            elif renamed is not None:
                del self._entries[renamed]
            self._entries[name] = entry
        if renamed is not None:
            self.notify(f"Tool {renamed!r} is now called {name!r}.")
        elif old is not None and old.is_resolved and tool.is_resolved and old.schema != tool.schema:
            self.notify(f"Tool {name!r} has changed its parameters: {_changes(old.schema, tool.schema)}.")

    def _renamed(self, tool: FunctionTool[Any, Any]) -> str | None:
        """The former name of the function that `tool` is made of, if this is a new definition of it."""
        definition = _definition(tool)
        if not definition[1] or "<" in definition[1]:  # a lambda, or made by a function that makes many
            return None
        for name, entry in self._entries.items():
            old = entry.reference()
            if old is None or name == tool.name or entry.definition != definition:
                continue
            if old.defined_at[0] != tool.defined_at[0]:  # in a loop many are made in one place
                return name
        return None

    def _forget(self, name: str, reference: Any) -> None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and entry.reference is reference:
                del self._entries[name]

    def unregister(self, name: str) -> None:
        """Take the tool `name` out. Raises KeyError, naming the tools there are."""
        with self._lock:
            if name not in self._entries:
                close = difflib.get_close_matches(str(name), self._entries, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(self._entries) or 'none'}."
                raise KeyError(f"No tool {name!r}; {hint}")
            del self._entries[name]

    def get(self, name: str) -> FunctionTool[Any, Any] | None:
        entry = self._entries.get(name)
        return entry.reference() if entry is not None else None

    def tools(self, namespace: Mapping[str, Any] | None = None) -> list[FunctionTool[Any, Any]]:
        """All tools in order of definition; a replaced one keeps its place.

        Args:
            namespace: The notebook's variables. A tool that was one of them and no longer is has been deleted by its
                user and goes, whoever else still holds it (`Out`, a traceback, a running agent).
        """
        with self._lock:
            if namespace is not None:
                self._drop_deleted(namespace)
            return [tool for entry in self._entries.values() if (tool := entry.reference()) is not None]

    def _drop_deleted(self, namespace: Mapping[str, Any]) -> None:
        hidden = ("In", "Out")
        present = {
            id(value) for name, value in list(namespace.items()) if not name.startswith("_") and name not in hidden
        }
        for name, entry in list(self._entries.items()):
            there = id(entry.reference()) in present
            if entry.named and not there:
                del self._entries[name]
            entry.named = there

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __iter__(self) -> Iterator[FunctionTool[Any, Any]]:
        return iter(self.tools())

    def __len__(self) -> int:
        return len(self.tools())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None


def _changes(old: dict[str, Any], new: dict[str, Any]) -> str:
    """`+ city, - town, changed: n`."""
    before, after = old.get("properties", {}), new.get("properties", {})
    parts = [f"+ {name}" for name in after if name not in before]
    parts += [f"- {name}" for name in before if name not in after]
    changed = [name for name in after if name in before and before[name] != after[name]]
    changed += [name for name in after if name in before and name not in changed and _needed(old, new, name)]
    if changed:
        parts.append(f"changed: {', '.join(changed)}")
    return ", ".join(parts) or "a type inside them"


def _needed(old: dict[str, Any], new: dict[str, Any], name: str) -> bool:
    return (name in old.get("required", ())) != (name in new.get("required", ()))


registry = ToolRegistry()
"""What `@tool` decorates."""
