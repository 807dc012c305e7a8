#!/bin/bash
# upstream_graphs.sh PYTHON: runs LangGraph's own tests and checks every graph that they build; see upstream_graphs.py.
# What it downloads stays in .upstream; nothing of it is kept anywhere else.
set -euo pipefail

python=$(realpath -s "$1")
root=$PWD
version=$("$python" -c 'from importlib.metadata import version; print(version("langgraph"))')
mkdir -p .upstream
cd .upstream
if [[ ! -d langgraph-$version ]]; then
  "$python" -m pip download -q --no-deps --no-binary :all: "langgraph==$version"
  tar -xzf "langgraph-$version.tar.gz"
fi
if [[ ! -d venv ]]; then # what only these tests need, beside our own environment
  "$python" -m venv venv
  "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ours.pth"
  venv/bin/python -m pip install -q syrupy pytest-mock pytest-dotenv redis pycryptodome pyperf
fi
log=$PWD/found.jsonl
rm -f "$log"
cd "langgraph-$version"
NO_DOCKER=true UPSTREAM_GRAPHS=$log PYTHONPATH=$root:$root/scripts:. ../venv/bin/python -m pytest -q -p upstream_graphs \
  -k "not sqlite and not postgres and not redis and not benchmark" --ignore=tests/test_remote_graph.py >../pytest.txt 2>&1 || true
tail -n 1 ../pytest.txt
cd "$root" && PYTHONPATH=$root "$python" scripts/upstream_graphs.py "$log"
