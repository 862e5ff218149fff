import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai import keys
from pi_notebook.ai.messages import Usage
from pi_notebook.ai.model import Model, StreamOptions
from pi_notebook.ai.prices import cost_of, facts_of, known_models
from pi_notebook.ai.providers import PRACTICE, PROVIDERS, checked_address, find_key, require_key, resolve_model
from pi_notebook.errors import ModelError

SECRET = "sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for name in (*provider.key_names, *provider.base_url_names):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(keys, "_set_by_hand", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    keys._from_keyring.cache_clear()


def refused(name: str, **options: str) -> str:
    with pytest.raises(ModelError) as error:
        resolve_model(name, **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "api", "label", "base_url"),
    [
        ("openai:gpt-5", "openai-responses", "openai:gpt-5", "https://api.openai.com/v1"),
        ("anthropic", "anthropic-messages", "anthropic:claude-sonnet-4-5", "https://api.anthropic.com"),
        ("claude-opus-5", "anthropic-messages", "anthropic:claude-opus-5", "https://api.anthropic.com"),
        ("Groq: openai/gpt-oss-20b", "openai-completions", "groq:openai/gpt-oss-20b", "https://api.groq.com/openai/v1"),
        ("ollama:qwen3:8b", "openai-completions", "ollama:qwen3:8b", "http://127.0.0.1:11434/v1"),
        ("xai:grok-4.5", "openai-responses", "xai:grok-4.5", "https://api.x.ai/v1"),
        ("openai:brand-new-model", "openai-responses", "openai:brand-new-model", "https://api.openai.com/v1"),
    ],
)
def test_names_resolve(name: str, api: str, label: str, base_url: str) -> None:
    model = resolve_model(name)
    assert (model.api, model.label, model.base_url) == (api, label, base_url)


def test_practice_has_a_name_of_its_own() -> None:
    assert resolve_model("practice") is PRACTICE
    assert PRACTICE.label == "practice"


LISTED = (
    "Providers: anthropic, openai, google, openrouter, groq, mistral, deepseek, xai, together, azure, ollama, "
    "lmstudio, llamacpp, vllm, openai-compatible, practice."
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("antropic:claude-x", f"Unknown model 'antropic:claude-x'. Did you mean anthropic:claude-x? {LISTED}"),
        ("claude-sonet-4-5", f"Unknown model 'claude-sonet-4-5'. Did you mean anthropic:claude-sonnet-4-5? {LISTED}"),
        (
            "qwen3:8b",
            "Unknown model 'qwen3:8b'. Write provider:model, for example anthropic:claude-sonnet-4-5, or "
            f"ollama:qwen3:8b for an Ollama model. {LISTED}",
        ),
        (
            "openai/gpt-oss-20b",
            "Model 'openai/gpt-oss-20b' needs its provider: groq:openai/gpt-oss-20b or together:openai/gpt-oss-20b.",
        ),
        ("", "No model is named. Write provider:model, for example anthropic:claude-sonnet-4-5."),
        ("ollama", "ollama needs the name of a model it serves: ollama:MODEL (%agent models lists them)."),
        (
            "openai-compatible:qwen",
            "openai-compatible needs an address: give --base-url http://HOST:PORT/v1 (base_url=), or set "
            "OPENAI_COMPATIBLE_BASE_URL.",
        ),
    ],
)
def test_a_name_that_means_nothing_says_what_to_write(name: str, text: str) -> None:
    assert refused(name) == text


