"""Gives commands to runs and system aggregates for people, and waits for the walker's answer."""
