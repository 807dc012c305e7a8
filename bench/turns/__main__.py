"""What a turn costs: agentkit in both granularities beside LangChain's factory, a bare loop and two other frameworks.

The model is scripted and answers at once, so what is left is the framework. All contenders of a scenario take turns,
round by round, within one run of this program, so that other programs disturb all alike. The other frameworks are in
processes and an environment of their own, which is made on first use. Told are medians with the middle half of the
rounds, and the ratio of each round.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import page
from bench.turns import peers, processes, provider, runs, threads
from bench.turns.measuring import Result, measure
from bench.turns.pictures import draw
from bench.turns.scenario import Bench, LeftOut, Scenario
from bench.turns.telling import tables, targets

SCENARIOS: tuple[Scenario, ...] = tuple(
    sorted(
        (*runs.SCENARIOS, *threads.SCENARIOS, *provider.SCENARIOS, *processes.SCENARIOS),
        key=lambda scenario: scenario.name[:2],
    )
)
PAGE = page.DOCS / "performance.md"
JSON = page.DOCS / "bench" / "turns.json"
_PICTURES = {
    "turns.png": "Both granularities as a share of LangChain's",
    "threads.png": "Time and bytes of a thread over its length, by contender and store",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    given = _parser().parse_args(arguments)
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in given.only or () if name not in known]:
        return _refused(f"there is no scenario {unknown[0]!r}; there are: {', '.join(known)}.")
    if given.docs and given.quick:
        return _refused("--docs wants the full sizes; leave out --quick.")
    chosen = [known[name] for name in given.only] if given.only else list(SCENARIOS)
    rounds = given.rounds or (1 if given.quick else 9)
    begun = time.perf_counter()
    results, stopped = _all(chosen, rounds, given.quick, given.peers)
    about = _about(given.peers)
    print(f"\n{tables(results)}\n\n{targets(results)}\n")
    print(f"{_tell(about)}. {time.perf_counter() - begun:.0f} s.")
    if given.json:
        given.json.write_text(json.dumps({**about, "rows": results}, indent=1) + "\n")
    if given.docs:
        _document(about, results)
    return 130 if stopped else 0  # as shells tell of Ctrl-C


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["scenarios:", *(f"  {one.name:<6} {one.about}" for one in SCENARIOS)])
        + '\n\nexample: make bench ARGS="--only S1 S1h --rounds 5 --no-peers"',
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios (default: all)")
    parser.add_argument(
        "--rounds", type=_positive, metavar="N", help="rounds per scenario, fewer where one takes long (default: 9)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: to see that all of it works")
    parser.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="pydantic-ai and openai-agents as well; they are installed into .venv-peers (default: yes)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument(
        "--docs",
        action="store_true",
        help="write tables, JSON and pictures into docs; of scenarios left out, what is there is kept",
    )
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _refused(why: str) -> int:
    print(f"bench: {why}", file=sys.stderr)
    return 2


def _all(chosen: Sequence[Scenario], rounds: int, quick: bool, with_peers: bool) -> tuple[list[Result], bool]:
    """Measure scenarios, until Ctrl-C; whether that was so."""
    others = _peers() if with_peers else None
    results: list[Result] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the packages' own; they belong to no table
            for one in chosen:
                results += _one(one, rounds, quick, others)
    except KeyboardInterrupt:
        _say("stopped; what was measured until now:")
        return results, True
    finally:
        if others:
            others.close()
    return results, False


def _peers() -> peers.Peers | None:
    try:
        return peers.Peers()
    except LeftOut as why:
        _say(f"pydantic-ai and openai-agents are left out: {why}")
        return None


def _one(scenario: Scenario, rounds: int, quick: bool, others: peers.Peers | None) -> list[Result]:
    """Measure a scenario; nothing where it cannot be measured here, which is said."""
    rounds = min(rounds, scenario.most or rounds)
    bench = Bench(quick, others)
    begun = time.perf_counter()
    try:
        with bench.closing:
            results = measure(scenario.prepare(bench), rounds, _progress(scenario.name, rounds)).results()
    except LeftOut as why:
        _say(f"{scenario.name} is left out: {why}")
        return []
    _say(f"{scenario.name}: {rounds} {'round' if rounds == 1 else 'rounds'}, {time.perf_counter() - begun:.1f} s")
    return results


def _progress(name: str, rounds: int) -> Callable[[int, str], None]:
    """Tells on a terminal what is being measured, on a line that is written over."""

    def tell(number: int, contender: str) -> None:
        if sys.stderr.isatty():
            where = f"round {number} of {rounds}" if number else "warming up"
            print(f"\r\033[K{name}: {where}, {contender}", end="", file=sys.stderr, flush=True)

    return tell


def _say(line: str) -> None:
    print(f"\r\033[K{line}" if sys.stderr.isatty() else line, file=sys.stderr, flush=True)


def _about(with_peers: bool) -> dict[str, Any]:
    found = {name: version(name) for name in ("langchain", "langgraph", "langchain-core")}
    return {
        "command": "make bench",
        "python": platform.python_version(),
        "versions": {**found, **(peers.versions() if with_peers else {})},
    }


def _tell(about: dict[str, Any]) -> str:
    return ", ".join([f"Python {about['python']}", *(f"{name} {found}" for name, found in about["versions"].items())])


def _document(about: dict[str, Any], results: Sequence[Result]) -> None:
    results = _with_kept(about, results)
    JSON.write_text(json.dumps({**about, "rows": results}, indent=1) + "\n")
    drawn = draw(results, JSON.parent)
    if not drawn:
        _say("no pictures: matplotlib is not installed")
    pictures = "".join(f"![{_PICTURES[name]}](bench/{name})\n\n" for name in drawn)
    page.write(PAGE, "make bench, measured", f"{pictures}{tables(results)}\n\n{_tell(about)}.")
    page.write(PAGE, "make bench, targets", targets(results))


def _with_kept(about: dict[str, Any], results: Sequence[Result]) -> list[Result]:
    """With the rows that were not measured this time, if they were measured with the same versions."""
    before = json.loads(JSON.read_text()) if JSON.exists() else {}
    then, now = before.get("versions", {}), about["versions"]
    is_same = bool(then) and all(then[name] == now[name] for name in then.keys() & now.keys())
    kept = before["rows"] if is_same and before["python"] == about["python"] else []
    by_name = {row["row"]: row for row in [*kept, *results]}
    return sorted(by_name.values(), key=_place)


def _place(row: Result) -> int:
    """Where the row's scenario stands: the one that is named as the row begins, `S3p-100.bytes` in `S3p`."""
    names = [scenario.name for scenario in SCENARIOS]
    return names.index(max((name for name in names if row["row"].startswith(name)), key=len))


if __name__ == "__main__":
    sys.exit(main())
