#!/usr/bin/env bash
# The tests on a machine with a GPU and a torch of its own, without a network: tests/gpu/run.sh [unit] [notebooks] [curves]
# The wheels come from a folder (WHEELS, .wheels) that tests/gpu/gather.sh fills; they are installed into a scratch folder.
# PYTHON (python3) has the machine's torch; DEVICE (cuda), WORKERS (8 processes); reports go to OUT (gpu_report/).
set -euo pipefail
cd "$(dirname "$0")/../.."

PYTHON=${PYTHON:-python3}
DEVICE=${DEVICE:-cuda}
WORKERS=${WORKERS:-8}
WHEELS=${WHEELS:-.wheels}
OUT=${OUT:-gpu_report}
parts=" ${*:-unit notebooks curves} "

stop() { echo "$*" >&2; exit 1; }

for part in $parts; do
  case $part in unit | notebooks | curves) ;; *) stop "no part is called '$part'; there are unit, notebooks, curves" ;; esac
done
command -v "$PYTHON" >/dev/null || stop "There is no $PYTHON: PYTHON=... names the Python that has this machine's torch."

"$PYTHON" tests/gpu/ready.py "$DEVICE"

cmp -s tests/gpu/requirements.txt "$WHEELS/requirements.txt" || {
  echo "The folder $WHEELS does not hold the wheels of tests/gpu/requirements.txt; collecting them ..."
  PYTHON_VERSION=${PYTHON_VERSION:-$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')} \
    ARCH=${ARCH:-$(uname -m)} PYTHON=$PYTHON bash tests/gpu/gather.sh "$WHEELS"
}

site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
"$PYTHON" -m pip --isolated install --quiet --no-index --no-deps --target "$site" "$WHEELS"/*.whl || stop \
  "The wheels in $WHEELS do not fit this Python (pip's reason stands above). Collect them for it:" \
  "PYTHON_VERSION=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])') tests/gpu/gather.sh $WHEELS"
export PYTHONPATH="$site:$PWD" JUPYTER_PATH="$site/share/jupyter"

mkdir -p "$OUT"
failed=0
echo 'Not run here: the parts browser and class of make test (they need JupyterLab, Chromium, nbgrader, node).'
tested=()
for part in unit notebooks; do
  [[ $parts == *" $part "* ]] && tested+=("$part")
done
if ((${#tested[@]})); then
  "$PYTHON" tests/parts.py --workers "$WORKERS" --device "$DEVICE" --reports "$OUT" "${tested[@]}" || failed=1
fi
if [[ $parts == *' curves '* && $DEVICE == cuda ]]; then  # that lessons draw beside the CPU's; a copy goes to the reports
  LESSON_DEVICE=cuda OMP_NUM_THREADS=1 "$PYTHON" -m lesson_lib experiments devices || failed=1
  curves=lesson_lib/experiments/results/devices.json
  [[ ! -f $curves ]] || cp $curves "$OUT/"
fi
exit $failed