@pytest.mark.parametrize("address", ["localhost:8080", "ftp://x/v1", "http://", "http://a b/", "http://h:99999/v1", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    assert refused("vllm:m", base_url=address) == (
        f"{address!r} is no address of a server: it has to be like http://127.0.0.1:8080/v1."
    )


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    text = refused("vllm:m", base_url=f"https://me:{SECRET}@host/v1")
    assert text.startswith("A base URL must not hold a password") and SECRET[:6] not in text


@pytest.mark.parametrize(
    "given", ["http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions", " http://h:1/v1 "]
)
def test_an_address_may_be_pasted_with_its_endpoint(given: str) -> None:
    assert resolve_model("openai-compatible:m", base_url=given).base_url == "http://h:1/v1"


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        ("https://box", "https://box:443/v1"),
        ("[::1]:5", "http://[::1]:5/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("::1", "http://[::1]:11434/v1"),
        ("::", "http://127.0.0.1:11434/v1"),
        ("fe80::2", "http://[fe80::2]:11434/v1"),
        (":5", "http://127.0.0.1:5/v1"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(monkeypatch: pytest.MonkeyPatch, value: str, address: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert resolve_model("ollama:m").base_url == address


def test_a_broken_address_in_a_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "nonsense")
    assert refused("openai-compatible:m").startswith("The environment variable OPENAI_COMPATIBLE_BASE_URL: 'nonsense'")


@pytest.mark.parametrize(
    "value", ["host:notaport", "host:70000", "::1:11434", "[::1", "ftp://host", "a b", "http://a]b"]
)
def test_an_ollama_host_that_is_none_names_the_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    text = refused("ollama:m")
    assert text.startswith("The environment variable OLLAMA_HOST: '")
    assert text.endswith("' is no address of a server: it has to be like http://127.0.0.1:8080/v1.")


ADDRESS = st.lists(
    st.sampled_from(
        ["http://", "https:", "::1", "?", "#", "[", "]", ":", "/", "a.b", "0", "99999", "@", "%", "\u2100", "\\"]
    )
)


@given(
    ADDRESS.map("".join).filter(str.strip),
    st.sampled_from(["OLLAMA_HOST", "AZURE_OPENAI_RESOURCE_NAME", "OPENAI_COMPATIBLE_BASE_URL"]),
)
def test_any_text_in_a_variable_is_an_address_or_a_model_error(value: str, name: str) -> None:
    provider = next(p for p in PROVIDERS.values() if name in p.base_url_names)
    with pytest.MonkeyPatch.context() as patch:
        for each in provider.base_url_names:
            patch.delenv(each, raising=False)
        patch.setenv(name, value)
        try:
            model = resolve_model(f"{provider.name}:m")
        except ModelError as error:
            assert str(error).startswith(f"The environment variable {name}: ")
        else:
            assert checked_address(model.base_url) == model.base_url


def test_a_password_in_an_address_that_is_none_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (f"me:{SECRET}@host:port", f"http://me:{SECRET}@host:port"):
        monkeypatch.setenv("OLLAMA_HOST", value)
        assert SECRET not in refused("ollama:m") and "***@host:port" in refused("ollama:m")


def test_a_model_whose_address_is_none_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="'http://host:port' is no address of a server"):
        find_key(Model("m", "openai-completions", "openai", "http://host:port"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AZURE_OPENAI_RESOURCE_NAME", "mine"),
        ("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/"),
        ("AZURE_OPENAI_BASE_URL", "https://mine.openai.azure.com/openai/v1"),
    ],
)
def test_azure_lives_where_its_variables_say(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    model = resolve_model("azure:gpt-5")
    assert model.base_url == "https://mine.openai.azure.com/openai/v1"
    assert model.compat["key_header"] == "api-key"
    assert find_key(model) == (SECRET, "AZURE_OPENAI_API_KEY")
    assert find_key(resolve_model("azure:gpt-5", base_url="https://evil.example/openai/v1")) == (None, "")


# -- whose key goes where


def test_a_missing_key_names_the_variable_to_set() -> None:
    with pytest.raises(ModelError) as error:
        require_key(resolve_model("anthropic:claude-sonnet-4-5"))
    assert str(error.value) == (
        "No key for anthropic: set the environment variable ANTHROPIC_API_KEY, or run %agent key anthropic."
    )


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.base_url])
def test_a_key_goes_home_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    provider = PROVIDERS[name]
    monkeypatch.setenv(provider.key_names[0], SECRET)
    home = resolve_model(f"{name}:m")
    assert find_key(home) == (SECRET, provider.key_names[0])
    for elsewhere in ("http://127.0.0.1:9/v1", "https://evil.example/v1", provider.base_url.replace("://", "://x.")):
        assert find_key(resolve_model(f"{name}:m", base_url=elsewhere)) == (None, "")
    if home.base_url.startswith("https:"):
        plain = home.base_url.replace("https:", "http:")
        assert find_key(resolve_model(f"{name}:m", base_url=plain)) == (None, "")


def test_openai_compatible_sends_its_own_key_and_never_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    model = resolve_model("openai-compatible:m", base_url="http://127.0.0.1:9/v1")
    assert find_key(model) == (None, "")
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", SECRET)
    assert find_key(model) == (SECRET, "OPENAI_COMPATIBLE_API_KEY")


def test_a_key_that_was_named_goes_where_the_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    model = resolve_model("openai:m", base_url="https://proxy.example/v1", api_key_env="MY_KEY")
    assert find_key(model) == (SECRET, "MY_KEY")
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ModelError) as error:
        find_key(model)
    assert str(error.value) == "No key for openai:m: the environment variable MY_KEY is not set."
    assert find_key(model, StreamOptions(api_key="given")) == ("given", "the api_key given")


def test_a_model_made_by_hand_gets_no_key_of_a_provider_it_only_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert find_key(Model("m", "openai-completions", "openai", "https://evil.example/v1")) == (None, "")
    assert find_key(Model("m", "openai-completions", "acme", "https://api.openai.com/v1")) == (None, "")


def test_local_servers_need_no_key_and_own_headers_replace_one() -> None:
    require_key(resolve_model("vllm:m"))
    require_key(PRACTICE)
    require_key(resolve_model("openai:gpt-5", headers={"Authorization": "Bearer x"}))


def test_neither_key_nor_header_is_in_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    model = resolve_model("openai:gpt-5", headers={"x-auth": SECRET})
    assert SECRET not in repr(model) and SECRET not in repr(find_key(model)) and SECRET not in repr(keys._set_by_hand)


# -- facts and prices


def test_facts_of_known_dated_and_unknown_models() -> None:
    known = facts_of("openai", "gpt-4o")
    assert known == facts_of("openai", "gpt-4o-2024-08-06") == facts_of("azure", "gpt-4o")
    assert known.cost is not None and known.context_window == 128_000
    unknown = facts_of("openai", "gpt-99")
    assert (unknown.cost, unknown.context_window) == (None, None)
    assert facts_of("ollama", "qwen2.5-vl:7b", local=True).input == ("text", "image")
    assert facts_of("ollama", "qwen2.5:7b", local=True).input == ("text",)
    assert facts_of("vllm", "openai/gpt-oss-20b", local=True).reasoning


def test_each_line_of_the_table_makes_a_usable_model() -> None:
    names = [f"{provider}:{model}" for provider, models in known_models().items() for model in models]
    assert len(names) > 80
    for name in names:
        model = resolve_model(name)
        assert model.cost is not None and model.cost.output >= model.cost.input > 0
        assert model.context_window and model.max_tokens and model.max_tokens <= model.context_window


def test_default_models_of_the_providers_are_in_the_table() -> None:
    for provider in PROVIDERS.values():
        assert not provider.model or provider.model in known_models()[provider.name]


def test_cost_is_counted_per_kind_of_token_and_unknown_stays_unknown() -> None:
    usage = Usage(input=1_000_000, output=2_000_000, cache_read=1_000_000, cache_write=1_000_000)
    cost = cost_of(resolve_model("anthropic:claude-sonnet-4-5"), usage)
    assert cost is not None
    assert (cost.input, cost.output, cost.cache_read, cost.cache_write) == (3.0, 30.0, 0.3, 3.75)
    assert cost.total == pytest.approx(37.05)
    assert cost_of(resolve_model("vllm:m"), usage) is None


@pytest.mark.parametrize(("tokens", "rates"), [(200_000, (1.25, 10, 0.125)), (200_001, (2.5, 15, 0.25))])
def test_a_long_request_has_the_rates_of_long_ones(tokens: int, rates: tuple[float, float, float]) -> None:
    usage = Usage(input=tokens - 50_000, output=1_000_000, cache_read=50_000)
    cost = cost_of(resolve_model("google:gemini-2.5-pro"), usage)
    assert cost is not None
    assert cost.input == pytest.approx((tokens - 50_000) * rates[0] / 1e6)
    assert (cost.output, cost.cache_read) == pytest.approx((rates[1], 50_000 * rates[2] / 1e6))
