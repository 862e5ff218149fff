"""Known models: price, context window, abilities. Facts as pi-ai 0.84.0 lists them (published on 2026-09-01), not
checked against the providers' own pages since.

A model that is not here works too: its price is unknown (shown as a dash) and its abilities are guessed by name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .model import CostRates, Model

if TYPE_CHECKING:
    from .messages import Cost, Usage

PRICES_OF = "2026-09"
"""Year and month of the table; a price may have changed since."""

# "# provider", then one line per model: id, US dollars per million tokens of input, output, cached input and input
# written to the cache, context window and longest output in tokens, and marks. `image`: takes images. `thinks`: can
# be asked to think; after a colon one of _SCALES. `double-above:N`: with more than N tokens of input all of them cost
# twice as much, and output half as much again. The other marks are keys of _QUIRKS.
_TABLE = """
# anthropic
claude-fable-5 10 50 1 12.5 1000000 128000 image thinks:always-max adaptive
claude-haiku-4-5 1 5 0.1 1.25 200000 64000 image thinks
claude-opus-4-5 5 25 0.5 6.25 200000 64000 image thinks
claude-opus-4-6 5 25 0.5 6.25 1000000 128000 image thinks:max adaptive
claude-opus-4-7 5 25 0.5 6.25 1000000 128000 image thinks:to-max adaptive no-temperature
claude-opus-4-8 5 25 0.5 6.25 1000000 128000 image thinks:to-max adaptive no-temperature
claude-opus-5 5 25 0.5 6.25 1000000 128000 image thinks:to-max adaptive no-temperature
claude-sonnet-4-5 3 15 0.3 3.75 1000000 64000 image thinks
claude-sonnet-4-6 3 15 0.3 3.75 1000000 128000 image thinks:max adaptive
claude-sonnet-5 2 10 0.2 2.5 1000000 128000 image thinks:to-max adaptive
# openai
gpt-4.1 2 8 0.5 0 1047576 32768 image
gpt-4.1-mini 0.4 1.6 0.1 0 1047576 32768 image
gpt-4.1-nano 0.1 0.4 0.025 0 1047576 32768 image
gpt-4o 2.5 10 1.25 0 128000 16384 image
gpt-4o-mini 0.15 0.6 0.075 0 128000 16384 image
gpt-5 1.25 10 0.125 0 400000 128000 image thinks:minimal-high
gpt-5-mini 0.25 2 0.025 0 400000 128000 image thinks:minimal-high
gpt-5-nano 0.05 0.4 0.005 0 400000 128000 image thinks:minimal-high
gpt-5.1 1.25 10 0.125 0 400000 128000 image thinks:none-high
gpt-5.2 1.75 14 0.175 0 400000 128000 image thinks:none-xhigh
gpt-5.4 2.5 15 0.25 0 272000 128000 image thinks:none-xhigh tool-search double-above:272000
gpt-5.4-mini 0.75 4.5 0.075 0 400000 128000 image thinks:none-xhigh tool-search
gpt-5.4-nano 0.2 1.25 0.02 0 400000 128000 image thinks:none-xhigh
gpt-5.5 5 30 0.5 0 272000 128000 image thinks:none-xhigh tool-search double-above:272000
gpt-5.6-luna 0.2 1.2 0.02 0.25 272000 128000 image thinks:none-max tool-search explicit-cache double-above:272000
gpt-5.6-sol 5 30 0.5 6.25 272000 128000 image thinks:none-max tool-search explicit-cache double-above:272000
gpt-5.6-terra 2 12 0.2 2.5 272000 128000 image thinks:none-max tool-search explicit-cache double-above:272000
o1 15 60 7.5 0 200000 100000 image thinks:low-high
o3 2 8 0.5 0 200000 100000 image thinks:low-high
o3-mini 1.1 4.4 0.55 0 200000 100000 thinks:low-high
o4-mini 1.1 4.4 0.275 0 200000 100000 image thinks:low-high
# google
gemini-2.0-flash 0.1 0.4 0.025 0 1048576 8192 image
gemini-2.0-flash-lite 0.075 0.3 0 0 1048576 8192 image
gemini-2.5-flash 0.3 2.5 0.03 0 1048576 65536 image thinks
gemini-2.5-flash-lite 0.1 0.4 0.01 0 1048576 65536 image thinks
gemini-2.5-pro 1.25 10 0.125 0 1048576 65536 image thinks double-above:200000
gemini-3-flash-preview 0.5 3 0.05 0 1048576 65536 image thinks:always
gemini-3-pro-preview 2 12 0.2 0 1048576 65536 image thinks:gemini-pro double-above:200000
gemini-3.1-flash-lite 0.25 1.5 0.025 0 1048576 65536 image thinks:always
gemini-3.1-pro-preview 2 12 0.2 0 1048576 65536 image thinks:gemini-pro double-above:200000
gemini-3.5-flash 1.5 9 0.15 0 1048576 65536 image thinks:always
gemini-3.5-flash-lite 0.3 2.5 0.03 0 1048576 65536 image thinks:always
gemini-3.6-flash 1.5 7.5 0.15 0 1048576 65536 image thinks:always
gemini-flash-latest 1.5 9 0.15 0 1048576 65536 image thinks:always
gemini-flash-lite-latest 0.25 1.5 0.025 0 1048576 65536 image thinks:always
# groq
llama-3.1-8b-instant 0.05 0.08 0 0 131072 131072
llama-3.3-70b-versatile 0.59 0.79 0 0 131072 32768
openai/gpt-oss-120b 0.15 0.6 0.075 0 131072 65536 thinks:low-high
openai/gpt-oss-20b 0.075 0.3 0.0375 0 131072 65536 thinks:low-high
openai/gpt-oss-safeguard-20b 0.075 0.3 0 0 131072 65536 thinks:low-high
qwen/qwen3.6-27b 0.6 3 0.3 0 131072 16384 image thinks:groq-qwen
# mistral
codestral-latest 0.3 0.9 0.03 0 256000 4096
devstral-2512 0.4 2 0.04 0 262144 262144
devstral-latest 0.4 2 0.04 0 262144 262144
devstral-medium-latest 0.4 2 0.04 0 262144 262144
magistral-medium-latest 2 5 0.2 0 128000 16384 thinks
magistral-small 0.5 1.5 0.05 0 128000 128000 thinks
ministral-3b-latest 0.04 0.04 0.004 0 128000 128000
ministral-8b-latest 0.1 0.1 0.01 0 128000 128000
mistral-large-2512 0.5 1.5 0.05 0 262144 262144 image
mistral-large-latest 0.5 1.5 0.05 0 262144 262144 image
mistral-medium-latest 1.5 7.5 0.15 0 262144 262144 image thinks
mistral-small-latest 0.15 0.6 0.015 0 256000 256000 image thinks
# deepseek
deepseek-v4-flash 0.14 0.28 0.0028 0 1000000 384000 thinks:deepseek
deepseek-v4-pro 0.435 0.87 0.003625 0 1000000 384000 thinks:deepseek
# xai
grok-4.3 1.25 2.5 0.2 0 1000000 30000 image thinks
grok-build-0.1 1 2 0.2 0 256000 256000 image thinks
grok-4.5 2 6 0.3 0 500000 500000 image thinks:low-high responses
# together
MiniMaxAI/MiniMax-M3 0.3 1.2 0.06 0 524288 250000 image thinks:high
Qwen/Qwen3.5-9B 0.17 0.25 0 0 262144 65536 image thinks:high
Qwen/Qwen3.6-Plus 0.5 3 0 0 1000000 500000 thinks:high
Qwen/Qwen3.7-Max 1.25 3.75 0.125 0 1000000 500000
deepseek-ai/DeepSeek-V4-Flash-0731 0.14 0.28 0.03 0 1000000 384000 thinks:high
deepseek-ai/DeepSeek-V4-Pro 1.74 3.48 0.2 0 512000 384000 thinks:high effort
meta-llama/Llama-3.3-70B-Instruct-Turbo 1.04 1.04 0 0 131072 131072
moonshotai/Kimi-K2.6 1.2 4.5 0.2 0 262144 131000 image thinks:high
moonshotai/Kimi-K2.7-Code 0.95 4 0.19 0 262144 131072 thinks:high
moonshotai/Kimi-K3 3 15 0.3 0 1048576 131072 image thinks:high
openai/gpt-oss-120b 0.15 0.6 0 0 131072 131072 thinks:low-high effort plain-thinking
openai/gpt-oss-20b 0.05 0.2 0 0 131072 131072 thinks:low-high effort plain-thinking
zai-org/GLM-5.2 1.4 4.4 0.26 0 262144 164000 thinks:high
# openrouter
anthropic/claude-haiku-4.5 1 5 0.1 1.25 200000 64000 image thinks
anthropic/claude-opus-4.5 5 25 0.5 6.25 200000 64000 image thinks
anthropic/claude-opus-5 5 25 0.5 6.25 1000000 128000 image thinks:to-max
anthropic/claude-sonnet-4.5 3 15 0.3 3.75 1000000 64000 image thinks
anthropic/claude-sonnet-5 2 10 0.2 2.5 1000000 128000 image thinks:to-max
deepseek/deepseek-v3.2 0.269 0.4 0.1345 0 163840 65536 thinks
deepseek/deepseek-v4-flash 0.0882 0.1764 0.01764 0 1048576 131072 thinks:high-xhigh reasoning-content
google/gemini-2.5-flash 0.3 2.5 0.03 0.083333 1048576 65535 image thinks
google/gemini-2.5-pro 1.25 10 0.125 0.375 1048576 65536 image thinks
google/gemini-3.6-flash 1.5 7.5 0.15 0.083333 1048576 65536 image thinks
meta-llama/llama-3.3-70b-instruct 0.1 0.32 0 0 131072 16384
mistralai/mistral-medium-3.1 0.4 2 0.04 0 131072 4096 image
moonshotai/kimi-k2.6 0.589 2.48 0.0992 0 262144 262144 image thinks reasoning-content
openai/gpt-5 1.25 10 0.125 0 400000 128000 image thinks
openai/gpt-5-mini 0.25 2 0.025 0 400000 128000 image thinks
openai/gpt-5.2 1.75 14 0.175 0 400000 128000 image thinks:xhigh
openai/gpt-oss-120b 0.037 0.17 0 0 131072 131072 thinks
qwen/qwen3-coder 0.3 1 0.1 0 262144 65536
x-ai/grok-4.3 1.25 2.5 0.2 0 1000000 4096 image thinks
z-ai/glm-5.2 0.76 2.42 0.14 0 262144 262144 thinks:xhigh
"""

_USUAL = {"low": "low", "medium": "medium", "high": "high"}
_SCALES: Mapping[str, Mapping[str, str | None]] = {
    "always": {"off": None},
    "always-max": {"off": None, "xhigh": "xhigh", "max": "max"},
    "to-max": {"xhigh": "xhigh", "max": "max"},
    "max": {"max": "max"},
    "xhigh": {"xhigh": "xhigh"},
    "minimal-high": {"off": None, "minimal": "minimal", **_USUAL, "xhigh": None, "max": None},
    "low-high": {"off": None, "minimal": None, **_USUAL, "xhigh": None, "max": None},
    "none-high": {"off": "none", "minimal": None, **_USUAL, "xhigh": None, "max": None},
    "none-xhigh": {"off": "none", "minimal": None, **_USUAL, "xhigh": "xhigh", "max": None},
    "none-max": {"off": "none", "minimal": None, **_USUAL, "xhigh": "xhigh", "max": "max"},
    "high": {"minimal": None, "low": None, "medium": None},
    "high-xhigh": {"minimal": None, "low": None, "medium": None, "high": "high", "xhigh": "xhigh", "max": None},
    "deepseek": {"minimal": None, "low": None, "medium": None, "high": "high", "max": "max"},
    "gemini-pro": {"off": None, "minimal": None, "low": "LOW", "medium": None, "high": "HIGH"},
    "groq-qwen": {
        "off": "none", "minimal": None, "low": None, "medium": None, "high": "default", "xhigh": None, "max": None,
    },
}  # fmt: skip
_QUIRKS: Mapping[str, Mapping[str, Any]] = {
    "adaptive": {"force_adaptive_thinking": True},
    "no-temperature": {"supports_temperature": False},
    "tool-search": {"supports_tool_search": True},
    "explicit-cache": {"supports_explicit_prompt_cache_mode": True},
    "reasoning-content": {"requires_reasoning_content_on_assistant_messages": True},
    "effort": {"supports_reasoning_effort": True},
    "plain-thinking": {"thinking_format": "openai"},
    "responses": {},
}
_SEES = r"vision|llava|[-_.]?vl\b|vl[:-]|pixtral|gemma-?[34]|minicpm-v|moondream|llama-?4|omni|multimodal"
_THINKS = (
    r"\bo[134]\b|gpt-?(?:oss|[5-9])|claude-(?:\w+-)?(?:3[-.]7|[4-9])|gemini-(?:2\.5|[3-9])|deepseek-?r\d|qwq"
    r"|qwen-?3|magistral|think|reason"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model; `cost` None: its price is not."""

    input: tuple[str, ...]
    reasoning: bool = False
    thinking_levels: Mapping[str, str | None] = field(default_factory=dict)
    cost: CostRates | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    compat: Mapping[str, Any] = field(default_factory=dict)
    responses: bool = False


