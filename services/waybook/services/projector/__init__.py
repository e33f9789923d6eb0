"""The projector as a child process of `run` and `up`."""
