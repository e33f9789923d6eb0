"""Read models: PostgreSQL tables written from STATE by one reader, disposable, rebuilt from the log.

Import from the modules; this package holds no code of its own.
"""
