"""Runs the table queries.json through azure-cosmos. The environment names the emulator:
COSMOS_ENDPOINT, COSMOS_KEY, COSMOS_PARTITIONS. Each query prints one line."""

import json
import os
import pathlib
import sys

from azure.cosmos import CosmosClient, PartitionKey, exceptions

table = json.loads(pathlib.Path(__file__).with_name("queries.json").read_text())
client = CosmosClient(os.environ["COSMOS_ENDPOINT"], os.environ["COSMOS_KEY"])
database = client.create_database_if_not_exists("queries")
container = database.create_container("python", PartitionKey("/pk"), indexing_policy=table["indexing"], computed_properties=table["computed"])
assert len(list(container.read_feed_ranges())) == int(os.environ["COSMOS_PARTITIONS"])
for item in table["items"]:
    container.create_item(item)


def text(row):
    """A row with its members in one order, and whole numbers without a fraction."""
    plain = json.loads(json.dumps(row), parse_float=lambda f: int(float(f)) if float(f).is_integer() else float(f))
    return json.dumps(plain, sort_keys=True)


def run(q):
    def rows():
        return list(container.query_items(
            q["text"], parameters=q.get("parameters"), enable_cross_partition_query=True, max_item_count=2))

    missing = q.get("refused", {}).get("python")
    if missing:
        try:
            rows()
        except exceptions.CosmosHttpResponseError as e:
            assert e.status_code == 400 and f"Query contained {missing}" in e.message, e
            return
        raise AssertionError("not refused")
    got, want = [text(r) for r in rows()], [text(r) for r in q["rows"]]
    if not q.get("ordered"):
        got.sort()
        want.sort()
    assert got == want, f"\n got {got}\nwant {want}"


failures = 0
for q in table["queries"]:
    try:
        run(q)
        print("ok", q["text"])
    except Exception as e:  # one line for each query, whatever it throws
        failures += 1
        print(f"not ok {q['text']}: {e!r}")
print(f"{len(table['queries']) - failures} of {len(table['queries'])} passed")
sys.exit(min(failures, 100))
