"""Which system aggregates a decision looks at; they are read only then, since each costs a read from the leader."""

from collections.abc import Sequence

from waybook.engine.definition import Definition
from waybook.engine.inputs import Completed, Continue, Decide, Delivered, Failed, Input, Retry, Signal
from waybook.engine.intents import UNDO, Compensate, Intend, Settle

POLICY, GRANTS, THREAD = "policy", "grants", "thread"

RESERVATION = "reservation:"
"""What begins the name of a reservation whose ledger is needed."""

NONE: frozenset[str] = frozenset()
DECIDING = frozenset({POLICY, GRANTS})


def needs(definition: Definition, inputs: Sequence[Input]) -> frozenset[str]:
    """Names of the aggregates that deciding on `inputs` needs; empty for all that the plain walk brings."""
    reads = definition.reads
    found = NONE
    for one in inputs:
        if isinstance(one, Completed):
            if one.contracts:
                found |= {POLICY}
            if reads:
                for output in one.outputs:
                    found |= reads.get(output.event, NONE)
        elif isinstance(one, Delivered):
            body = one.body
            if isinstance(body, Compensate | Settle):
                found |= {POLICY}
            elif isinstance(body, Decide):
                found |= DECIDING.union(*reads.values())
            elif reads and isinstance(body, Signal):
                found |= reads.get(body.output.event, NONE)
            elif reads and isinstance(body, Retry | Continue):
                found |= NONE.union(*reads.values())  # what came while the run was failed is put before the table
        elif isinstance(one, Settle):
            if one.key.startswith(UNDO):  # the next undoing may begin with it
                found |= {POLICY}
        elif isinstance(one, Intend):
            found |= DECIDING if one.approval is not None else {POLICY}
            if one.name in definition.table.intents:
                found |= frozenset(definition.table.intents[one.name].reads)
            if one.reservation is not None:
                found |= {RESERVATION + one.reservation}
        elif reads and isinstance(one, Failed):
            found |= reads.get("StepFailed", NONE)
    return found
