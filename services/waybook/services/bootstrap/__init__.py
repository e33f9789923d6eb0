"""The one place that joins everything: settings, servers, ports, agents, roles."""
