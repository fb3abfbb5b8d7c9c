"""What sampling costs: wall-clock, CPU seconds, tokens and KV cache, side by side in one process."""
