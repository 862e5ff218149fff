"""`%%agent` runs an agent in a cell; `%agent` is for commands."""

from __future__ import annotations

import difflib
import os
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, kwds, magic_arguments
from traitlets import Bool, Dict, Enum, Float, Instance, Integer, Unicode, Union
from traitlets import List as ListTrait

from ..agent.tool import Tool
from ..ai.model import THINKING_LEVELS, Model, StreamOptions
from ..errors import PiNotebookError
from .agent_thread import AgentThread
from .approval import APPROVE_MODES, Always, ApproveMode
from .bridge import is_cell_thread, running_cell
from .cell_result import CellResult, in_one_line, is_transcript_seen
from .commands import COMMANDS, command_help, run_command
from .conversation import CellTurn, Conversation, Rewound
from .options import (
    HELP_EPILOG,
    amount,
    check_variable_name,
    count,
    environment_name,
    parse_line,
    split_silencer,
    split_words,
)
from .prompt import RenderedPrompt, render_prompt, render_system
from .rules import Rules
from .run import CellRun, RunRequest
from .store import ConversationLog, Place, find_place
from .toolset import choose_tools

DEFAULT_SYSTEM = (
    "You are an agent inside a Jupyter notebook. Use the tools when they help; their results are real. "
    "Answer in Markdown, briefly. If a call is blocked or fails, say so and do not pretend that it worked."
)


TOOL_EXECUTIONS = ("parallel", "sequential")
MODEL_VARIABLE = "PI_NOTEBOOK_MODEL"
"""Environment variable that names the model of cells that name none, where nothing else is configured."""


