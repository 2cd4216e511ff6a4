#!/usr/bin/env bash
# Benchmarks on one GPU in bfloat16, in under 8 minutes; see benchmarks/gpu.py.
#   bash benchmarks/gpu.sh            on a card; the result goes to benchmarks/results/gpu.md
#   bash benchmarks/gpu.sh --toy      on a CPU at toy size
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Three runs of each variant keep within the time; --runs 5 where there is more of it.
exec timeout "${LIMIT:-480}" "${PYTHON:-python}" -m benchmarks.gpu --runs 3 "$@"
