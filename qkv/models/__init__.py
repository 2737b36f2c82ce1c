"""Models put together from layers as a configuration says."""
