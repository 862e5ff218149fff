"""Tab in an agent cell: what is offered, through IPython's completer and through a real kernel."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from pi_notebook import scripted, tool
from pi_notebook.agent.registry import registry
from pi_notebook.notebook.conversation import Conversation
from pi_notebook.notebook.extension import COMPLETION, load, unload
from pi_notebook.notebook.rules import Rules

from ..kernels import Session


class Careful:
    """Its property must not be called by a completion."""

    def __init__(self) -> None:
        self.inner = types.SimpleNamespace(depth=1)

    @property
    def dangerous(self) -> Any:
        raise AssertionError("called")


@pytest.fixture(params=[True, False], ids=["jedi", "no jedi"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InteractiveShell]:
    config = Config(
        {
            "HistoryManager": {"enabled": False},
            "IPCompleter": {"use_jedi": request.param},
            "AgentMagics": {"keep": False},
        }
    )
    shell = InteractiveShell(config=config, ipython_dir=str(tmp_path))
    load(shell)

    @tool
    def add_up(a: int) -> int:
        "Add."
        return a

    shell.user_ns |= {
        "add_up": add_up,
        "my_model": scripted("x"),
        "my_rules": Rules(),
        "sales": pd.DataFrame({"price": [1], "unit cost": [2]}),
        "salt": 1,
        "table": {"price": 1, "odd\n": 2, 3: 4},
        "careful": Careful(),
        "types": types,
    }
    shell.magics_manager.registry["AgentMagics"].conversations["weekly"] = Conversation("weekly")
    yield shell
    unload(shell)
    registry.clear()


def complete(shell: InteractiveShell, text: str) -> tuple[str, list[str]]:
    """What is replaced and what is offered at the `|` of `text`."""
    at = text.index("|")
    code = text[:at] + text[at + 1 :]
    with provisionalcompleter():
        found = list(shell.Completer.completions(code, at))
    return (code[found[0].start : at] if found else "", [each.text for each in found])


@pytest.mark.parametrize(
    ("text", "fragment", "offered"),
    [
        ("%%agent --mo|", "--mo", ["--model"]),
        ("%%agent --max-|", "--max-", ["--max-turns", "--max-cost"]),
        ("%%agent -|\nhello", "-", ["--model", "-m", "--raw"]),
        ("%%agent |", "", ["--model", "--tools", "--system"]),
        ("%%time\n%%agent --ra|", "--ra", ["--raw"]),
        ("  %%agent --ra|", "--ra", ["--raw"]),
        ("%%agent -m my|", "my", ["my_model"]),
        ("%%agent --model=my|", "my", ["my_model"]),
        ("%%agent -m anthropic:claude-sonnet-4|", "anthropic:claude-sonnet-4", ["anthropic:claude-sonnet-4-5"]),
        ("%%agent -m pra|", "pra", ["practice"]),
        ("%%agent -m olla|", "olla", ["ollama:"]),
        ("%%agent -m sonnet-4-5|", "sonnet-4-5", ["anthropic:claude-sonnet-4-5"]),
        ("%%agent --tools |", "", ["add_up", "read", "bash", "builtin", "notebook", "none"]),
        ("%%agent --tools read,ad|", "ad", ["add_up"]),
        ("%%agent --approve |", "", ["ask", "all", "none", "my_rules"]),
        ("%%agent --thinking hi|", "hi", ["high"]),
        ("%%agent --tool-execution s|", "s", ["sequential"]),
        ("%%agent --session w|", "w", ["weekly"]),
        ("%%agent -o sal|", "sal", ["sales", "salt"]),
        ("%%agent --system 'for {sa|'", "sa", ["sales", "salt"]),
        ("%%agent\nmean of {sal|", "sal", ["sales", "salt"]),
        ("%%agent\nmean of {sal|}", "sal", ["sales", "salt"]),
        ("%%agent -m x\n\nfirst\n{sal|} and {salt}", "sal", ["sales", "salt"]),
        ("%%agent\n{sales.sha|", "sha", ["shape"]),
        ("%%agent\n{careful.inn|", "inn", ["inner"]),
        ("%%agent\n{careful.inner.de|", "de", ["depth"]),
        ('%%agent\n{sales["pr|', '"pr', ['"price"']),
        ("%%agent\n{table['pr|']}", "'pr", ["'price"]),
        ("%%agent\n{table[|", "", ['"price"', "3"]),
        ("%agent |", "", ["tools", "models", "key", "history", "show", "help"]),
        ("%agent hi|", "hi", ["history"]),
        ("x = 1\n%agent re|", "re", ["reset", "resume"]),
        ("%agent key anth|", "anth", ["anthropic"]),
        ("%agent resume w|", "w", ["weekly"]),
    ],
)
def test_what_is_offered(shell: InteractiveShell, text: str, fragment: str, offered: list[str]) -> None:
    replaced, found = complete(shell, text)
    assert replaced == fragment
    assert set(offered) <= set(found), found
    assert all(fragment.lower() in each.lower() for each in found)


@pytest.mark.parametrize(
    ("text", "not_offered"),
    [
        ("%%agent -m my_model --mod|", "--model"),
        ("%%agent --tools add_up,ad|", "add_up"),
        ("%%agent\n{typ|", "types"),
        ("%%agent\n{_|", "_dh"),
        ("%%agent\n{{sal|", "sales"),
        ("%%agent\n${sal|", "sales"),
        ("%%agent\n\\frac{sal|", "sales"),
        ("%%agent\n```\n{sal|", "sales"),
        ("%%agent\n`{sal|}`", "sales"),
        ("%%agent\n{careful.dangerous.x|", "depth"),
    ],
)
def test_what_would_not_be_inserted_is_not_offered_by_us(shell: InteractiveShell, text: str, not_offered: str) -> None:
    from pi_notebook.notebook.completion import offer_for

    at = text.index("|")
    code = text[:at] + text[at + 1 :]
    before = code[:at]
    line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
    offer = offer_for(code, line, column, shell.magics_manager.registry["AgentMagics"])
    assert offer is None or not_offered not in offer.fitting()


@pytest.mark.parametrize("text", ["import o|", "sal|", "x = {sal|", "# %%agent\nsal|", "print('a')\n%%agent --mo|"])
def test_other_cells_are_left_to_ipython(shell: InteractiveShell, text: str) -> None:
    _, with_us = complete(shell, text)
    unload(shell)
    assert complete(shell, text)[1] == with_us


def test_unload_takes_it_away(shell: InteractiveShell) -> None:
    unload(shell)
    assert COMPLETION not in [getattr(each, "matcher_identifier", "") for each in shell.Completer.matchers]
    assert "--model" not in complete(shell, "%%agent --mo|")[1]


def ask_kernel(session: Session, text: str) -> tuple[str, list[str]]:
    at = text.index("|")
    code = text[:at] + text[at + 1 :]
    request = session.request("complete_request", {"code": code, "cursor_pos": at})
    session.wait_until(lambda: request in session.replies, what="completions")
    content = session.replies[request]["content"]
    return code[content["cursor_start"] : content["cursor_end"]], content["matches"]


@pytest.mark.parametrize("jedi", [True, False])
def test_a_kernel_completes_agent_cells(newest_kernel: Session, jedi: bool) -> None:
    newest_kernel.run(f"%load_ext pi_notebook\n%config IPCompleter.use_jedi = {jedi}\nsales, salt = [1], 2")
    assert ask_kernel(newest_kernel, "%%agent --max-t|") == ("--max-t", ["--max-turns"])
    assert ask_kernel(newest_kernel, "%%agent -m anthropic:claude-sonnet-4-5|")[1] == ["anthropic:claude-sonnet-4-5"]
    assert ask_kernel(newest_kernel, "%%agent\nWhat is {sal|}?") == ("sal", ["sales", "salt"])
    assert ask_kernel(newest_kernel, "%agent hist|") == ("hist", ["history"])
    newest_kernel.run("%unload_ext pi_notebook")
    assert "--max-turns" not in ask_kernel(newest_kernel, "%%agent --max-t|")[1]
