#!/bin/bash
# Generation as a job of a running Ray cluster (needs ray[default] on the head node and here).
#
#   docs/examples/generate_on_ray.sh http://10.0.0.1:8265 studies/mine.yaml /shared/exports
#
# Paths are those of the head node, where the command runs. It takes a CPU of no worker; `ray job stop` is its Ctrl-C.
set -euo pipefail

address=${1:?the address of the dashboard, for example http://10.0.0.1:8265}
study=${2:?the study, for example studies/mine.yaml}
exports=${3:?the folder of records, or an address such as s3://bucket/studies}
exec ray job submit --address "$address" -- \
    python -m generation.run --study "$study" --exports "$exports" --ray auto
