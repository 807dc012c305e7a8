"""The official hooks for content: the one that uploads, and none."""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from agentkit.errors import MissingDependency
from agentkit.telemetry.official_hook import OfficialHook, official_hook
from agentkit.testing import ScriptedModel, ai, run, tool_call

INSTALLED = importlib.util.find_spec("opentelemetry.util") and importlib.util.find_spec("opentelemetry.util.genai")
needed = pytest.mark.skipif(not INSTALLED, reason="opentelemetry-util-genai and fsspec are not installed")


def look(text: str = "") -> str:
    """Look something up."""
    return "found"


@needed
def test_the_upload_hook_uploads_and_the_span_says_where(
    recorder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH", tmp_path.as_uri())
    (named,) = entry_points(group="opentelemetry_genai_completion_hook", name="upload")
    upload = named.load()()
    recorder.options["content_hook"] = OfficialHook(upload)
    model = ScriptedModel(ai("", tool_call("look", {"text": "x"})), "done")
    run(recorder.create(model, [look], system_prompt="be kind"), "hi")
    upload.shutdown()  # it writes in threads of its own
    last = recorder.named("chat")[-1].attributes
    addresses = [last[f"gen_ai.{side}.messages_ref"].removeprefix("file://") for side in ("input", "output")]
    sent, answered = (json.loads(Path(address).read_text()) for address in addresses)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["parts"][0]["arguments"] == {"text": "x"}
    assert answered[0]["parts"][0]["content"] == "done"
    assert "gen_ai.input.messages" not in last


@needed
@pytest.mark.parametrize("named", [None, "upload"])
def test_the_variable_names_the_hook(
    named: str | None, recorder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named is not None:
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", named)
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH", tmp_path.as_uri())
    recorder.options["content_hook"] = official_hook()
    assert run(recorder.create(ScriptedModel("done")), "hi").text == "done"
    assert ("gen_ai.input.messages_ref" in recorder.named("chat")[0].attributes) is (named is not None)


@pytest.mark.skipif(bool(INSTALLED), reason="opentelemetry-util-genai is installed")
def test_without_the_package_it_is_named() -> None:
    with pytest.raises(MissingDependency, match=r"opentelemetry-util-genai; install it with: .*agentkit\[genai\]"):
        official_hook()
