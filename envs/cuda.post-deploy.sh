#!/bin/sh -eu
# Run in the new conda environment and the project's folder. After a change of the lock: snakemake --conda-cleanup-envs, or remove
# .snakemake/conda.
python -m pip install --no-deps --requirement envs/cuda.lock
python -m pip install --no-deps --no-build-isolation --editable .
