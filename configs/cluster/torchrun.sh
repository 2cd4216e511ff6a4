#!/bin/bash
# Trains on several machines without a scheduler. Run the same line on each, NODE_RANK counted from 0:
#   NODES=2 NODE_RANK=0 MASTER=host0:29500 configs/cluster/torchrun.sh --config configs/experiment/NAME.yaml --run_dir /shared/runs/a
# Started again after a failure, it goes on from the newest complete checkpoint.
set -euo pipefail

: "${NODES:?number of machines}" "${NODE_RANK:?number of this machine, from 0}" "${MASTER:?host:port of machine 0}"
GPUS="${GPUS:-8}"

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1

exec torchrun \
  --nnodes "${NODES}" --node-rank "${NODE_RANK}" --nproc-per-node "${GPUS}" \
  --rdzv-backend c10d --rdzv-endpoint "${MASTER}" --rdzv-id "${RDZV_ID:-smmd}" \
  --rdzv-conf "is_host=$([[ "${NODE_RANK}" == 0 ]] && echo 1 || echo 0)" \
  --max-restarts "${RESTARTS:-0}" \
  train.py fit "$@" \
  --resume auto \
  --trainer.num_nodes "${NODES}" \
  --trainer.devices "${GPUS}"
