"""The base policy: a small Qwen3 trained from scratch on worked solutions."""
