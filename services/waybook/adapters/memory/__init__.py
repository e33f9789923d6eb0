"""The ports in memory: for tests, with a clock that the test moves and failures on demand, and for trying things out.

They keep the contract of the NATS ports, the parts included that are easy to get wrong: verbs of old deliveries are
honoured, leases lapse, a second commit on a taken place is a conflict. Nothing survives the process.
"""
