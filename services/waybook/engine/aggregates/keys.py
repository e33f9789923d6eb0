"""The names of system aggregates: agents that begin with `@`, whose run token is the scope."""

from waybook.events.subjects import RUN_TOKEN, RunKey, check_token, digest_token

ONE = "_"
"""The run token of an aggregate of which a tenant has one."""

DAY_MS = 86_400_000


def policy_key(tenant: str) -> RunKey:
    """The tenant's `@policy`."""
    return RunKey(tenant, "@policy", ONE)


def grants_key(tenant: str) -> RunKey:
    """The tenant's `@grants`."""
    return RunKey(tenant, "@grants", ONE)


def thread_key(tenant: str, thread: str) -> RunKey:
    """A conversation; `thread` is its token. Raises InvalidInput when it is none."""
    return RunKey(tenant, "@thread", check_token("thread", thread, RUN_TOKEN))


def budget_key(tenant: str, scope: str, now: int) -> RunKey:
    """The ledger of `scope` for the day of `now` (ms, UTC; a day ends at midnight UTC)."""
    return RunKey(tenant, "@budget", check_token("budget", f"{scope}-{now // DAY_MS}", RUN_TOKEN))


def outcomes_key(tenant: str, at: int) -> RunKey:
    """What became of the unattended replies of the day of `at` (ms, UTC)."""
    return RunKey(tenant, "@outcomes", f"replies-{at // DAY_MS}")


def category_key(tenant: str, category: str) -> RunKey:
    """What people made of the drafts for a category of mails. Raises InvalidInput for what no subject may name."""
    return RunKey(tenant, "@category", check_token("category", category, RUN_TOKEN))


def sender_key(tenant: str, address: str) -> RunKey:
    """The rates of one sender, by the digest of the address in lower case."""
    return RunKey(tenant, "@sender", digest_token(tenant, "sender", address.lower()))
