"""Which model the assistant runs on."""

import pytest
from langchain_openai import ChatOpenAI

from examples.order_assistant.models import ModelUnusable, choose_model, describe
from examples.order_assistant.offline_model import DialoguePlanner

KEY = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "house-model"}


def test_without_a_model_it_runs_offline() -> None:
    model = choose_model(None, {})
    assert isinstance(model, DialoguePlanner)
    assert describe(model) == ("offline", True)


def test_offline_can_be_asked_for_although_there_is_a_key() -> None:
    assert isinstance(choose_model("offline", KEY), DialoguePlanner)


def test_the_environment_names_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = choose_model(None, KEY)
    assert isinstance(model, ChatOpenAI)
    assert describe(model) == ("house-model", False)


def test_an_endpoint_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert isinstance(choose_model(None, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}), ChatOpenAI)


def test_the_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert describe(choose_model("openai:gpt-x", KEY)) == ("gpt-x", False)


@pytest.mark.parametrize("name", ["nonsense", "nobody:knows", "openai:no-key"])
def test_a_model_that_cannot_be_set_up_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelUnusable, match=f"cannot use model '{name}': .+ or use --model offline$") as caught:
        choose_model(name, {})
    assert "\n" not in str(caught.value)
