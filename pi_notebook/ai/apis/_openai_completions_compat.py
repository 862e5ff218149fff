"""What servers that speak openai-completions do differently, by provider and host."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..model import Model

Json = dict[str, Any]


@functools.lru_cache(maxsize=64)
def compat_of(model: Model) -> Json:
    """The quirks of `model`'s server: what its provider and host suggest, overridden by `model.compat`.

    supports_store, supports_developer_role, supports_reasoning_effort, supports_usage_in_streaming,
    supports_finish_reason, supports_strict_mode, supports_thinking_token_budget, supports_long_cache_retention: bool.
    max_tokens_field: `max_tokens` or `max_completion_tokens`.
    requires_tool_result_name, requires_assistant_after_tool_result, requires_thinking_as_text,
    requires_reasoning_content_on_assistant_messages: bool.
    thinking_format: `openai`, `openrouter`, `deepseek`, `together`, `baseten`, `zai`, `qwen`, `qwen-chat-template`,
    `chat-template` (with chat_template_kwargs), `string-thinking`, `ant-ling`.
    open_router_routing, vercel_gateway_routing, chat_template_kwargs, chat_template_args: JSON objects.
    zai_tool_stream: bool. cache_control_format: `anthropic` or None. deferred_tools_mode: `kimi` or None.
    send_session_affinity_headers: bool; session_affinity_format: `openai`, `openai-nosession`, `openrouter`.
    """
    return {**_detected(model), **{key: value for key, value in model.compat.items() if value is not None}}


def _detected(model: Model) -> Json:
    provider, url = model.provider, model.base_url

    def is_one(names: Sequence[str], *hosts: str) -> bool:
        return provider in names or any(host in url for host in hosts)

    zai = is_one(("zai", "zai-coding-cn"), "api.z.ai", "open.bigmodel.cn")
    together = is_one(("together",), "api.together.ai", "api.together.xyz")
    moonshot = is_one(("moonshotai", "moonshotai-cn"), "api.moonshot.")
    openrouter = is_one(("openrouter",), "openrouter.ai")
    workers_ai = is_one(("cloudflare-workers-ai",), "api.cloudflare.com")
    gateway = is_one(("cloudflare-ai-gateway",), "gateway.ai.cloudflare.com")
    nvidia = is_one(("nvidia",), "integrate.api.nvidia.com")
    ant_ling = is_one(("ant-ling",), "api.ant-ling.com")
    grok = is_one(("xai",), "api.x.ai")
    deepseek = is_one(("deepseek",), "deepseek.com")
    mistral = is_one(("mistral",), "api.mistral.ai")
    chutes = "chutes.ai" in url
    own_ways = (
        zai or together or moonshot or workers_ai or gateway or nvidia or ant_ling or grok or chutes or mistral
        or "deepseek.com" in url or is_one(("cerebras", "opencode"), "cerebras.ai", "opencode.ai")
    )  # fmt: skip
    developer = not own_ways and not openrouter
    formats = (
        (deepseek, "deepseek"), (zai, "zai"), (together, "together"),
        (ant_ling, "ant-ling"), (openrouter, "openrouter"), (True, "openai"),
    )  # fmt: skip
    old_limit = chutes or moonshot or gateway or together or nvidia or ant_ling or zai or mistral
    return {
        "supports_store": not own_ways,
        "supports_developer_role": developer or (openrouter and model.id.startswith(("anthropic/", "openai/"))),
        "supports_reasoning_effort": not (grok or zai or moonshot or together or gateway or nvidia or ant_ling),
        "supports_usage_in_streaming": not mistral,
        "supports_finish_reason": True,
        "max_tokens_field": "max_tokens" if old_limit else "max_completion_tokens",
        "requires_tool_result_name": False,
        "requires_assistant_after_tool_result": False,
        "requires_thinking_as_text": False,
        "requires_reasoning_content_on_assistant_messages": deepseek,
        "thinking_format": next(name for is_so, name in formats if is_so),
        "open_router_routing": None,
        "vercel_gateway_routing": None,
        "chat_template_kwargs": {},
        "chat_template_args": {},
        "zai_tool_stream": False,
        "supports_thinking_token_budget": False,
        "supports_strict_mode": not (moonshot or together or gateway or nvidia),
        "cache_control_format": (
            "anthropic" if provider == "openrouter" and model.id.startswith("anthropic/") else None
        ),
        "send_session_affinity_headers": False,
        "session_affinity_format": "openrouter" if openrouter else "openai",
        "deferred_tools_mode": None,
        "supports_long_cache_retention": not (together or workers_ai or gateway or nvidia or ant_ling or mistral),
    }
