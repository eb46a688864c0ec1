"""The `.kafka` files parse, cover what they say, and a broken one is refused with its line."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dissectors.kafka import schema
from dissectors.kafka.api_keys import API_KEYS
from dissectors.kafka.error_codes import ERROR_NAMES, error_name
from dissectors.kafka.schema import Field, SchemaError, Versions

COVERED = {
    0: 13,
    1: 18,
    2: 11,
    3: 13,
    8: 10,
    9: 10,
    10: 6,
    11: 9,
    12: 4,
    13: 5,
    14: 5,
    15: 6,
    18: 5,
    22: 6,
    24: 5,
    25: 4,
    26: 5,
    28: 6,
    68: 1,
    69: 1,
}
ROOT = Path(__file__).parents[3]


def test_schemas_cover_every_version_that_ever_shipped() -> None:
    found = {key: api.versions for key in schema.api_keys() if (api := schema.api(key)) is not None}
    assert found == {key: Versions(0, newest) for key, newest in COVERED.items()}


@pytest.mark.parametrize("key", COVERED)
def test_schema_agrees_with_the_table_of_api_keys(key: int) -> None:
    api = schema.api(key)
    assert api is not None
    assert (api.name, api.versions.last, api.flexible) == API_KEYS[key]


@pytest.mark.parametrize("key", [-1, 4, 97, 32767])
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
        "response\n"
    )
    name, topics, marker = api.request
    assert name == Field("name", "string", False, Versions(1, 6), None, None, ())
    assert (topics.versions, topics.null, topics.array) == (Versions(2, 5), Versions(3, 4), True)
    assert topics.fields[1].null == Versions(3, 5)
    assert (marker.tag, marker.versions) == (2, Versions(5, 6))
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


def test_api_keys_have_no_hole() -> None:
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
    archive = tmp_path / "dissectors.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted((ROOT / "dissectors").rglob("*")):
            if path.suffix in (".py", ".kafka"):
                packed.write(path, path.relative_to(ROOT))
    code = "from dissectors.kafka import schema; print(schema.__file__, schema.api(8).name, len(schema.api_keys()))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    where, name, count = done.stdout.split()
    assert where.startswith(str(archive))
    assert (name, count) == ("OffsetCommit", str(len(COVERED)))
