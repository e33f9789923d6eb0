"""How often a step has failed in a run (DESIGN 4, "Retry"): attempts that fail side by side are one failure of the step.

Executions of a wide step are its branches, and an outage of what they all need breaks all of them at once; counted one by
one, three branches would use up every attempt in a moment. Deaths of workers are counted likewise (`waybook.engine.claims`).
"""

from waybook.engine.run import Action, Run, execution_key


def failures_with(run: Run, action: Action) -> int:
    """The step's count when `action` has failed, too.

    Among the executions that are not completed it grows with the one that failed most often: none is tried more often
    than the step may fail.
    """
    known = run.failures.get(action.step, 0)
    if not known:
        return 1
    often: dict[str, int] = {}
    for other in run.actions.values():
        if other.step == action.step and other.walk == action.walk and other.failures and other.id != action.id:
            often[other.trigger] = often.get(other.trigger, 0) + 1
    own = often.pop(action.trigger, 0) + 1
    beside = (n for trigger, n in often.items() if not _is_completed(run, action, trigger))
    return known if max(beside, default=0) >= own else known + 1


def _is_completed(run: Run, action: Action, trigger: str) -> bool:
    newest = run.executions.get(execution_key(action.walk, action.step, trigger))
    return newest is not None and run.actions[newest].status == "completed"
