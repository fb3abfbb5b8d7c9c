"""Typed presets, hashes of their slices and the paths of everything a preset makes."""

from ibtpo.config.load import ConfigError, load
from ibtpo.config.models import Config
from ibtpo.config.paths import Paths

__all__ = ["Config", "ConfigError", "Paths", "load"]
