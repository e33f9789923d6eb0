"""Server fixtures for every test: see `waybook.testing.pytest_plugin`."""

pytest_plugins = ["waybook.testing.pytest_plugin"]
