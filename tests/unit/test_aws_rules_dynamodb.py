"""Each limit on requests to DynamoDB: what AWS takes passes, what it refuses does not (C59, C62, C66)."""

from typing import Any

import pytest

from shared.store import keys
from tests.support.aws_rules import problems
from tests.support.aws_rules_items import MAX_ITEM_BYTES, item_bytes

KEY = {"pk": {"S": "job#a"}, "sk": {"S": "job"}}


def found(operation: str, **params: Any) -> list[str]:
    return problems("dynamodb", operation, {"TableName": "t", **params})


def put(**attributes: Any) -> list[str]:
    return found("PutItem", Item={**KEY, **attributes})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": ""}
    for _ in range(levels - 1):
        value = {"L": [value]}
    return value


@pytest.mark.parametrize(
    "attributes",
    [
        {"pk": {"S": "x" * 2048}},
        {"sk": {"S": "x" * 1024}},
        {"due_key": {"S": "2026-11-29T12:00#3"}, "due_at": {"S": "2026-11-29T12:00:05"}},
        {"text": {"S": ""}},
        {"number": {"N": "9" * 38}},
        {"number": {"N": "1" + "0" * 38}},
        {"number": {"N": "-0.00012345678901234567890123456789012345678"}},
        {"number": {"N": "9.99E+125"}},
        {"number": {"N": "1E-130"}},
        {"set": {"SS": ["a", "b"]}},
        {"deep": nested(32)},
        {"ttl": {"N": "1798711200"}},
        {"flag": {"BOOL": True}, "none": {"NULL": True}, "bytes": {"B": b"x"}, "map": {"M": {}}},
    ],
)
def test_items_that_pass(attributes: dict[str, Any]) -> None:
    assert put(**attributes) == []


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"pk": {"S": ""}}, "pk is a key"),
        ({"pk": {"N": "1"}}, "pk is a key"),
        ({"pk": {"S": "x" * 2049}}, "at most 2048 bytes"),
        ({"pk": {"S": "語" * 700}}, "at most 2048 bytes, not 2100"),
        ({"sk": {"S": ""}}, "sk is a key"),
        ({"sk": {"S": "x" * 1025}}, "at most 1024 bytes"),
        ({"due_key": {"S": ""}}, "due_key is a key"),
        ({"due_key": {"NULL": True}}, "due_key is a key"),
        ({"due_at": {"N": "5"}}, "due_at is a key"),
        ({"due_at": {"S": "x" * 1025}}, "at most 1024 bytes"),
        ({"number": {"N": "9" * 39}}, "38 significant digits, not 39"),
        ({"number": {"N": "0." + "12345678" * 5}}, "38 significant digits, not 40"),
        ({"number": {"N": "1E+126"}}, "magnitude"),
        ({"number": {"N": "1E-131"}}, "magnitude"),
        ({"number": {"N": "NaN"}}, "is not a number"),
        ({"number": {"N": "Infinity"}}, "is not a number"),
        ({"number": {"N": ""}}, "is not a number"),
        ({"map": {"M": {"a": {"L": [{"N": "x"}]}}}}, r"map.a[0]: 'x' is not a number"),
        ({"set": {"SS": []}}, "empty set"),
        ({"set": {"SS": ["a", "a"]}}, "twice"),
        ({"set": {"NS": ["1", "1.0"]}}, "twice"),
        ({"set": {"SS": ["a", ""]}}, "empty value"),
        ({"set": {"NS": ["1", "x"]}}, "is not a number"),
        ({"deep": nested(33)}, "deeper than 32"),
        ({"none": {"NULL": False}}, "NULL can only be true"),
        ({"both": {"S": "a", "N": "1"}}, "one value with one type"),
        ({"neither": {}}, "one value with one type"),
        ({"ttl": {"S": "1798711200"}}, "would never expire"),
        ({"ttl": {"N": "1798711200.5"}}, "would never expire"),
        ({"ttl": {"N": "1798711200000"}}, "would never expire"),
        ({"big": {"S": "x" * MAX_ITEM_BYTES}}, "at most 409600 bytes"),
    ],
)
def test_items_that_fail(attributes: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in put(**attributes))


