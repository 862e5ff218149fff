"""Texts of failures: the provider's own words, what to do, and never a key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai._failures import failure, is_overflow, provider_text, redact, secrets_of
from pi_notebook.ai.model import Model
from pi_notebook.errors import ContextOverflowError

MODEL = Model("m1", "openai-completions", "local", "http://x.test/v1", context_window=8192)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"error":{"code":400,"message":"no","type":"invalid_request_error"}}', "no [invalid_request_error]"),
        ('{"error":{"message":"Provider returned error","metadata":{"raw":"upstream says no"}}}',
         "Provider returned error: upstream says no"),
        ('{"error":"model not found"}', "model not found"),
        ('{"detail":[{"loc":["body","x"],"msg":"field required","type":"missing"}]}', "field required [missing]"),
        ('{"detail":"Not Found"}', "Not Found"),
        ('[{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT"}}]', "bad key [INVALID_ARGUMENT]"),
        ('{"object":"error","message":"too hot","code":40001}', "too hot"),
        ('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
         "Overloaded [overloaded_error]"),
        ("<html><head><style>p{}</style></head><body><h1>502</h1> Bad  Gateway</body></html>", "502 Bad Gateway"),
        ("", ""),
        ("null", ""),
    ],
)  # fmt: skip
def test_the_providers_own_words_are_found(body: str, text: str) -> None:
    assert provider_text(body) == text


def test_a_long_body_is_cut() -> None:
    assert provider_text("x" * 5000).endswith("... (5000 characters)")


@pytest.mark.parametrize(
    "text",
    [
        "request (9030 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Your input exceeds the context window of this model",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion",
        "prompt too long; exceeded max context length by 12 tokens",
        "x [context_length_exceeded]",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "tokens to keep from the initial prompt is greater than the context length",
        "Requested token count exceeds the model's maximum context length of 131072 tokens",
    ],
)
def test_a_transcript_too_long_is_recognised(text: str) -> None:
    error = failure(MODEL, text, status=400)
    assert isinstance(error, ContextOverflowError)
    assert "8,192 tokens" in str(error)
    assert "start a new one" in str(error)


def test_a_transcript_too_long_is_measured_where_the_provider_does_not_say() -> None:
    silent = failure(MODEL, "x [context_length_exceeded]", status=400, sent_bytes=460_000)
    assert str(silent).endswith(
        "The conversation (460,000 bytes, roughly 115,000 tokens) does not fit into the model's context window of "
        "8,192 tokens: start a new one, shorten what tools return, or use a model with a larger window."
    )
    assert "bytes" not in str(failure(MODEL, "the input (9000 tokens) is longer than the model's context length"))


@pytest.mark.parametrize("text", ["Rate limit reached: too many tokens per minute", "Too many requests", "bad key"])
def test_other_refusals_are_not_taken_for_one(text: str) -> None:
    assert not is_overflow(text)


def test_status_request_id_and_advice_stand_in_the_text() -> None:
    error = failure(MODEL, "no", status=500, request_id="req_1", advice="Try again.")
    assert str(error) == "local:m1 answered with HTTP 500: no. Try again. (request id req_1)"
    assert (error.status, error.request_id) == (500, "req_1")


KEY = "sk-proj-AbCdEfGhIjKlMnOp"


def test_secrets_are_the_key_and_what_headers_of_that_kind_hold() -> None:
    headers = {"Authorization": "Bearer tok-123456", "x-api-key": "abcdefgh", "x-title": "my title"}
    assert secrets_of(KEY, headers, None) == [KEY, "tok-123456", "abcdefgh"]


@given(st.text(max_size=30), st.integers(0, 24), st.integers(0, 24), st.text(max_size=30))
def test_no_six_characters_of_a_key_survive(before: str, start: int, length: int, after: str) -> None:
    shown = redact(before + KEY[start : start + length] + after + KEY, [KEY])
    assert not any(KEY[i : i + 6] in shown for i in range(len(KEY) - 5))


def test_a_text_without_a_key_stays_as_it_is() -> None:
    assert redact("sk-pr is short", [KEY, "", "abc"]) == "sk-pr is short"
