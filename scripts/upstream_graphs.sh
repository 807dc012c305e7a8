#!/bin/bash
# upstream_graphs.sh PYTHON [--pages FOLDER ...]: checks every graph that LangGraph's own tests build, or those that the
# code of a folder of pages builds; see graph_log.py and page_graphs.py.
# What it downloads stays in .upstream; nothing of it is kept anywhere else.
set -euo pipefail

python=$(realpath -s "$1")
shift
root=$PWD
export PYTHONPATH=$root:$root/scripts
mkdir -p .upstream
if (($#)); then
  exec "$python" scripts/page_graphs.py "$@"
fi

cd .upstream
if [[ ! -d venv ]]; then # what only these tests need, beside our own environment
  "$python" -m venv venv
  "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ours.pth"
  venv/bin/python -m pip install -q syrupy pytest-mock pytest-dotenv redis pycryptodome pyperf
fi
export GRAPH_LOG=$PWD/found.jsonl NO_DOCKER=true
rm -f "$GRAPH_LOG"
for package in langgraph langgraph-prebuilt; do
  version=$("$python" -c "from importlib.metadata import version; print(version('$package'))")
  source=${package//-/_}-$version
  if [[ ! -d $source ]]; then
    "$python" -m pip download -q --no-deps --no-binary :all: "$package==$version"
    tar -xzf "$source.tar.gz"
  fi
  (cd "$source" && PYTHONPATH=$PYTHONPATH:. ../venv/bin/python -m pytest -q -p graph_log -p no:cacheprovider \
    -k "not sqlite and not postgres and not redis and not benchmark" --ignore=tests/test_remote_graph.py) >"$package.txt" 2>&1 || true
  echo "$package $version: $(tail -n 1 "$package.txt")"
done
"$python" "$root/scripts/graph_log.py" "$GRAPH_LOG"
