"""The engine's clock, walked over the drawn edges: which nodes run in which super-step, on every way through the graph.

In a super-step all started nodes run at once; then the edges start the next ones. A plain edge starts its target each
time; a list edge when all its sources have run; a deferred node when nothing else is left to run. A router is followed
into each of the ways it can choose.

What is remembered of a run that goes on, beside the nodes it has started, is which nodes have run *aside*: some
execution of theirs did not lead to it. A node that is started again although it ran aside runs twice for one arrival
each, which is what branches of unequal length do; in a loop the second execution comes of the first, and nothing is
aside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Final, NamedTuple

from agentkit.check.shape import END, START, Shape

__all__ = ["Doubled", "Late", "Parallel", "Starved", "Walk", "Witness", "walk"]

_MOVES: Final = 10_000  # enough for any graph that a person draws; beyond, the walk says that it is not complete
_WAYS: Final = 64  # combinations of routers' choices in one super-step

Names = frozenset[str]
_NONE: Names = frozenset()


class Witness(NamedTuple):
    """One run, up to a point."""

    steps: tuple[Names, ...]
    """The nodes that run in each super-step, from super-step 1."""
    choices: tuple[tuple[str, Names], ...]
    """What routers chose on the way, where they had a choice."""

    def steps_of(self, node: str) -> list[int]:
        """The super-steps in which a node runs."""
        return [number for number, names in enumerate(self.steps, 1) if node in names]

    def chosen(self) -> str:
        """The choices in words; empty where there was none."""
        parts = [f"{node!r} goes to {_listed(ends)}" for node, ends in dict(self.choices).items()]
        return " and ".join(parts)


class Doubled(NamedTuple):
    """A node that is started again although it has run for a branch beside this one."""

    node: str
    witness: Witness
    sure: bool
    """Whether every choice on the way is told by the source."""


class Starved(NamedTuple):
    """A list edge that still waits when the run is over."""

    join: int
    missing: Names
    witness: Witness


class Parallel(NamedTuple):
    """Two nodes that run in one super-step."""

    nodes: tuple[str, str]
    witness: Witness
    sure: bool


class Late(NamedTuple):
    """A deferred node that waits for nodes which do not lead to it."""

    node: str
    waited_for: Names
    witness: Witness


@dataclass(slots=True)
class Walk:
    """What was seen on all ways through a graph; of each kind the first, which is the shortest."""

    doubled: dict[str, Doubled] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    """By doubled node: the nodes that therefore run twice as well."""
    starved: dict[int, Starved] = field(default_factory=dict)
    left_over: set[int] = field(default_factory=set)
    """The list edges that still wait at the end of some run, also where a node that ran twice is the reason."""
    fired: set[int] = field(default_factory=set)
    """The list edges that start their target on some way."""
    parallel: dict[tuple[str, str], Parallel] = field(default_factory=dict)
    late: dict[str, Late] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    complete: bool = True


class _Token(NamedTuple):
    """A start of a node, and what lies behind it."""

    aside: Names
    """The nodes of which some execution did not lead here."""
    behind: Names = _NONE
    """The nodes of which some execution led here."""
    doubled: Names = _NONE
    """The doubled nodes whose second execution led here."""


class _State(NamedTuple):
    """Between two super-steps."""

    started: tuple[tuple[str, _Token], ...]
    deferred: tuple[tuple[str, _Token, Names], ...] = ()
    """Deferred nodes that wait, each with the nodes that ran last while it waited."""
    arrived: tuple[tuple[int, tuple[tuple[str, _Token], ...]], ...] = ()
    """List edges of which some sources have run."""
    sure: bool = True


class _Step(NamedTuple):
    before: _State | None
    ran: Names
    choices: tuple[tuple[str, Names], ...]


def walk(shape: Shape) -> Walk:
    """Follow every way through a graph."""
    return _Walker(shape).walked()


class _Walker:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.seen = Walk()
        self.steps: dict[_State, _Step] = {}
        self.moves = 0
        self.joins_of: dict[str, list[int]] = {}
        for number, join in enumerate(shape.joins):
            for source in join.sources:
                self.joins_of.setdefault(source, []).append(number)

    def walked(self) -> Walk:
        queue: deque[_State] = deque()
        begin = {START: _Token(_NONE)}
        for ends, choices, sure in self._ways([START]):
            state = self._next(_State(()), begin, ends, sure)
            self._enter(state, _Step(None, _NONE, choices), queue)
        while queue:
            if self.moves > _MOVES:
                self.seen.complete = False
                break
            self._run(queue.popleft(), queue)
        return self.seen

    def _enter(self, state: _State, step: _Step, queue: deque[_State]) -> None:
        self.moves += 1
        if state not in self.steps:
            self.steps[state] = step
            queue.append(state)

    def _run(self, state: _State, queue: deque[_State]) -> None:
        """One super-step, with every way it can end."""
        if not state.started and state.deferred:
            state = self._let_go(state)
        if not state.started:
            self._ended(state)
            return
        ran = frozenset(node for node, _ in state.started)
        self.seen.reached |= ran
        self._note_parallel(state, ran)
        tokens = {node: self._left(state, node, token, ran) for node, token in state.started}
        for ends, choices, sure in self._ways(sorted(ran)):
            following = self._next(state, tokens, ends, state.sure and sure)
            self._enter(following, _Step(state, ran, choices), queue)

    def _left(self, state: _State, node: str, token: _Token, ran: Names) -> _Token:
        """What lies behind what this node starts."""
        doubled = token.doubled
        if node in token.aside:
            if not doubled:
                witness = self._witness(state, ran)
                self.seen.doubled.setdefault(node, Doubled(node, witness, state.sure))
                doubled = frozenset({node})
            for cause in doubled - {node}:
                after = self.seen.after.setdefault(cause, [])
                after += [node] if node not in after else []
        aside = token.aside
        if node in token.behind and node not in aside:  # a new round of a loop
            aside -= self.shape.reachable(node)
        return _Token(aside | (ran - {node}), token.behind | {node}, doubled)

    def _ways(self, ran: list[str]) -> Iterator[tuple[dict[str, Names], tuple[tuple[str, Names], ...], bool]]:
        """Every combination of choices: where each node leads, the choices that were made, and if they are told."""
        choices = [(node, choice) for node in ran for choice in self.shape.choices.get(node, ())]
        sure = all(choice.told for _, choice in choices)
        options = [choice.ways or (_NONE,) for _, choice in choices]
        total = 1
        for option in options:
            total *= len(option)
        self.seen.complete &= total <= _WAYS
        for picked in islice(product(*options), _WAYS):
            ends = {node: frozenset(self.shape.following.get(node, ())) for node in ran}
            for (node, _), way in zip(choices, picked, strict=True):
                ends[node] |= way - {END}
            made = tuple(
                (node, way) for (node, _), way, option in zip(choices, picked, options, strict=True) if len(option) > 1
            )
            yield ends, made, sure

    def _next(self, state: _State, tokens: Mapping[str, _Token], ends: Mapping[str, Names], sure: bool) -> _State:
        ran = frozenset(tokens) - {START}
        started: dict[str, list[_Token]] = {}
        for node, targets in ends.items():
            for target in targets:
                started.setdefault(target, []).append(tokens[node])
        arrived = self._arrivals(state, tokens, ran, started)
        waiting = {node: (_seen(token, ran), ran) for node, token, _ in state.deferred}
        for node in [node for node in started if self._is_deferred(node)]:
            before = [waiting[node][0]] if node in waiting else []
            waiting[node] = (_met([*before, *started.pop(node)]), _NONE)
        return _State(
            started=tuple(sorted((node, _met(every)) for node, every in started.items())),
            deferred=tuple(sorted((node, token, late) for node, (token, late) in waiting.items())),
            arrived=arrived,
            sure=sure,
        )

    def _arrivals(
        self, state: _State, tokens: Mapping[str, _Token], ran: Names, started: dict[str, list[_Token]]
    ) -> tuple[tuple[int, tuple[tuple[str, _Token], ...]], ...]:
        """The list edges after this step; those that are complete start their targets."""
        arrived = {number: {source: _seen(token, ran) for source, token in every} for number, every in state.arrived}
        for node, token in tokens.items():
            for number in self.joins_of.get(node, ()):
                every = arrived.setdefault(number, {})
                every[node] = _met([every[node], token]) if node in every else token
        for number, every in list(arrived.items()):
            if set(self.shape.joins[number].sources) <= every.keys():
                self.seen.fired.add(number)
                if (target := self.shape.joins[number].target) != END:
                    started.setdefault(target, []).extend(every.values())
                del arrived[number]
        return tuple(sorted((number, tuple(sorted(every.items()))) for number, every in arrived.items()))

    def _is_deferred(self, node: str) -> bool:
        return node in self.shape.nodes and self.shape.nodes[node].deferred

    def _let_go(self, state: _State) -> _State:
        """Nothing else runs: the deferred nodes start."""
        for node, _, ran_last in state.deferred:
            unrelated = frozenset(each for each in ran_last if node not in self.shape.reachable(each))
            if ran_last and unrelated == ran_last and node not in self.seen.late:
                self.seen.late[node] = Late(node, unrelated, self._witness(state, _NONE))
        started = tuple((node, token) for node, token, _ in state.deferred)
        let_go = state._replace(started=started, deferred=())
        self.steps.setdefault(let_go, self.steps[state])
        return let_go

    def _note_parallel(self, state: _State, ran: Names) -> None:
        for one in ran:
            for two in ran:
                if one < two:
                    known = self.seen.parallel.get((one, two))
                    if known is None or (state.sure and not known.sure):
                        self.seen.parallel[(one, two)] = Parallel((one, two), self._witness(state, ran), state.sure)

    def _ended(self, state: _State) -> None:
        for number, every in state.arrived:
            self.seen.left_over.add(number)
            if state.sure and number not in self.seen.starved and not any(token.doubled for _, token in every):
                missing = frozenset(self.shape.joins[number].sources) - {source for source, _ in every}
                self.seen.starved[number] = Starved(number, missing, self._witness(state, _NONE))

    def _witness(self, state: _State, ran: Names) -> Witness:
        """The run that leads to a state, and the step after it."""
        steps = [ran] if ran else []
        choices: list[tuple[str, Names]] = []
        at: _State | None = state
        while at is not None:
            step = self.steps[at]
            steps += [step.ran] if step.ran else []
            choices += reversed(step.choices)
            at = step.before
        return Witness(tuple(reversed(steps)), tuple(reversed(choices)))


def _seen(token: _Token, ran: Names) -> _Token:
    """A token that waited while others ran, none of which led to it."""
    return token._replace(aside=token.aside | ran)


def _met(tokens: Iterable[_Token]) -> _Token:
    """Several starts of one node in one super-step are one: whatever led to any of them led to it."""
    every = list(tokens)
    aside = every[0].aside
    behind = doubled = _NONE
    for token in every:
        aside &= token.aside
        behind |= token.behind
        doubled |= token.doubled
    return _Token(aside, behind, doubled)


def _listed(names: Iterable[str]) -> str:
    return ", ".join("the end" if name == END else repr(name) for name in sorted(names))
