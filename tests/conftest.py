"""Server fixtures for every test (`waybook.testing.pytest_plugin`), and the options of the conformance cases."""

pytest_plugins = ["waybook.testing.pytest_plugin", "tests.conformance.plugin"]
