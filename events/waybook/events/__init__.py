"""The contract: what stands on Waybook's streams, for every process that writes or reads them.

Import from the modules; this package holds no code of its own.
"""
