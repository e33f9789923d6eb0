"""The interpreter of pipeline cases: given, actions and expect, carried out on the real product."""