def test_an_item_has_its_key() -> None:
    assert "no key attribute sk" in found("PutItem", Item={"pk": {"S": "a"}})[0]


def test_the_largest_item_passes() -> None:
    room = MAX_ITEM_BYTES - item_bytes({**KEY, "big": {"S": ""}})
    assert put(big={"S": "x" * room}) == []
    assert put(big={"S": "x" * (room + 1)}) != []


@pytest.mark.parametrize(
    ("attribute", "size"),
    [
        ({"S": "ü"}, 2),
        ({"N": "0"}, 1),
        ({"N": "123"}, 3),
        ({"N": "-123"}, 4),
        ({"N": "1000"}, 2),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"B": b"123"}, 3),
        ({"SS": ["a", "bc"]}, 3),
        ({"L": [{"S": "ab"}]}, 3 + 1 + 2),
        ({"M": {"name": {"S": "ab"}}}, 3 + 1 + 4 + 2),
    ],
)
def test_sizes(attribute: dict[str, Any], size: int) -> None:
    assert item_bytes({"attribute": attribute}) == len("attribute") + size


@pytest.mark.parametrize("key", [{"pk": {"S": "a"}}, {**KEY, "more": {"S": "a"}}, {}])
@pytest.mark.parametrize("operation", ["GetItem", "DeleteItem", "UpdateItem"])
def test_a_key_is_exactly_the_key(operation: str, key: dict[str, Any]) -> None:
    assert "a key is exactly ['pk', 'sk']" in found(operation, Key=key)[0]


NAMES = {"#s": "status", "#f": "fence", "#m": "map", "#k": "due_key", "#p": "pk"}
VALUES = {
    ":s": {"S": "x"},
    ":n": {"N": "1"},
    ":b": {"BOOL": True},
    ":l": {"L": []},
    ":e": {"S": ""},
    ":z": {"SS": ["a"]},
}


def expression(kind: str, text: str, operation: str = "UpdateItem", **more: Any) -> list[str]:
    """With just those names and values that the text has in it."""
    names = {name: attribute for name, attribute in NAMES.items() if name in text}
    values = {name: value for name, value in VALUES.items() if name in text}
    params = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return found(
        operation,
        **({"Key": KEY} if operation == "UpdateItem" else {}),
        **{kind: text},
        **{name: given for name, given in params.items() if given},
        **more,
    )


@pytest.mark.parametrize(
    "text",
    [
        "#s = :s",
        "attribute_exists(#s) AND NOT (#f > :n OR #f BETWEEN :n AND #s)",
        "#s IN (:s, :n) and begins_with(#s, :s)",
        "size(#m) < :n",
        "attribute_not_exists(#m.#s[0].#f)",
        "attribute_type(#s, :s) AND contains(#s, :s)",
        "(#s = :s) AND (#f = :n)",
        "((#s = :s) AND (#f = :n))",
        "#s = :b",
    ],
)
def test_conditions_that_pass(text: str) -> None:
    assert expression("ConditionExpression", text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("status = :s", "the bare word 'status'"),
        ("#s = :s AND fence = :n", "the bare word 'fence'"),
        ("attribute_exists(pk)", "the bare word 'pk'"),
        ("#m.status = :s", "the bare word 'status'"),
        ("size(pk) > :n", "the bare word 'pk'"),
        ("Attribute_Exists(#s)", "the bare word 'Attribute_Exists'"),
        ("#s = :unknown", ":unknown is not in ExpressionAttributeValues"),
        ("#unknown = :s", "#unknown is not in ExpressionAttributeNames"),
        ("#s = 'x'", "cannot be read"),
        ("#s = 5", "expected a #name, found '5'"),
        ("#s == :s", "found '='"),
        ("#s != :s", "cannot be read"),
        ("((#s = :s))", "redundant parentheses"),
        ("#s = #s", "must differ"),
        ("#s < :b", "cannot compare a BOOL"),
        ("#s BETWEEN :n", "expected AND"),
        ("attribute_exists(#s, :s)", "takes 1 operands"),
        ("begins_with(#s)", "takes 2 operands"),
        ("#s = :s AND", "found 'the end'"),
        ("#s = :s #f = :n", "expected the end"),
        ("#s", "expected a comparison"),
        ("", "expected a #name"),
        (" OR ".join(["#s = :s"] * 500), "at most 4096 bytes"),
        (f"#s IN ({', '.join([':s'] * 101)})", "at most 100 operands"),
    ],
)
@pytest.mark.parametrize("kind", ["ConditionExpression", "FilterExpression"])
def test_conditions_that_fail(kind: str, text: str, problem: str) -> None:
    operation = "UpdateItem" if kind == "ConditionExpression" else "Scan"
    assert any(problem in found for found in expression(kind, text, operation))


