#!/bin/sh
# Install this package with some of its extras into .venv: `scripts/install.sh dev`.
#
# uv takes a sixth of pip's time. It does not read pip's configuration, so it is told the indexes that pip would ask.
# Where it fails all the same, pip installs.
set -eu

python=.venv/bin/python
configured() { $python -m pip config get "global.$1" 2>/dev/null || true; }

set -- -q -c constraints.txt -e ".[$1]"
index=${PIP_INDEX_URL:-$(configured index-url)}
more=${PIP_EXTRA_INDEX_URL:-$(configured extra-index-url)}

$python -m pip install -q --disable-pip-version-check -c constraints.txt uv
env ${index:+UV_DEFAULT_INDEX="$index"} ${more:+UV_INDEX="$more"} \
  UV_INDEX_STRATEGY=unsafe-best-match UV_SYSTEM_CERTS=1 \
  $python -m uv pip install --python $python "$@" ||
  $python -m pip install --disable-pip-version-check "$@"
