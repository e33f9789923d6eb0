"""Probes of what NATS really does, run by `waybook streams check --probe`: a deviation means that a rule of the
commit protocol, the leases or the timers no longer rests on what its reasons say."""

from waybook.adapters.nats.probes.probe import Probe, ProbeResult, Seen
from waybook.adapters.nats.probes.running import PROBES, run_probe, run_probes

__all__ = ["PROBES", "Probe", "ProbeResult", "Seen", "run_probe", "run_probes"]
