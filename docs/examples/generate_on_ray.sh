#!/bin/bash
# Generation as a job of a running Ray cluster (needs ray[default] on the head node, before `ray start`, and here).
#
#   docs/examples/generate_on_ray.sh http://127.0.0.1:8265 studies/mine.yaml /shared/exports
#
# The command runs on the head node, in the folder and with the environment in which `ray start --head` was called there:
# relative paths are from that folder. It takes a CPU of no worker; `ray job stop` is its Ctrl-C.
set -euo pipefail

address=${1:?the address of the dashboard, for example http://127.0.0.1:8265}
study=${2:?the study, for example studies/mine.yaml}
exports=${3:?the folder of records, or an address such as s3://bucket/studies}
stop='{"env_vars": {"RAY_JOB_STOP_SIGNAL": "SIGINT", "RAY_JOB_STOP_WAIT_TIME_S": "30"}}'
exec ray job submit --address "$address" --runtime-env-json "$stop" -- \
    plumbline generate --study "$study" --exports "$exports" --ray auto
