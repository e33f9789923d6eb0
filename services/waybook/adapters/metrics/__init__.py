"""Metrics for Prometheus: hooks that count, looks at what cannot be counted, and `/metrics` over HTTP.

Needs the extra `metrics`; only `listening` does without it.
"""
