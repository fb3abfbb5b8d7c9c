"""The base policy: a small Qwen3 trained from scratch on worked solutions, or a model that a card names."""
