"""Running the pipeline: what it will cost (`plan`), whether a machine can do it (`doctor`), where a number comes from (`trace`)."""
