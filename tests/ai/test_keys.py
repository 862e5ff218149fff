import copy
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pi_notebook.ai import keys
from pi_notebook.ai.keys import Key, find_key, set_key
from pi_notebook.ai.model import Model, StreamOptions
from pi_notebook.ai.providers import resolve_model
from pi_notebook.errors import ModelError

SECRET = "sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_set_by_hand", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    keys._from_keyring.cache_clear()
    monkeypatch.delenv("ACME_KEY", raising=False)


def use_keyring(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    def get_password(service: str, provider: str) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer if (service, provider) == ("pi-notebook", "acme") else None

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))
    keys._from_keyring.cache_clear()


def test_environment_comes_before_keyring_before_the_one_set_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_key("acme", ["ACME_KEY"]) is None
    set_key("acme", "by-hand")
    assert (key := find_key("acme", ["ACME_KEY"])) == "by-hand" and key.source == "%agent key"
    use_keyring(monkeypatch, "from-ring")
    assert (key := find_key("acme", ["ACME_KEY"])) == "from-ring" and key.source == "keyring"
    monkeypatch.setenv("ACME_KEY", " from-env \n")
    assert (key := find_key("acme", ["OTHER", "ACME_KEY"])) == "from-env" and key.source == "ACME_KEY"


def test_a_broken_keychain_does_not_hide_a_key_set_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keyring(monkeypatch, RuntimeError("locked"))
    set_key("acme", "by-hand")
    assert find_key("acme", []) == "by-hand"


def test_a_blank_variable_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "  ")
    assert find_key("acme", ["ACME_KEY"]) is None


def test_a_key_set_by_hand_can_be_forgotten() -> None:
    set_key("acme", SECRET)
    set_key("acme", None)
    assert find_key("acme", []) is None


@pytest.mark.parametrize("bad", ["two words", "line\nend", "schlüssel"])
def test_what_no_header_can_carry_is_refused_without_being_shown(bad: str) -> None:
    with pytest.raises(ModelError) as error:
        set_key("acme", bad)
    assert bad not in str(error.value)
    assert str(error.value).startswith("That is no API key for acme:")


def test_a_key_shows_itself_nowhere() -> None:
    key = Key(SECRET, "ACME_KEY")
    assert SECRET not in repr(key) and SECRET not in repr({"key": key}) and SECRET not in f"{key!r}"
    for copier in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled") as error:
            copier(key)
        assert SECRET[:6] not in "".join(traceback.format_exception(error.value))


def test_every_key_that_was_ever_seen_is_known_and_none_is_shown(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-of-the-environment")
    keys.set_key("openai", "sk-forgotten-again")
    keys.set_key("openai", None)
    assert {"gsk-of-the-environment", "sk-forgotten-again"} <= keys.known_keys()
    assert "gsk" not in repr(keys.known_keys()) and "forgotten" not in repr(keys.known_keys())


@pytest.mark.parametrize(
    "name_it",
    [
        lambda: Model("m", "openai-completions", api_key_env="ACME_KEY"),
        lambda: replace(Model("m", "openai-completions"), api_key_env="ACME_KEY"),
        lambda: resolve_model("openai-compatible:m", base_url="http://127.0.0.1:9/v1", api_key_env="ACME_KEY"),
        lambda: Model("m", "openai-completions", headers={"Authorization": f"Bearer {SECRET}"}),
        lambda: StreamOptions(headers={"X-Api-Key": SECRET}),
        lambda: StreamOptions(api_key=SECRET),
        lambda: replace(StreamOptions(), api_key=SECRET),
        lambda: set_key("acme", SECRET),
        lambda: find_key("acme", ["ACME_KEY"]),
    ],
)
def test_a_key_is_known_as_soon_as_it_is_named(monkeypatch: pytest.MonkeyPatch, name_it: Callable[[], object]) -> None:
    monkeypatch.setattr(keys, "_seen", set())
    monkeypatch.setattr(keys, "_asked", set())
    monkeypatch.setenv("ACME_KEY", SECRET)
    assert SECRET not in keys.known_keys()
    name_it()
    monkeypatch.delenv("ACME_KEY")
    assert SECRET in keys.known_keys()


def test_what_a_named_variable_holds_later_is_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_asked", set())
    Model("m", "openai-completions", api_key_env="ACME_KEY")
    monkeypatch.setenv("ACME_KEY", "sk-of-tomorrow")
    assert "sk-of-tomorrow" in keys.known_keys() and "ACME_KEY" in keys.key_variables()
    assert {"OPENAI_API_KEY", "GOOGLE_API_KEY", "AZURE_OPENAI_API_KEY"} <= keys.key_variables()
