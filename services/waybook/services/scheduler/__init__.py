"""The scheduler: the relay that turns commits into timers and commands, and fires of timers into commands.

Pure parts (`following`, `firing`, `allowance`) say what has to be done; `relay`, `fires` and `rounds` do it.
"""
