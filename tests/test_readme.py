"""What the README shows is what the package does. `python -m tests.test_readme` writes its generated part anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

from pi_notebook import tool
from pi_notebook.ai.providers import PROVIDERS

README = Path(__file__).parent.parent / "README.md"
APIS = ("openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai")
GENERATED = re.compile(r"(<!-- describe: [^\n]* -->\n).*?(<!-- /describe -->)", re.DOTALL)


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] | None = None) -> str:
    """Weather of a city.

    Args:
        city: Name of the city.
        unit: Unit of temperatures.
    """
    return "sunny"


def provider_table() -> str:
    weather = tool(get_weather)
    rows = "".join(f"| `{api}` | `{json.dumps(weather.describe(api))}` |\n" for api in APIS)
    return f"| API | sent |\n| --- | --- |\n{rows}"


def test_the_table_of_providers_is_what_they_are_sent() -> None:
    found = GENERATED.search(README.read_text("utf-8"))
    assert found is not None
    assert found[0] == f"{found[1]}{provider_table()}{found[2]}"


def test_every_provider_is_named() -> None:
    text = README.read_text("utf-8")
    assert [name for name in PROVIDERS if f"`{name}`" not in text] == []


def test_the_two_commands_stand_there() -> None:
    text = README.read_text("utf-8")
    assert "make demo" in text and "make test" in text


if __name__ == "__main__":
    README.write_text(GENERATED.sub(lambda m: f"{m[1]}{provider_table()}{m[2]}", README.read_text("utf-8")), "utf-8")
