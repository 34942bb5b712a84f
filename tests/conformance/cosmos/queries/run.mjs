// Runs the table queries.json through @azure/cosmos. The environment names the
// emulator: COSMOS_ENDPOINT, COSMOS_KEY, COSMOS_PARTITIONS. Each query prints one line.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { CosmosClient } from "@azure/cosmos";

const table = JSON.parse(readFileSync(new URL("./queries.json", import.meta.url)));
const client = new CosmosClient({ endpoint: process.env.COSMOS_ENDPOINT, key: process.env.COSMOS_KEY });
const { database } = await client.databases.createIfNotExists({ id: "queries" });
const { container } = await database.containers.create({ id: "javascript", partitionKey: { paths: ["/pk"] }, indexingPolicy: table.indexing, computedProperties: table.computed });
const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
assert.equal(ranges.length, Number(process.env.COSMOS_PARTITIONS));
for (const item of table.items) await container.items.create(item);

// text is a row with its members in one order.
const text = (row) => JSON.stringify(row, (_, v) => (v && typeof v === "object" && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v));

async function run({ text: query, parameters, rows, ordered, refused }) {
  const iterator = container.items.query({ query, parameters }, { maxItemCount: 2 });
  const missing = refused?.javascript;
  if (missing) {
    await assert.rejects(iterator.fetchAll(), (e) => e.code === 400 && e.message.includes(`Query contained ${missing}`));
    return;
  }
  const got = (await iterator.fetchAll()).resources.map(text);
  const want = rows.map(text);
  if (!ordered) {
    got.sort();
    want.sort();
  }
  assert.deepEqual(got, want);
}

let failures = 0;
for (const q of table.queries) {
  try {
    await run(q);
    console.log(`ok ${q.text}`);
  } catch (error) {
    failures++;
    console.log(`not ok ${q.text}: ${error.stack ?? JSON.stringify(error)}`);
  }
}
console.log(`${table.queries.length - failures} of ${table.queries.length} passed`);
process.exit(failures);