@magics_class
class AgentMagics(Magics):
    """The magics of one shell, and what lasts from cell to cell. Configure with `%config AgentMagics.model = ...`."""

    model = Unicode("", help="Model of cells that name none: provider:model, or a variable that holds a Model.").tag(
        config=True
    )
    tools = ListTrait(Unicode(), help="Tools of cells that name none; empty: all of this notebook.").tag(config=True)
    approve: Any = Union(
        [Enum(list(APPROVE_MODES)), Instance(Rules)],
        default_value="ask",
        help="What to do about calls that need approval: ask, all, none, or Rules(...), which ask.",
    ).tag(config=True)
    approve_timeout = Float(0.0, min=0.0, help="Seconds that a question may stand; 0: for ever.").tag(config=True)
    max_turns = Integer(25, min=0, help="Requests to the model in one run; 0: no limit.").tag(config=True)
    max_cost = Float(0.0, min=0.0, help="US dollars for one run; 0: no limit.").tag(config=True)
    thinking = Enum(list(THINKING_LEVELS), "off", help="How much the model thinks.").tag(config=True)
    tool_execution: Any = Enum(list(TOOL_EXECUTIONS), "parallel", help="How the calls of one reply run.").tag(
        config=True
    )
    root = Unicode("", help="Folder that built-in file tools may not leave; empty: the notebook's.").tag(config=True)
    system = Unicode("", help="System prompt instead of the built-in one.").tag(config=True)
    keep = Bool(True, help="Keep conversations on disk, in .pi_notebook/ beside the notebook.").tag(config=True)
    rules = Instance(Rules, allow_none=True, help="Rules(allow=[...], block={...}, ask=[...]) for tool calls.").tag(
        config=True
    )
    headers = Dict(help="More headers of every request; may hold secrets.").tag(config=True)

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        self.conversations: dict[str, Conversation] = {}
        self.session = ""
        self._place: Place | None = None
        self.always: Always = set()
        self.last_run: CellRun | None = None
        self._thread: AgentThread | None = None
        self._running = False
        self._ordinal: tuple[Any, int] = (None, 0)

    @property
    def conversation(self) -> Conversation:
        """The conversation of the session that cells use now."""
        found = self.conversations.setdefault(self.session, Conversation(self.session))
        if self.keep != (found.log is not None):
            found.log = ConversationLog(self.place.file(self.session)) if self.keep else None
        return found

    def model_name(self) -> str:
        """The model of cells that name none, where one is configured."""
        return self.model or os.environ.get(MODEL_VARIABLE, "").strip()

    @property
    def is_running(self) -> bool:
        """Whether an agent runs in this kernel now."""
        return self._running

    @property
    def place(self) -> Place:
        """Where this notebook lies, as it was when that was first asked."""
        if self._place is None:
            self._place = find_place(self.shell)
        return self._place

    # ---- %%agent ---------------------------------------------------------------------------------

    @no_var_expand
    @magic_arguments("%agent")
    @kwds(epilog=HELP_EPILOG)
    @argument("-m", "--model", help="provider:model, or a variable that holds a Model.")
    @argument("--base-url", metavar="URL", help="Address of the server, for providers that have none or another one.")
    @argument("--api-key-env", metavar="NAME", type=environment_name, help="Environment variable that holds the key.")
    @argument(
        "--tools",
        metavar="NAMES",
        help="Exactly these tools, by comma: of this notebook, built-in, or variables that hold a Tool; notebook, "
        "builtin and none name sets. Default: all of this notebook.",
    )
    @argument(
        "--approve",
        metavar="HOW",
        help="About calls that need approval: ask (default), all (ask nothing), none (block them), or a variable "
        "that holds Rules. Rules that block always do.",
    )
    @argument("--approve-timeout", type=amount, metavar="SECONDS", help="Block what nobody answers in time (for ever).")
    @argument("-o", "--out", metavar="NAME", help="Variable for the result, set in every case.")
    @argument("--new", action="store_true", help="Start a new conversation with this cell.")
    @argument("--session", metavar="NAME", help="Use the conversation of this name from now on.")
    @argument("--max-turns", type=count, metavar="N", help="Requests to the model in this run (25; 0: no limit).")
    @argument("--max-cost", type=amount, metavar="USD", help="Stop when the run has cost this much (0: no limit).")
    @argument("--thinking", choices=list(THINKING_LEVELS), metavar="LEVEL", help=f"{', '.join(THINKING_LEVELS)} (off).")
    @argument(
        "--tool-execution",
        choices=list(TOOL_EXECUTIONS),
        metavar="ORDER",
        help="Calls of one reply: parallel (default) or sequential.",
    )
    @argument("--system", metavar="TEXT", help="System prompt of this run; {name} inserts variables.")
    @argument("--root", metavar="DIR", help="Folder that built-in file tools may not leave (the notebook's).")
    @argument("--raw", action="store_true", help="Send the prompt as it is: insert no {name}.")
    @cell_magic("agent")
    def agent_cell(self, line: str, cell: str) -> CellResult | None:
        """Give the cell's text to an agent that can call this notebook's tools."""
        line, text, silent = split_silencer(line, cell)
        arguments = parse_line(self.agent_cell.parser, line)
        arguments.line = line
        if not text.strip():
            raise UsageError("The cell is empty: write below %%agent what the agent should do.")
        if arguments.out is not None:
            check_variable_name(arguments.out)
        self._check_may_run()
        try:
            request, conversation = self._request(arguments, text)
        except PiNotebookError as error:
            raise UsageError(str(error)) from None
        result = self._run(request, conversation, arguments.out)
        return None if silent else result

    def _check_may_run(self) -> None:
        if self._running:
            raise UsageError(
                "An agent is running in this kernel already: wait for its end, or stop it. "
                "A tool that needs an agent of its own is an async def that awaits pi_notebook.Agent(...).prompt(...)."
            )
        if not is_cell_thread():
            raise UsageError(
                "%%agent runs in cells, not on threads of your own: there use pi_notebook.Agent(...).run(...)."
            )

    def _request(self, arguments: Any, text: str) -> tuple[RunRequest, Conversation]:
        model = self._model(arguments)
        tools = choose_tools(arguments.tools or ",".join(self.tools), self.shell, arguments.root or self.root or None)
        approve, rules = self._approval(arguments.approve)
        prompt, system = self._prompt(arguments, text)
        warnings = self._switch_session(arguments.session)
        if arguments.new:
            self.conversation.reset()
        conversation = self.conversation
        turn = CellTurn(self._cell_key(), text, execution_count=self._cell_count(), line=arguments.line)
        warnings += _stale_warnings(conversation.begin(turn)) + conversation.take_notices()
        timeout = arguments.approve_timeout if arguments.approve_timeout is not None else self.approve_timeout
        turns = arguments.max_turns if arguments.max_turns is not None else self.max_turns
        cost = arguments.max_cost if arguments.max_cost is not None else self.max_cost
        request = RunRequest(
            model=model,
            prompt=prompt,
            tools=tools,
            turn=turn,
            system_prompt=system,
            notice=_notice(model),
            warnings=warnings,
            approve=approve,
            approve_timeout=timeout or None,
            rules=rules,
            always=self.always,
            max_turns=turns or None,
            max_cost=cost or None,
            thinking=arguments.thinking or self.thinking,
            tool_execution=arguments.tool_execution or self.tool_execution,
            options=StreamOptions(headers=dict(self.headers) or None),
        )
        return request, conversation

    def _switch_session(self, name: str | None) -> list[str]:
        """Use the session `name` from now on. Returns a warning if it looks like a slip."""
        if name is None:
            return []
        near = difflib.get_close_matches(name, [each for each in self.conversations if each], n=1, cutoff=0.75)
        is_new = name and name not in self.conversations
        self.session = name
        return [f"Session {name!r} is new. Did you mean {near[0]!r}?"] if is_new and near else []

    def _prompt(self, arguments: Any, text: str) -> tuple[RenderedPrompt, str]:
        from ..agent.results import variable_content
        from ..ai.messages import TextContent

        system = arguments.system if arguments.system is not None else self.system or DEFAULT_SYSTEM
        if arguments.raw:
            return RenderedPrompt([TextContent(text)]), system
        prompt = render_prompt(text, self.shell.user_ns, variable_content)
        system, said = render_system(system, self.shell.user_ns, variable_content)
        prompt.inserted += said.inserted
        prompt.warnings += said.warnings
        return prompt, system

    def _approval(self, wanted: str | None) -> tuple[ApproveMode, Rules | None]:
        """How to decide calls; rules that are named for this cell come beside those that are configured."""
        mode: Any = self.approve
        rules: Rules | None = self.rules
        if isinstance(mode, Rules):
            mode, rules = "ask", mode.beside(rules)
        if wanted in APPROVE_MODES:
            mode = wanted
        if wanted is None or wanted in APPROVE_MODES:
            return mode, rules
        named = self.shell.user_ns.get(wanted)
        if not isinstance(named, Rules):
            known = ", ".join(APPROVE_MODES)
            raise UsageError(
                f"argument --approve: invalid choice: {wanted!r} (choose from {known}, or a variable that holds Rules)"
            )
        return "ask", named.beside(rules)

    def _model(self, arguments: Any) -> Model:
        from ..ai.discovery import default_model
        from ..ai.providers import resolve_model

        name = arguments.model or self.model_name()
        if not name and arguments.base_url:
            raise UsageError("--base-url needs --model, for example -m openai-compatible:NAME.")
        if not name:
            return default_model()
        value = self.shell.user_ns.get(name)
        if isinstance(value, Model):
            for option in ("base_url", "api_key_env"):
                if getattr(arguments, option):
                    flag = f"--{option.replace('_', '-')}"
                    raise UsageError(f"{flag} does not go with --model {name}: that variable holds a whole Model.")
            return value
        try:
            return resolve_model(name, base_url=arguments.base_url, api_key_env=arguments.api_key_env)
        except PiNotebookError:
            if name in self.shell.user_ns:
                kind = type(value).__name__
                raise UsageError(f"--model {name}: that variable holds a {kind}, not a Model.") from None
            raise

    def _cell_key(self) -> tuple[str, int] | None:
        """Which cell this is, across re-runs: its id in the front end, and how many agents ran in it before this."""
        execution = running_cell(self.shell)
        cell_id = execution[1]
        if cell_id is None:
            return None
        last, number = self._ordinal
        self._ordinal = (execution, number + 1 if last == execution else 0)
        return (cell_id, self._ordinal[1])

    def _cell_count(self) -> int | None:
        """The n of the In[n] that runs. From IPython 9.18 on, the shell's own count is already the next cell's."""
        running = getattr(self.shell.displayhook, "exec_result", None)
        count: int | None = getattr(running, "execution_count", None) or self.shell.execution_count
        return count

    def _run(self, request: RunRequest, conversation: Conversation, out: str | None) -> CellResult:
        run = CellRun(self.shell, conversation, request)
        self.last_run = run
        self._running = True
        try:
            self._thread = run.run(self._thread)
        finally:
            self._running = False
            result = CellResult(run.result, run.view, self.shell)
            if out is not None:
                self.shell.user_ns[out] = result
        if run.error is not None:
            raise in_one_line(run.error, is_told=is_transcript_seen(self.shell))
        return result

    # ---- %agent ----------------------------------------------------------------------------------

    @no_var_expand
    @line_magic("agent")
    def agent_line(self, line: str) -> Any:
        """Commands about the agent."""
        line, _, silent = split_silencer(line, "")
        name, *rest = [word.text for word in split_words(line)] or ["help"]
        if name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"%agent {name}: no such command.{hint} There are {', '.join(COMMANDS)}. "
                "To ask an agent something, write %%agent and the question below it."
            )
        try:
            answer = run_command(name, rest, self)
        except PiNotebookError as error:
            raise UsageError(str(error)) from None
        return None if silent else answer

    agent_line.__doc__ = command_help()

    def available_tools(self) -> list[Tool]:
        """The tools of cells that name none."""
        return choose_tools(",".join(self.tools), self.shell, self.root or None)

    def close(self) -> None:
        """Let the agent's thread end."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None


def _stale_warnings(rewound: Rewound | None) -> list[str]:
    if rewound is None or not rewound.followed:
        return []
    cells = ", ".join(turn.label for turn in rewound.followed)
    return [
        f"This cell ran before: its turn is replaced, and the conversation goes on from here. "
        f"Stale now: cells {cells}; run them again, or bring them back with %agent undo."
    ]


def _notice(model: Model) -> str:
    if model.api != "practice":
        return ""
    from ..ai.apis.practice import notice

    return notice()
