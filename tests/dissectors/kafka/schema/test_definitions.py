"""The `.kafka` files parse, cover what they say, and a broken one is refused with its line."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES, error_name
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field, SchemaError, Versions

KEYS = range(95)
SECRETS = {
    (36, "request", "auth_bytes"),
    (36, "response", "auth_bytes"),
    (38, "response", "hmac"),
    (39, "request", "hmac"),
    (40, "request", "hmac"),
    (41, "response", "hmac"),
    (51, "request", "salt"),
    (51, "request", "salted_password"),
}
ROOT = Path(__file__).parents[4]


def test_every_key_has_a_schema() -> None:
    assert schema.api_keys() == tuple(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_a_head_alone_says_the_same_as_the_whole_file(key: int) -> None:
    api = schema.api(key)
    assert api is not None
    assert (api.name, api.versions.last, api.flexible) == API_KEYS[key]
    assert api.versions.first == 0, "every version that ever shipped"


def secrets(key: int, direction: Direction, fields: tuple[Field, ...]) -> set[tuple[int, Direction, str]]:
    found = {(key, direction, one.name) for one in fields if one.secret}
    return found.union(*(secrets(key, direction, one.fields) for one in fields))


def test_what_proves_an_identity_is_marked_as_secret() -> None:
    apis = [api for key in KEYS if (api := schema.api(key)) is not None]
    directions: tuple[Direction, Direction] = ("request", "response")
    assert set().union(*(secrets(api.key, way, api.fields(way)) for api in apis for way in directions)) == SECRETS


@pytest.mark.parametrize("key", [-1, 95, 97, 32767])
def test_keys_without_a_file_have_no_schema(key: int) -> None:
    assert schema.api(key) is None


def test_fields_keep_versions_null_and_tags() -> None:
    api = schema.parse(
        "# A comment.\n"
        "api 999 Some  versions 1-6  flexible 4+\n"
        "\n"
        "request\n"
        "  name       string\n"
        "  topics     [struct]  2-5  null 3-4   # which\n"
        "    id       uuid\n"
        "    items    [int32]?  3+\n"
        "  marker     struct    5+  tag 2\n"
        "    epoch    int64\n"
        "  token      bytes?    4+  tag 3  secret\n"
        "response\n"
    )
    name, topics, marker, token = api.request
    assert name == Field("name", "string", False, Versions(1, 6), None, None, ())
    assert (topics.versions, topics.null, topics.array) == (Versions(2, 5), Versions(3, 4), True)
    assert topics.fields[1].null == Versions(3, 5)
    assert (marker.tag, marker.versions) == (2, Versions(5, 6))
    assert (token.tag, token.secret, marker.secret) == (3, True, False)
    assert api.response == ()
    assert [version for version in range(9) if topics.nullable(version)] == [3, 4]


HEAD = "api 9 X  versions 0-3  flexible 2+\n"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        pytest.param("", None, "empty", id="nothing"),
        pytest.param("api x\n", 1, "expected `api KEY NAME", id="head"),
        pytest.param(HEAD + "request\n", None, "needs a request and a response", id="no response"),
        pytest.param(HEAD + "request\nrequest\n", 3, "one `request` and one `response`", id="two requests"),
        pytest.param(HEAD + "request\n  a int33\nresponse\n", 3, "unknown type", id="type"),
        pytest.param(HEAD + "request\n  a [int32\nresponse\n", 3, "unknown type", id="bracket"),
        pytest.param(HEAD + "request\n   a int32\nresponse\n", 3, "two spaces", id="odd indent"),
        pytest.param(HEAD + "request\n    a int32\nresponse\n", 3, "deeper than its parent", id="too deep"),
        pytest.param(HEAD + "request\n  a int32\n    b int32\nresponse\n", 3, "only a struct", id="number with fields"),
        pytest.param(HEAD + "request\n  a [struct]\nresponse\n", 3, "only a struct", id="struct without fields"),
        pytest.param(HEAD + "request\n  a int32  4+\nresponse\n", 3, "beyond", id="later than the api"),
        pytest.param(HEAD + "request\n  a int32  2-9\nresponse\n", 3, "beyond", id="longer than the api"),
        pytest.param(HEAD + "request\n  a string  1-2  null 0+\nresponse\n", 3, "beyond", id="null outside"),
        pytest.param(HEAD + "request\n  a int32?\nresponse\n", 3, "int32 has no null", id="null number"),
        pytest.param(HEAD + "request\n  a string?  null 1\nresponse\n", 3, "not both", id="null twice"),
        pytest.param(HEAD + "request\n  a int64  secret\nresponse\n", 3, "int64 cannot be secret", id="secret number"),
        pytest.param(HEAD + "request\n  a records  secret\nresponse\n", 3, "cannot be secret", id="secret records"),
        pytest.param(HEAD + "request\n  a bytes  secret  tag 0\nresponse\n", 3, "expected `name", id="secret first"),
        pytest.param(HEAD + "request\n  a int8\n  a int16\nresponse\n", 4, "second a", id="name twice"),
        pytest.param(HEAD + "request\n  a int8  2+  tag 0\n  b int8  2+  tag 0\nresponse\n", 4, "second tag", id="tag"),
        pytest.param(
            HEAD + "request\n  a int8  1+  tag 0\nresponse\n", None, "before the first flexible", id="early tag"
        ),
        pytest.param(HEAD + "request\n  a int8 what\nresponse\n", 3, "expected `name", id="rubbish"),
    ],
)
def test_broken_schema_is_refused_with_its_line(source: str, line: int | None, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.parse(source, "x.kafka")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"x.kafka:{line}:" if line else "x.kafka:")


def test_same_name_in_other_versions_is_allowed() -> None:
    api = schema.parse(HEAD + "request\n  a int8  0-1\n  a int16  2+\nresponse\n")
    assert [one.type for one in api.request] == ["int8", "int16"]


def test_api_keys_have_no_gap() -> None:
    assert sorted(API_KEYS) == list(range(95))


@pytest.mark.parametrize(
    ("key", "name", "flexible"),
    [
        pytest.param(4, "LeaderAndIsr", 4, id="removed by 4.0"),
        pytest.param(7, "ControlledShutdown", 3, id="with header 0"),
        pytest.param(17, "SaslHandshake", None, id="never flexible"),
        pytest.param(27, "WriteTxnMarkers", 1, id="removed version not flexible"),
        pytest.param(47, "OffsetDelete", None, id="never flexible, 2.4"),
        pytest.param(94, "UnregisterController", 0, id="newest"),
    ],
)
def test_api_keys(key: int, name: str, flexible: int | None) -> None:
    assert (API_KEYS[key].name, API_KEYS[key].flexible) == (name, flexible)


def test_error_names() -> None:
    assert sorted(ERROR_NAMES) == list(range(-1, 137))
    assert [error_name(code) for code in (-1, 0, 22, 82, 113, 136, 137)] == [
        "UNKNOWN_SERVER_ERROR",
        "NONE",
        "ILLEGAL_GENERATION",
        "FENCED_INSTANCE_ID",
        "STALE_MEMBER_EPOCH",
        "CONTROLLER_ID_NOT_REGISTERED",
        None,
    ]


def test_schemas_are_read_from_an_archive_of_the_package(tmp_path: Path) -> None:
    """Package data is found through the import system, not through the folders of a checkout."""
    archive = tmp_path / "wirewitness.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(ROOT / "src" / "wirewitness" / "__init__.py", "wirewitness/__init__.py")
        for path in sorted((ROOT / "dissectors").rglob("*")):
            if path.suffix in (".py", ".kafka"):
                packed.write(path, Path("wirewitness", path.relative_to(ROOT)))
    names = "schema.__file__, schema.api(8).name, len(schema.api_keys())"
    code = f"from wirewitness.dissectors.kafka.schema import definitions as schema; print({names})"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    where, name, count = done.stdout.split()
    assert where.startswith(str(archive))
    assert (name, count) == ("OffsetCommit", str(len(KEYS)))