@pytest.mark.parametrize(
    "text",
    [
        "SET #s = :s, #f = #f + :n REMOVE #k, #m.#s ADD #m.#f :n",
        "set #f = if_not_exists(#f, :n) - :n",
        "SET #m = list_append(if_not_exists(#m, :l), :l)",
        "DELETE #m :z",
        "SET #k = :s",
        "REMOVE #m[0], #m[1]",
    ],
)
def test_updates_that_pass(text: str) -> None:
    assert expression("UpdateExpression", text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SET ttl = :n", "the bare word 'ttl'"),
        ("SET #s = :s, counter = counter + :n", "the bare word 'counter'"),
        ("SET #f = fence + :n", "the bare word 'fence'"),
        ("REMOVE due_key", "the bare word 'due_key'"),
        ("SET #m = list_append(history, :l)", "the bare word 'history'"),
        ("SET #f = if_not_exists(fence, :n)", "the bare word 'fence'"),
        ("SET #s = :s SET #f = :n", "SET can stand only once"),
        ("SET #s = :s, #s = :s", "overlap"),
        ("SET #m.#s = :s REMOVE #m", "overlap"),
        ("SET #p = :s", "pk is part of the key"),
        ("SET #k = :e", "due_key is a key"),
        ("SET #k = :n", "due_key is a key"),
        ("SET #k = if_not_exists(#k, :n)", "due_key is a key"),
        ("ADD #k :n", "due_key is a key"),
        ("SET #s = size(#m)", "size cannot stand in SET"),
        ("ADD #f #s", "expected a :value"),
        ("#s = :s", "expected SET, REMOVE, ADD or DELETE"),
        ("SET #s = :s,", "found 'the end'"),
        ("REMOVE #s = :s", "expected the end"),
    ],
)
def test_updates_that_fail(text: str, problem: str) -> None:
    assert any(problem in found for found in expression("UpdateExpression", text))


def test_each_placeholder_is_used_and_well_formed() -> None:
    names, values = {"#s": "status", "#f": "fence"}, {":s": {"S": "x"}, ":n": {"N": "1"}}
    both = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    assert "#f, :n: used in no expression" in found("PutItem", Item=KEY, ConditionExpression="#s = :s", **both)[0]
    assert "used in no expression" in found("GetItem", Key=KEY, ExpressionAttributeNames=names)[0]
    for names in ({}, {"s": "status"}, {"#": "status"}, {"#a-b": "status"}, {"#é": "status"}):
        assert found("GetItem", Key=KEY, ExpressionAttributeNames=names) != []
    assert found("PutItem", Item=KEY, ExpressionAttributeValues={}) != []


def test_values_of_expressions_are_judged_too() -> None:
    one = {"ExpressionAttributeNames": {"#s": "status"}, "UpdateExpression": "SET #s = :s"}
    assert "digits" in found("UpdateItem", Key=KEY, ExpressionAttributeValues={":s": {"N": "1" * 39}}, **one)[0]


