"""Carries out dispatcher cases: agents are built from the data as real source text and walked by real walkers."""
