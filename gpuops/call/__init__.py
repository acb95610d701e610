"""Calls: binding of arguments, cache keys, the launch cache, and dispatch on a miss."""