def query(condition: str, *, index: bool = False, **more: Any) -> list[str]:
    all_names = {"#pk": "pk", "#sk": "sk", "#dk": "due_key", "#da": "due_at", "#st": "status", "#pl": "payload"}
    text = f"{condition} {more.get('FilterExpression', '')} {more.get('ProjectionExpression', '')}"
    names = {name: attribute for name, attribute in all_names.items() if name in text}
    values = {name: {"S": name} for name in (":a", ":b", ":c") if name in text}
    on = {"IndexName": keys.DUE_INDEX} if index else {}
    given = {
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    return found("Query", **given, **on, **more)


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("#pk = :a", False),
        ("#pk = :a AND begins_with(#sk, :b)", False),
        ("#sk BETWEEN :b AND :c AND #pk = :a", False),
        ("#dk = :a AND #da <= :b", True),
    ],
)
def test_key_conditions_that_pass(condition: str, index: bool) -> None:
    assert query(condition, index=index) == []


@pytest.mark.parametrize(
    ("condition", "index", "problem"),
    [
        ("#sk = :a", False, "needs an equality of pk"),
        ("#pk < :a", False, "needs an equality of pk"),
        ("begins_with(#pk, :a)", False, "needs an equality of pk"),
        ("#pk = :a", True, "needs an equality of due_key"),
        ("#pk = :a OR #sk = :b", False, "knows only AND"),
        ("#pk = :a AND NOT #sk = :b", False, "knows only AND"),
        ("#pk = :a AND #st = :b", False, "one comparison of sk"),
        ("#pk = :a AND #sk <> :b", False, "one comparison of sk"),
        ("#pk = :a AND #sk > :b AND #sk < :c", False, "needs an equality"),
        ("#pk = :a AND contains(#sk, :b)", False, "one comparison of sk"),
        ("pk = :a", False, "the bare word 'pk'"),
    ],
)
def test_key_conditions_that_fail(condition: str, index: bool, problem: str) -> None:
    assert any(problem in found for found in query(condition, index=index))


@pytest.mark.parametrize(
    ("problems_of", "problem"),
    [
        (query("#dk = :a", index=True, ConsistentRead=True), "ConsistentRead"),
        (query("#dk = :a", index=True, Select="ALL_ATTRIBUTES"), "does not project all"),
        (query("#dk = :a", index=True, ProjectionExpression="#dk, #pl"), "does not project payload"),
        (query("#dk = :a", index=True, FilterExpression="#da = :b"), "cannot name the key attribute due_at"),
        (query("#pk = :a", FilterExpression="#sk = :b"), "cannot name the key attribute sk"),
        (query("#pk = :a", ProjectionExpression="status"), "the bare word 'status'"),
        (query("#pk = :a", Limit=0), "Limit is a whole number"),
        (query("#pk = :a", Limit=True), "Limit is a whole number"),
        (query("#pk = :a", ExclusiveStartKey={"pk": {"S": "a"}}), "ExclusiveStartKey"),
        (query("#dk = :a", index=True, ExclusiveStartKey=KEY), "ExclusiveStartKey"),
        (found("Query"), "needs a KeyConditionExpression"),
        (found("Scan", Segment=0), "come together"),
        (found("Scan", Segment=4, TotalSegments=4), "Segment is 0 to"),
        (found("Scan", Segment=-1, TotalSegments=4), "Segment is 0 to"),
        (found("Scan", IndexName="due", ConsistentRead=True), "ConsistentRead"),
        (found("PutItem", Item=KEY, ReturnValues="ALL_NEW"), "ReturnValues"),
        (found("DeleteItem", Key=KEY, ReturnValues="UPDATED_NEW"), "ReturnValues"),
    ],
)
def test_reads_that_fail(problems_of: list[str], problem: str) -> None:
    assert any(problem in found for found in problems_of)


