"""One tool as each provider gets it; the table in the README is made of the same."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from pi_notebook import Model, TextContent, tool
from pi_notebook.ai.messages import UserMessage
from pi_notebook.ai.model import Context, StreamOptions, adapter
from pi_notebook.errors import ToolArgumentsError


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] | None = None) -> str:
    """Weather in a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperature.
    """
    return f"20 degrees {unit or 'celsius'} in {city}"


@tool(constrained_sampling="require")
def get_weather_strictly(city: str, unit: Literal["celsius", "fahrenheit"] | None = None) -> str:
    """Weather in a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperature.
    """
    return get_weather(city, unit)


class Addr(BaseModel):
    street: str


@tool
def find(a: Addr, tags: dict[str, str], mode: Literal["x"]) -> str:
    """Find it."""
    return a.street


@tool
def zoom(level: Literal[1, 2, 4]) -> int:
    """Zoom the map."""
    return level


def test_openai_chat() -> None:
    assert get_weather.describe("openai-completions") == snapshot(
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Weather in a city.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "description": "Name of the city."},
                        "unit": {
                            "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                            "description": "Unit of the temperature.",
                            "default": None,
                        },
                    },
                    "required": ["city"],
                    "additionalProperties": False,
                },
                "strict": False,
            },
        }
    )


def test_openai_responses() -> None:
    assert get_weather.describe("openai-responses") == snapshot(
        {
            "type": "function",
            "name": "get_weather",
            "description": "Weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city."},
                    "unit": {
                        "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                        "description": "Unit of the temperature.",
                        "default": None,
                    },
                },
                "required": ["city"],
                "additionalProperties": False,
            },
            "strict": False,
        }
    )


def test_anthropic() -> None:
    assert get_weather.describe("anthropic-messages") == snapshot(
        {
            "name": "get_weather",
            "description": "Weather in a city.",
            "eager_input_streaming": True,
            "input_schema": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city."},
                    "unit": {
                        "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                        "description": "Unit of the temperature.",
                        "default": None,
                    },
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        }
    )


def test_google() -> None:
    assert get_weather.describe("google-generative-ai") == snapshot(
        {
            "name": "get_weather",
            "description": "Weather in a city.",
            "parametersJsonSchema": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city."},
                    "unit": {
                        "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                        "description": "Unit of the temperature.",
                        "default": None,
                    },
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        }
    )


def test_openai_chat_strictly() -> None:
    assert get_weather_strictly.describe("openai-completions") == snapshot(
        {
            "type": "function",
            "function": {
                "name": "get_weather_strictly",
                "description": "Weather in a city.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "description": "Name of the city."},
                        "unit": {
                            "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                            "description": "Unit of the temperature. Default: null.",
                        },
                    },
                    "required": ["city", "unit"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        }
    )


def test_anthropic_strictly() -> None:
    assert get_weather_strictly.describe("anthropic") == snapshot(
        {
            "name": "get_weather_strictly",
            "description": "Weather in a city.",
            "eager_input_streaming": True,
            "strict": True,
            "input_schema": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city."},
                    "unit": {
                        "anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}],
                        "description": "Unit of the temperature.",
                        "default": None,
                    },
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        }
    )


def test_pydantic_model_map_and_constant_for_google() -> None:
    assert find.describe("google") == snapshot(
        {
            "name": "find",
            "description": "Find it.",
            "parametersJsonSchema": {
                "type": "object",
                "properties": {
                    "a": {
                        "properties": {"street": {"type": "string"}},
                        "required": ["street"],
                        "title": "Addr",
                        "type": "object",
                    },
                    "tags": {"type": "object", "description": 'Keys are free; each value: {"type":"string"}.'},
                    "mode": {"type": "string", "enum": ["x"]},
                },
                "required": ["a", "tags", "mode"],
            },
        }
    )


def test_integer_enum_for_google() -> None:
    assert zoom.describe("google") == snapshot(
        {
            "name": "zoom",
            "description": "Zoom the map.",
            "parametersJsonSchema": {
                "type": "object",
                "properties": {"level": {"type": "integer", "description": "One of: 1, 2, 4."}},
                "required": ["level"],
            },
        }
    )


def test_integer_enum_as_others_get_it() -> None:
    assert zoom.describe("anthropic")["input_schema"]["properties"]["level"] == snapshot(
        {"enum": [1, 2, 4], "type": "integer"}
    )


def test_integer_enum_is_checked_where_the_schema_no_longer_says_it() -> None:
    assert zoom.check({"level": "2"}) == {"level": 2}
    with pytest.raises(ToolArgumentsError, match="level"):
        zoom.check({"level": 3})


def elements(body: dict[str, Any]) -> list[Any]:
    tools: list[Any] = body["tools"]
    return tools[0].get("functionDeclarations", tools)


@pytest.mark.parametrize(
    "api", ["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai"]
)
def test_description_is_what_a_request_holds(api: str) -> None:
    context = Context(messages=[UserMessage([TextContent("hi")])], tools=[get_weather])
    options = StreamOptions(cache_retention="none")
    body = adapter(api).request_body(Model("m", api, base_url="http://server.test"), context, options)
    assert elements(body) == [adapter(api).describe_tool(Model("m", api, base_url="http://server.test"), get_weather)]
