"""What a person types is taken whole, and in time, also while tools hold the cell's thread."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import ipywidgets

from pi_notebook.notebook._typing import hear_last_words, said_by_now, when_typed
from pi_notebook.notebook.bridge import Bridge
from pi_notebook.notebook.view import RunView

CEILING = 20.0


class Terminal:
    """An IPython shell without a kernel."""

    display_pub: Any = None


class Page:
    """A page's messages, as a kernel's source hands them to the bridge."""

    mode = "page"
    interval = None

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        bridge._source = self
        bridge.mode = self.mode

    def send(self, act: Any) -> None:
        self.bridge._inbox.put(Sent(act))

    def open(self) -> bool:
        return True

    def poll(self) -> None: ...

    def close(self) -> None: ...

    def handle(self, message: Any) -> None:
        message.act()


class Sent:
    """A message that does something to a widget."""

    type = "comm_msg"

    def __init__(self, act: Any) -> None:
        self.act = act


def test_a_field_is_read_when_it_has_come_to_rest() -> None:
    field = ipywidgets.Text(value="a")
    taken: list[str] = []
    done = threading.Event()

    def act() -> None:
        taken.append(field.value)
        done.set()

    when_typed([field], act)
    for end in range(1, 8):
        time.sleep(0.05)
        field.value = "abcdefgh"[:end]
    assert done.wait(CEILING)
    field.value = "later"
    assert taken == ["abcdefg"]


def test_a_field_is_not_read_while_its_last_keys_wait_for_the_thread() -> None:
    field = ipywidgets.Text()
    taken: list[str] = []

    def act() -> None:
        taken.append(field.value)

    with Bridge(Terminal()) as bridge:
        page = Page(bridge)
        page.send(lambda: when_typed([field], act))

        def hold() -> None:
            time.sleep(0.5)
            page.send(lambda: setattr(field, "value", "all of it"))
            time.sleep(0.5)
            assert taken == []

        held = bridge.call(hold)
        assert bridge.wait(lambda: bool(taken), CEILING)
    held.result(CEILING)
    assert taken == ["all of it"]


def test_a_turn_waits_for_what_was_sent_before_its_end() -> None:
    view = RunView("m")
    field = ipywidgets.Text()
    ended = threading.Event()
    heard: list[str] = []

    def take() -> None:
        view.steer(field.value)
        view.being_said = False

    def submit() -> None:
        view.being_said = True
        when_typed([field], take)

    with Bridge(Terminal()) as bridge:
        page = Page(bridge)

        def agent() -> None:
            page.send(submit)
            page.send(lambda: setattr(field, "value", "the other one"))
            asyncio.run(said_by_now(bridge, view))
            heard.extend(view.queued)
            ended.set()
            bridge.wake()

        bridge.spawn(agent)
        assert bridge.wait(ended.is_set, CEILING)
    assert heard == ["the other one"]


def test_a_turn_does_not_wait_for_ever_for_a_thread_that_is_held() -> None:
    ended = threading.Event()
    with Bridge(Terminal()) as bridge:
        Page(bridge)
        bridge.call(lambda: ended.wait(CEILING))

        def agent() -> None:
            asyncio.run(said_by_now(bridge, RunView("m")))
            ended.set()

        bridge.spawn(agent)
        assert bridge.wait(ended.is_set, CEILING)


def test_the_last_words_are_heard_before_the_cell_goes_on() -> None:
    view = RunView("m")
    field = ipywidgets.Text(value="too late")

    def take() -> None:
        view.steer(field.value)
        view.being_said = False

    def submit() -> None:
        view.being_said = True
        when_typed([field], take)

    with Bridge(Terminal()) as bridge:
        Page(bridge).send(submit)
        hear_last_words(bridge, view)
    assert view.queued == ["too late"]