def test_reads_that_pass() -> None:
    assert query("#pk = :a", ConsistentRead=True, Limit=1, ExclusiveStartKey=KEY, FilterExpression="#st = :b") == []
    assert query("#dk = :a", index=True, ProjectionExpression="#dk, #da, #pk, #sk") == []
    assert found("Scan", Segment=3, TotalSegments=4, ConsistentRead=True, Limit=100) == []
    assert found("UpdateItem", Key=KEY, ReturnValues="ALL_NEW") == []


def keys_of(count: int) -> list[dict[str, Any]]:
    return [{"pk": {"S": f"job#{n}"}, "sk": {"S": "job"}} for n in range(count)]


@pytest.mark.parametrize(("count", "passes"), [(1, True), (25, True), (26, False), (0, False)])
def test_batch_writes(count: int, passes: bool) -> None:
    requests = [{"PutRequest": {"Item": key}} for key in keys_of(count)]
    assert (found("BatchWriteItem", RequestItems={"t": requests}) == []) is passes


def test_batch_writes_are_judged_item_by_item() -> None:
    [key] = keys_of(1)
    put_and_delete = [{"PutRequest": {"Item": key}}, {"DeleteRequest": {"Key": key}}]
    assert "comes twice" in found("BatchWriteItem", RequestItems={"t": put_and_delete})[0]
    assert (
        "due_at is a key"
        in found("BatchWriteItem", RequestItems={"t": [{"PutRequest": {"Item": {**key, "due_at": {"N": "1"}}}}]})[0]
    )
    assert "a key is exactly" in found("BatchWriteItem", RequestItems={"t": [{"DeleteRequest": {"Key": {}}}]})[0]
    large = [{"PutRequest": {"Item": {**key, "big": {"S": "x" * (MAX_ITEM_BYTES + 400_000)}}}} for key in keys_of(24)]
    assert any("at most 16777216" in problem for problem in found("BatchWriteItem", RequestItems={"t": large}))


@pytest.mark.parametrize(("count", "passes"), [(1, True), (100, True), (101, False), (0, False)])
def test_batch_gets(count: int, passes: bool) -> None:
    assert (found("BatchGetItem", RequestItems={"t": {"Keys": keys_of(count)}}) == []) is passes


def test_batch_gets_name_a_key_once_and_project_by_placeholder() -> None:
    assert "comes twice" in found("BatchGetItem", RequestItems={"t": {"Keys": keys_of(1) * 2}})[0]
    bare = {"Keys": keys_of(1), "ProjectionExpression": "status"}
    assert "the bare word 'status'" in found("BatchGetItem", RequestItems={"t": bare})[0]


@pytest.mark.parametrize(("count", "passes"), [(1, True), (100, True), (101, False), (0, False)])
def test_transactions(count: int, passes: bool) -> None:
    actions = [{"Put": {"TableName": "t", "Item": key}} for key in keys_of(count)]
    assert (found("TransactWriteItems", TransactItems=actions) == []) is passes


def test_transactions_are_judged_action_by_action() -> None:
    [key] = keys_of(1)
    check = {"ConditionCheck": {"TableName": "t", "Key": key, "ConditionExpression": "attribute_exists(pk)"}}
    assert "the bare word 'pk'" in found("TransactWriteItems", TransactItems=[check])[0]
    twice = [{"Put": {"TableName": "t", "Item": key}}, {"Delete": {"TableName": "t", "Key": key}}]
    assert "comes twice" in found("TransactWriteItems", TransactItems=twice)[0]
    token = found("TransactWriteItems", TransactItems=twice[:1], ClientRequestToken="x" * 37)
    assert "1 to 36 characters" in token[0]
    large = [{"Put": {"TableName": "t", "Item": {**key, "big": {"S": "x" * 400_000}}}} for key in keys_of(11)]
    assert "at most 4194304" in found("TransactWriteItems", TransactItems=large)[0]
