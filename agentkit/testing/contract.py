"""A suite of pytest checks that any middleware should pass. Needs pytest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, Interrupt, interrupt

from agentkit import create_agent
from agentkit.testing._overlap import in_one_loop, in_threads
from agentkit.testing._stores import opener
from agentkit.testing._trial import QUESTION, Boom, Factory, Inspector, LastState, Trial, Twice, assert_same, typed
from agentkit.testing.messages import ai, tool_call
from agentkit.testing.model import Request
from agentkit.testing.pairing import assert_paired
from agentkit.testing.running import EntryPoint, comparable

try:
    import pytest
except ImportError as missing:
    raise ImportError("MiddlewareContract is a suite of pytest checks: pip install pytest") from missing

__all__ = ["MiddlewareContract"]

_Middleware = AgentMiddleware[Any, Any, Any]
_SYNC_AND_ASYNC: tuple[EntryPoint, ...] = ("invoke", "ainvoke")
_FACTORIES: dict[str, Factory] = {"agentkit": create_agent, "langchain": langchain_create_agent}


class MiddlewareContract:
    """What users take for granted of a middleware, as pytest checks.

    ```python
    class TestRedact(MiddlewareContract):
        prompt = "my address is jo@example.com"

        def make(self):
            return Redact()
    ```

    Every check builds agents around fresh instances and runs them, under agentkit's and LangChain's own factory. The
    agent has two tools, `lookup(key: str)` and `settle(amount: int)`; in a user turn the scripted model calls
    `lookup`, then `lookup` and `settle` at once, then answers in text. Configure `make()`, `prompt` or `answer` so that
    the middleware has something to do there: a middleware that does nothing passes.

    A check that cannot hold for a middleware by its nature is switched off in `exempt`, with the reason:
    `exempt = {"test_nothing_per_run_is_kept": "its purpose is a rate limit over all runs"}`.
    """

    prompt: ClassVar[str] = "settle my latest order"
    """What the user says."""
    options: ClassVar[Mapping[str, Any]] = {}
    """More arguments for `create_agent`, for example `response_format`."""
    raises: ClassVar[type[Exception] | tuple[type[Exception], ...]] = ()
    """Exceptions with which the middleware is meant to end these runs; without them, one fails the checks."""
    exempt: ClassVar[Mapping[str, str]] = {}
    """Checks to skip, each with the reason."""
    handles_model_errors: ClassVar[bool] = False
    """The middleware is there to turn a failing model into something else than an exception."""
    counts_in_vain: ClassVar[Collection[str]] = ()
    """State fields that count what the model was asked in vain, and so differ where an outer retry asks it twice."""
    handles_tool_errors: ClassVar[bool] = False
    """The middleware is there to turn a failing tool into something else than an exception."""

    def make(self) -> _Middleware:
        """A new instance of the middleware under test, configured as its users would."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make` that returns the middleware.")

    def answer(self, request: Request) -> Any:
        """The scripted model's answer to a request: any step of a `ScriptedModel` except a function.

        It must depend on the request only, since requests of several runs and retries come in any order.
        """
        said = next((str(m.text) for m in reversed(request.messages) if isinstance(m, HumanMessage)), "")
        step = _answers(request) % 3  # not `request.turn`: the middleware may add human messages
        if step == 0:
            return ai("", tool_call("lookup", {"key": said}, "first"))
        if step == 1:
            return ai("", tool_call("lookup", {"key": "price"}, "second"), tool_call("settle", {"amount": 7}, "third"))
        return f"done: {said}"

    def resolve(self, interrupts: Sequence[Interrupt]) -> Any:
        """What to resume with when the middleware itself pauses the run, for example an approval's decisions."""
        raise AssertionError(f"The middleware paused the run: {interrupts!r}. Answer it in `resolve`.")

    @pytest.fixture(autouse=True)
    def _exempted(self, request: pytest.FixtureRequest) -> None:
        unknown = [name for name in self.exempt if not hasattr(self, name)]
        assert not unknown, f"`exempt` names checks that do not exist: {unknown}"
        if reason := self.exempt.get(request.function.__name__):
            pytest.skip(reason)

    @pytest.fixture(params=sorted(_FACTORIES))
    def create(self, request: pytest.FixtureRequest) -> Factory:
        """The factories under which the middleware must work. Override to narrow them."""
        return _FACTORIES[request.param]

    @pytest.fixture(params=["memory", "sqlite"])
    def store(self, request: pytest.FixtureRequest) -> str:
        """The kinds of checkpoint store that state must survive."""
        return cast("str", request.param)

    # ---------------------------------------------------------------- one behaviour on all paths

    def test_sync_equals_async(self, create: Factory) -> None:
        """`invoke` and `ainvoke` give the same result, state, model requests and tool executions."""
        self._compare_entries(create, "ainvoke", "invoke")

    def test_stream_equals_invoke(self, create: Factory) -> None:
        """Streaming messages, custom data and values changes nothing, sync and async."""
        self._compare_entries(create, "stream", "invoke")
        self._compare_entries(create, "astream", "ainvoke")

    def test_two_instances_in_one_agent(self, create: Factory) -> None:
        """Two instances side by side work, sync and async, wherever one does."""
        for entry in _SYNC_AND_ASYNC:
            one = self._trial(create, [self.make()]).run(self.prompt, entry)
            both = self._trial(create, self._pair(create)).run(self.prompt, entry)
            assert type(both.error) is type(one.error), f"{entry}: two instances raise {both.error!r}"

    def test_requests_are_well_formed(self, create: Factory) -> None:
        """What the model gets would be accepted by a strict provider: each call has its result, and so on."""
        for entry in _SYNC_AND_ASYNC:
            trial = self._trial(create, [self.make()])
            trial.run(self.prompt, entry)
            assert_paired(trial.model)

    # ---------------------------------------------------------------- signals and failures

    def test_a_pause_of_the_model_passes(self, create: Factory) -> None:
        """An `interrupt` inside the model call pauses at once and is resumable."""

        def pausing(request: Request) -> Any:
            return "done" if _answers(request) else str(interrupt(QUESTION))

        for entry in _SYNC_AND_ASYNC:
            trial = self._trial(create, [self.make()], answer=pausing)
            self._pause_and_resume(trial, entry, lambda t: t.model.calls)

    def test_a_pause_of_a_tool_passes(self, create: Factory) -> None:
        """An `interrupt` inside a tool pauses at once and is resumable."""
        for entry in _SYNC_AND_ASYNC:
            trial = self._pausing_tool(create)
            self._pause_and_resume(trial, entry, lambda t: len(t.executed))

    def test_model_errors_pass_out(self, create: Factory) -> None:
        """A failing model's exception leaves the run, unless handling it is the middleware's purpose."""
        self._failure(create, self.handles_model_errors, answer=lambda request: Boom("the model broke"))

    def test_tool_errors_pass_out(self, create: Factory) -> None:
        """A failing tool's exception leaves the run as it does without the middleware, unless it handles it."""

        def broken(key: str) -> str:
            raise Boom("the tool broke")

        self._failure(create, self.handles_tool_errors, lookup=broken)

    # ---------------------------------------------------------------- nothing changed, nothing kept

    def test_inputs_are_not_mutated(self, create: Factory) -> None:
        """Requests and the state given to hooks are as they were, after the middleware has seen them."""
        for entry in _SYNC_AND_ASYNC:
            inspector, middleware = Inspector(), self.make()
            with inspector.watching(type(middleware)):
                self._trial(create, [inspector, middleware]).run(self.prompt, entry)
            assert not inspector.changed, f"{entry}: {'; '.join(inspector.changed)}. Use `request.override(...)`."

    def test_the_handler_may_be_called_twice(self, create: Factory) -> None:
        """An outer retry gets the same response twice, from the same request, and the same result in the end."""
        for entry in _SYNC_AND_ASYNC:
            once = self._trial(create, [self.make()])
            expected = once.result(once.run(self.prompt, entry))
            twice = Twice()
            trial = self._trial(create, [twice, self.make()])
            twice.model = trial.model
            got = trial.result(trial.run(self.prompt, entry))
            for kind, first, second in twice.responses:
                assert first == second, f"{entry}: the second {kind} call gave {second!r} instead of {first!r}"
            for start, between, end in twice.models:
                first, second = (
                    [comparable(r.messages) for r in trial.model.requests[a:b]]
                    for a, b in ((start, between), (between, end))
                )
                assert not second or first == second, f"{entry}: the retry sent {second!r} instead of {first!r}"
            for left in (got, expected):
                left["saved state"] = {k: v for k, v in left["saved state"].items() if k not in self.counts_in_vain}
            assert_same(got, expected, f"{entry} with each wrap called twice")

    def test_nothing_per_run_is_kept(self, create: Factory) -> None:
        """Runs that follow each other or overlap, in threads and in one event loop, do not see each other."""
        prompts = {"1": self.prompt, "2": f"{self.prompt}, please"}
        for entry in _SYNC_AND_ASYNC:
            alone = {}
            for thread, prompt in prompts.items():
                trial = self._trial(create, [self.make()])
                alone[thread] = trial.result(trial.run(prompt, entry, thread), thread)
            again = trial.result(trial.run(self.prompt, entry, "1"), "1")
            assert_same(again, alone["1"], f"{entry}, a run after another")
            together = in_threads if entry == "invoke" else in_one_loop
            overlapping = together(prompts, self.answer, partial(self._trial, create, [self.make()]))
            for thread, got in overlapping.items():
                assert_same(got, alone[thread], f"{entry}, run {thread} beside another")

    # ---------------------------------------------------------------- stored state

    def test_state_survives_a_restart(self, create: Factory, store: str) -> None:
        """With everything rebuilt between two turns, the second goes as if nothing had been; no value changes type."""
        with opener(store) as reopen, opener(store) as other:
            going_on = self._trial(create, [self.make()], checkpointer=reopen())
            going_on.run(self.prompt, "invoke")
            expected = going_on.result(going_on.run("and the one before", "invoke"))

            last = LastState()
            before = self._trial(create, [last, self.make()], checkpointer=other())
            if error := before.run(self.prompt, "invoke").error:
                plain = self._trial(create, [self.make()], checkpointer=None).run(self.prompt, "invoke")
                assert comparable(error) == comparable(plain.error), f"stored in {store}, the run raises {error!r}"
            after = self._trial(create, [self.make()], checkpointer=other())
            for key, value in after.saved().items():
                live = last.state.get(key, value)
                assert typed(value) == typed(live), f"state field {key!r} was {live!r} and comes back as {value!r}"
            assert_same(after.result(after.run("and the one before", "invoke")), expected, "the turn after a restart")

    def test_a_pause_survives_a_restart(self, create: Factory, store: str) -> None:
        """With everything rebuilt during a pause, the run goes on as if nothing had been."""
        results = []
        for restart in (False, True):
            with opener(store) as reopen:
                trial = self._pausing_tool(create, checkpointer=reopen())
                trial.run(self.prompt, "invoke")
                if restart:
                    trial = self._pausing_tool(create, checkpointer=reopen())
                results.append(trial.result(trial.run(Command(resume="granted"), "invoke")))
        assert_same(results[1], results[0], "the run resumed after a restart")

    # ---------------------------------------------------------------- how it is done

    def _trial(self, create: Factory, middleware: Sequence[_Middleware], **changes: Any) -> Trial:
        settings: dict[str, Any] = {"answer": self.answer, "resolve": self.resolve, "options": self.options}
        return Trial(create, middleware, **(settings | changes))

    def _compare_entries(self, create: Factory, entry: EntryPoint, reference: EntryPoint) -> None:
        seen = {}
        for each in (reference, entry):
            trial = self._trial(create, [self.make()])
            outcome = trial.run(self.prompt, each)
            assert outcome.error is None or isinstance(outcome.error, self.raises), f"{each} raises {outcome.error!r}"
            seen[each] = trial.seen(outcome)
        assert_same(seen[entry], seen[reference], f"{entry} against {reference}")

    def _pair(self, create: Factory) -> list[_Middleware]:
        """Two instances; LangChain's factory wants different names, so the second gets a class of its own there."""
        first, second = self.make(), self.make()
        if create is langchain_create_agent:
            second.__class__ = type(f"Second{type(second).__name__}", (type(second),), {})
            if first.name == second.name:
                pytest.skip(f"this factory refuses two middleware named {first.name!r}")
        return [first, second]

    def _pausing_tool(self, create: Factory, **changes: Any) -> Trial:
        def answer(request: Request) -> Any:
            return "done" if _answers(request) else ai("", tool_call("lookup", {"key": "price"}))

        def ask(key: str) -> str:
            return str(interrupt(QUESTION))

        return self._trial(create, [self.make()], answer=answer, lookup=ask, **changes)

    def _pause_and_resume(self, trial: Trial, entry: EntryPoint, attempts: Callable[[Trial], int]) -> None:
        paused = trial.run(self.prompt, entry)
        assert [i.value for i in paused.interrupts] == [QUESTION], (
            f"{entry}: the pause did not come through; the run gave {paused.error or paused.values!r}"
        )
        assert attempts(trial) == 1, f"{entry}: {attempts(trial)} attempts before the pause instead of one"
        done = trial.run(Command(resume="granted"), entry)
        stopped = done.error or done.interrupts
        assert not stopped, f"{entry}: resumed, the run gave {stopped!r}"
        assert any("granted" in str(m.text) for m in done.messages), f"{entry}: the answer to the pause was lost"

    def _failure(self, create: Factory, handled: bool, **planted: Any) -> None:
        for entry in _SYNC_AND_ASYNC:
            error = self._trial(create, [self.make()], **planted).run(self.prompt, entry).error
            if handled:
                assert not isinstance(error, Boom), f"{entry}: the error is to be handled, but left the run"
            else:
                bare = self._trial(create, [], **planted).run(self.prompt, entry).error
                assert comparable(error) == comparable(bare), f"{entry}: the run gave {error!r} instead of {bare!r}"


def _answers(request: Request) -> int:
    """How many answers of the model the request shows."""
    return sum(isinstance(m, AIMessage) for m in request.messages)
