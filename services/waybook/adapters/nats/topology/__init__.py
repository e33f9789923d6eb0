"""What Waybook needs of a NATS server: streams, consumers, buckets; declared in `streams.yaml`, compared, made.

Every role starts with `load_topology`, then `apply` (the owner of an embedded server) or `check` (a deployment).
"""

from waybook.adapters.nats.topology.applying import apply
from waybook.adapters.nats.topology.checking import check
from waybook.adapters.nats.topology.declaration import Consumer, Stream, Topology
from waybook.adapters.nats.topology.durability import SyncProof, prove_sync
from waybook.adapters.nats.topology.errors import NeedsPerson, TopologyFileError
from waybook.adapters.nats.topology.file import load_topology
from waybook.adapters.nats.topology.planning import Change, Plan, plan
from waybook.adapters.nats.topology.report import Finding, Report

__all__ = [
    "Change",
    "Consumer",
    "Finding",
    "NeedsPerson",
    "Plan",
    "Report",
    "Stream",
    "SyncProof",
    "Topology",
    "TopologyFileError",
    "apply",
    "check",
    "load_topology",
    "plan",
    "prove_sync",
]