@functools.cache
def known_models() -> Mapping[str, Mapping[str, Facts]]:
    """Provider -> model id -> facts."""
    table: dict[str, dict[str, Facts]] = {}
    models: dict[str, Facts] = {}
    for line in _TABLE.strip().splitlines():
        if line.startswith("# "):
            models = table[line[2:]] = {}
        else:
            name, facts = _row(line)
            models[name] = facts
    return table


def _row(line: str) -> tuple[str, Facts]:
    name, *columns = line.split()
    marks = {name: value for name, _, value in (mark.partition(":") for mark in columns[6:])}
    scale = marks.get("thinks", "")
    quirks = [_QUIRKS[mark] for mark in marks if mark not in ("image", "thinks", "double-above")]
    input_, output, cache_read, cache_write = map(float, columns[:4])
    rates = CostRates(input_, output, cache_read, cache_write)
    if limit := marks.get("double-above"):
        doubled = CostRates(input_ * 2, output * 1.5, cache_read * 2, cache_write * 2)
        rates = replace(rates, above={int(limit): doubled})
    return name, Facts(
        input=("text", "image") if "image" in marks else ("text",),
        reasoning="thinks" in marks,
        thinking_levels=_SCALES[scale] if scale else {},
        cost=rates,
        context_window=int(columns[4]),
        max_tokens=int(columns[5]),
        compat={key: value for quirk in quirks for key, value in quirk.items()},
        responses="responses" in marks,
    )


def facts_of(provider: str, model_id: str, *, local: bool = False) -> Facts:
    """What is known of a model, dated names (`gpt-4o-2024-08-06`) included, else what its name suggests."""
    models = known_models().get({"azure": "openai"}.get(provider, provider), {})
    undated = re.sub(r"-(?:\d{8}|\d{4}-\d\d-\d\d)$", "", model_id)
    known = models.get(model_id) or models.get(undated)
    if known is not None:
        return known
    name = model_id.lower()
    sees = bool(re.search(_SEES, name)) or not (local or name.startswith(("deepseek", "llama", "qwen")))
    return Facts(input=("text", "image") if sees else ("text",), reasoning=bool(re.search(_THINKS, name)))


def cost_of(model: Model, usage: Usage) -> Cost | None:
    """US dollars of `usage` at the model's price; None where that is unknown (show a dash, never 0)."""
    from .apis._adapter import priced

    return priced(
        model,
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cache_write_1h=usage.cache_write_1h,
    ).cost
