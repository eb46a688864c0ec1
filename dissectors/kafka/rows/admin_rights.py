"""Admin APIs about who may do what: ACLs, SCRAM users, quotas, delegation tokens; request and answer in, changes out.

Code numbers: AclOperation, AclPermissionType, ResourceType, PatternType and ScramMechanism of the Java client 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.core.secrets import masked
from wirewitness.dissectors.kafka.rows.admin_change import Change, Error, error_of, errors_by, listed
from wirewitness.dissectors.kafka.schema.primitives import Value

_NO_ERROR: Error = (None, None)
_RESOURCES = ("unknown", "any", "topic", "group", "cluster", "transactional_id", "delegation_token", "user")
_PATTERNS = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_OPERATIONS = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
_MECHANISMS = ("unknown", "SCRAM-SHA-256", "SCRAM-SHA-512")
# An ACL of a version without pattern types is for one name.
_LITERAL = 3


def create_acls(asked: Value, answer: Value | None) -> Iterator[Change]:
    """Answers stand in the order of the request."""
    answers = (answer or {}).get("results") or []
    for number, acl in enumerate(asked["creations"]):
        error = error_of(answers[number]) if number < len(answers) else _NO_ERROR
        pattern = acl.get("resource_pattern_type", _LITERAL)
        change = f"add {_rule(acl, pattern, acl['principal'], acl['host'])}"
        yield Change(_named(_RESOURCES, acl["resource_type"]), acl["resource_name"], change, *error)


def delete_acls(asked: Value, answer: Value | None) -> Iterator[Change]:
    """One row for each filter; a filter's null means any."""
    answers = (answer or {}).get("filter_results") or []
    for number, one in enumerate(asked["filters"]):
        found = answers[number] if number < len(answers) else None
        rule = _rule(one, one.get("pattern_type_filter", _LITERAL), one["principal_filter"], one["host_filter"])
        matched = "" if found is None else f", {len(found['matching_acls'])} matched"
        resource = _named(_RESOURCES, one["resource_type_filter"])
        yield Change(resource, one["resource_name_filter"], f"remove {rule}{matched}", *error_of(found))


def _rule(acl: Value, pattern: int, principal: str | None, host: str | None) -> str:
    permission = _named(_PERMISSIONS, acl["permission_type"])
    operation = _named(_OPERATIONS, acl["operation"])
    who = f"for {masked(principal or 'anybody')} from {host or 'anywhere'}"
    return f"{permission} {operation} {who} ({_named(_PATTERNS, pattern)})"


def alter_scram(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = errors_by((answer or {}).get("results"), "user")
    for one in asked["deletions"]:
        change = f"remove {_named(_MECHANISMS, one['mechanism'])}"
        yield Change("user", masked(one["name"]), change, *errors.get(one["name"], _NO_ERROR))
    for one in asked["upsertions"]:
        change = f"set {_named(_MECHANISMS, one['mechanism'])} iterations={one['iterations']}"
        yield Change("user", masked(one["name"]), change, *errors.get(one["name"], _NO_ERROR))


def alter_quotas(asked: Value, answer: Value | None) -> Iterator[Change]:
    """An entity name of null is the default of its type."""
    errors = {_entity(one): error_of(one) for one in (answer or {}).get("entries") or ()}
    for entry in asked["entries"]:
        name = _entity(entry)
        ops = [f"remove {op['key']}" if op["remove"] else f"set {op['key']}={op['value']:.15g}" for op in entry["ops"]]
        yield Change("quota", name, ", ".join(ops), *errors.get(name, _NO_ERROR))


def _entity(entry: Value) -> str:
    parts = [
        f"{one['entity_type']}={'<default>' if one['entity_name'] is None else masked(one['entity_name'])}"
        for one in entry["entity"]
    ]
    return ",".join(sorted(parts))


def create_token(asked: Value, answer: Value | None) -> Iterator[Change]:
    """The token's id is in the answer, and its owner; the password that is there too is masked by the schema."""
    words = ["create"]
    owner = answer if answer and answer.get("error_code") == 0 else None
    if owner is not None:
        words.append(f"owner={owner['principal_type']}:{masked(owner['principal_name'])}")
    elif asked.get("owner_principal_name"):
        words.append(f"owner={asked['owner_principal_type']}:{masked(asked['owner_principal_name'])}")
    if asked["renewers"]:
        renewers = [f"{one['principal_type']}:{masked(one['principal_name'])}" for one in asked["renewers"]]
        words.append(f"renewers={listed(renewers)}")
    words.append(f"max_lifetime_ms={asked['max_lifetime_ms']}")
    token_id = owner["token_id"] if owner is not None else None
    yield Change("delegation_token", token_id, " ".join(words), *error_of(answer))


def renew_token(asked: Value, answer: Value | None) -> Iterator[Change]:
    """The request names the token by its secret only, so there is no name to give."""
    yield Change("delegation_token", None, f"renew renew_period_ms={asked['renew_period_ms']}", *error_of(answer))


def expire_token(asked: Value, answer: Value | None) -> Iterator[Change]:
    change = f"expire expiry_time_period_ms={asked['expiry_time_period_ms']}"
    yield Change("delegation_token", None, change, *error_of(answer))


def _named(names: tuple[str, ...], code: int) -> str:
    return names[code] if 0 <= code < len(names) else str(code)
