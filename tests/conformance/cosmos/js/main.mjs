// Drives the Cosmos DB emulator with @azure/cosmos. The environment names it:
// COSMOS_ENDPOINT, COSMOS_KEY, and CONTROL, the control endpoint for splits.
// Each check prints one line; the exit code is the number of failures.
import assert from "node:assert/strict";
import { BulkOperationType, ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, CosmosClient, PermissionMode, StatusCodes } from "@azure/cosmos";

const { COSMOS_ENDPOINT: endpoint, COSMOS_KEY: key, CONTROL: control } = process.env;
const client = new CosmosClient({ endpoint, key });
const checks = [];
const check = (name, run) => checks.push({ name, run });
let number = 0;

// container makes a fresh container with items of n partition keys.
async function container(definition = {}, items = 0, keys = 1) {
  const { database } = await client.databases.createIfNotExists({ id: "js" });
  const id = `c${++number}`;
  const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] }, ...definition });
  for (let i = 0; i < items; i++) await container.items.create({ id: `${i}`, pk: `pk${i % keys}`, n: items - i, even: i % 2 === 0 });
  return container;
}

const status = async (promise) => promise.then((r) => r.statusCode, (e) => e.code);

check("databases and containers", async () => {
  const { database } = await client.databases.createIfNotExists({ id: "js" });
  const again = await client.databases.createIfNotExists({ id: "js" });
  assert.equal(again.database.id, database.id);
  const c = await container({ defaultTtl: 60, indexingPolicy: { indexingMode: "consistent", includedPaths: [{ path: "/*" }] } });
  const { resource: read } = await c.read();
  assert.equal(read.defaultTtl, 60);
  assert.deepEqual(read.partitionKey.paths, ["/pk"]);
  const { resource: changed } = await c.replace({ ...read, defaultTtl: 120 });
  assert.equal(changed.defaultTtl, 120);
  const { resources: all } = await database.containers.readAll().fetchAll();
  assert.ok(all.some((x) => x.id === c.id));
  const { resources: found } = await database.containers.query({ query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: c.id }] }).fetchAll();
  assert.equal(found.length, 1);
  const { resources: databases } = await client.databases.query("SELECT * FROM d").fetchAll();
  assert.ok(databases.length >= 1);
  await c.delete();
  assert.equal(await status(c.read()), 404);
});

check("throughput", async () => {
  const { database } = await client.databases.createIfNotExists({ id: "js" });
  const { container: c } = await database.containers.create({ id: "offer", partitionKey: "/pk", throughput: 500 });
  const { resource: offer } = await c.readOffer();
  assert.equal(offer.content.offerThroughput, 500);
  offer.content.offerThroughput = 700;
  const { resource: replaced } = await client.offer(offer.id).replace(offer);
  assert.equal(replaced.content.offerThroughput, 700);
});

check("items", async () => {
  const c = await container();
  const { resource: created, etag, statusCode } = await c.items.create({ id: "1", pk: "a", text: "ünï😀\n\"quoted\"" });
  assert.equal(statusCode, 201);
  assert.equal(created.text, "ünï😀\n\"quoted\"");
  assert.equal(await status(c.items.create({ id: "1", pk: "a" })), 409);
  assert.equal((await c.item("1", "a").read()).resource.text, created.text);
  assert.equal((await c.item("1", "b").read()).statusCode, 404);
  assert.equal((await c.item("1", "a").read({ accessCondition: { type: "IfNoneMatch", condition: etag } })).statusCode, 304);
  const { resource: replaced } = await c.item("1", "a").replace({ ...created, text: "two" }, { accessCondition: { type: "IfMatch", condition: etag } });
  assert.equal(replaced.text, "two");
  assert.equal(await status(c.item("1", "a").replace({ ...created }, { accessCondition: { type: "IfMatch", condition: etag } })), 412);
  assert.equal((await c.items.upsert({ id: "1", pk: "a", text: "three" })).statusCode, 200);
  assert.equal((await c.items.upsert({ id: "2", pk: "a" })).statusCode, 201);
  assert.equal((await c.item("2", "a").delete()).statusCode, 204);
  assert.equal(await status(c.item("2", "a").delete()), 404);
  for (const pk of ["with \"quotes\" and \\", "tab\there", "😀", 5, -1.5, true, null]) {
    await c.items.create({ id: "k", pk });
    assert.deepEqual((await c.item("k", pk).read()).resource.pk, pk);
  }
});

check("patch", async () => {
  const c = await container();
  await c.items.create({ id: "1", pk: "a", n: 1, list: [1] });
  const { resource } = await c.item("1", "a").patch([
    { op: "incr", path: "/n", value: 2 }, { op: "add", path: "/list/-", value: 2 }, { op: "set", path: "/o", value: { x: 1 } },
  ]);
  assert.deepEqual([resource.n, resource.list, resource.o], [3, [1, 2], { x: 1 }]);
  const conditional = (n) => c.item("1", "a").patch({ condition: `from c where c.n = ${n}`, operations: [{ op: "remove", path: "/o" }] });
  assert.equal(await status(conditional(9)), 412);
  assert.equal((await conditional(3)).resource.o, undefined);
});

check("batch", async () => {
  const c = await container();
  const good = await c.items.batch([
    { operationType: BulkOperationType.Create, resourceBody: { id: "1", pk: "a", n: 1 } },
    { operationType: BulkOperationType.Upsert, resourceBody: { id: "2", pk: "a" } },
    { operationType: BulkOperationType.Patch, id: "1", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
    { operationType: BulkOperationType.Read, id: "1" },
  ], "a");
  assert.deepEqual(good.result.map((r) => r.statusCode), [201, 201, 200, 200]);
  assert.equal(good.result[3].resourceBody.n, 2);
  const bad = await c.items.batch([
    { operationType: BulkOperationType.Delete, id: "2" },
    { operationType: BulkOperationType.Replace, id: "1", ifMatch: "stale", resourceBody: { id: "1", pk: "a" } },
  ], "a");
  assert.equal(bad.code, StatusCodes.MultiStatus);
  assert.deepEqual(bad.result.map((r) => r.statusCode), [424, 412]);
  assert.equal((await c.item("2", "a").read()).statusCode, 200);
});

check("queries", async () => {
  const compositeIndexes = [[{ path: "/even" }, { path: "/n", order: "descending" }]];
  const c = await container({ indexingPolicy: { includedPaths: [{ path: "/*" }], compositeIndexes } }, 20, 7);
  const run = async (query, options) => (await c.items.query(query, options).fetchAll()).resources;
  assert.equal((await run("SELECT * FROM c")).length, 20);
  assert.equal((await c.items.readAll().fetchAll()).resources.length, 20);
  assert.deepEqual(await run("SELECT VALUE c.n FROM c ORDER BY c.n"), [...Array(20).keys()].map((i) => i + 1));
  assert.deepEqual(await run("SELECT VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount: 3 }), [...Array(20).keys()].map((i) => 20 - i));
  assert.deepEqual(await run("SELECT c.id, c.n FROM c ORDER BY c.even, c.n DESC", { maxItemCount: 4 }).then((rows) => rows.slice(0, 2)), [{ id: "1", n: 19 }, { id: "3", n: 17 }]);
  assert.deepEqual(await run("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n"), [1, 2, 3]);
  assert.deepEqual(await run("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3"), [6, 7, 8]);
  assert.deepEqual(await run("SELECT VALUE COUNT(1) FROM c"), [20]);
  assert.deepEqual((await run("SELECT DISTINCT VALUE c.pk FROM c")).sort(), ["pk0", "pk1", "pk2", "pk3", "pk4", "pk5", "pk6"]);
  assert.deepEqual((await run({ query: "SELECT VALUE c.id FROM c WHERE c.n > @n AND c.even", parameters: [{ name: "@n", value: 15 }] })).sort(), ["0", "2", "4"]);
  assert.deepEqual(await run("SELECT VALUE c.id FROM c WHERE c.pk = 'pk1' ORDER BY c.n", { partitionKey: "pk1" }), ["15", "8", "1"]);
  const iterator = c.items.query("SELECT * FROM c WHERE c.pk = 'pk1'", { partitionKey: "pk1", maxItemCount: 2 });
  const first = await iterator.fetchNext();
  const rest = await c.items.query("SELECT * FROM c WHERE c.pk = 'pk1'", { partitionKey: "pk1", continuationToken: first.continuationToken }).fetchAll();
  assert.equal(first.resources.length + rest.resources.length, 3);
  await assert.rejects(run("SELECT * FROM c WHERE"), (e) => e.code === 400);
});

// pull reads a change feed until it has nothing new.
async function pull(c, options) {
  const iterator = c.items.getChangeFeedIterator({ maxItemCount: 4, ...options });
  const ids = [];
  let token;
  while (iterator.hasMoreResults) {
    const page = await iterator.readNext();
    token = page.continuationToken;
    if (page.statusCode === StatusCodes.NotModified) break;
    ids.push(...page.result.map((item) => item.id));
  }
  return { ids: ids.sort(), token };
}

const numbers = (from, to) => [...Array(to - from).keys()].map((i) => `${i + from}`).sort();

check("change feed of a container", async () => {
  const c = await container({}, 10, 5);
  const start = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  assert.deepEqual(start.ids, numbers(0, 10));
  const now = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Now() });
  assert.deepEqual(now.ids, []);
  await new Promise((done) => setTimeout(done, 1100));
  const time = new Date();
  await new Promise((done) => setTimeout(done, 1100));
  for (let i = 10; i < 15; i++) await c.items.create({ id: `${i}`, pk: `pk${i % 5}` });
  for (const [mode, from] of Object.entries({ continuation: start.token, now: now.token })) {
    assert.deepEqual((await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(from) })).ids, numbers(10, 15), mode);
  }
  assert.deepEqual((await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Time(time) })).ids, numbers(10, 15));
});

check("change feed of a partition key and of a feed range", async () => {
  const c = await container({}, 10, 5);
  const one = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning("pk3") });
  assert.deepEqual(one.ids, ["3", "8"]);
  const now = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Now("pk3") });
  await c.items.create({ id: "x", pk: "pk3" });
  await c.items.create({ id: "y", pk: "pk4" });
  assert.deepEqual((await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(now.token) })).ids, ["x"]);
  assert.deepEqual((await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(one.token) })).ids, ["x"]);
  const all = [];
  for (const range of await c.getFeedRanges()) all.push(...(await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range) })).ids);
  assert.deepEqual(all.sort(), [...numbers(0, 10), "x", "y"].sort());
});

check("change feed of a hierarchical prefix", async () => {
  const c = await container({ partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 } });
  for (let i = 0; i < 12; i++) await c.items.create({ id: `${i}`, tenant: `t${i % 3}`, user: `u${i}` });
  assert.equal((await c.item("4", ["t1", "u4"]).read()).resource.user, "u4");
  const { ids } = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(["t1"]) });
  assert.deepEqual(ids, ["1", "10", "4", "7"]);
  const { resources } = await c.items.query("SELECT VALUE c.id FROM c WHERE c.tenant = 't1' ORDER BY c.id").fetchAll();
  assert.deepEqual(resources, ["1", "10", "4", "7"]);
});

check("change feed across a split", async () => {
  const c = await container({}, 10, 10);
  const start = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  const [first] = (await c.readPartitionKeyRanges().fetchAll()).resources;
  const split = await fetch(`${control}dbs/js/colls/${c.id}/split`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ range: first.id }) });
  assert.equal(split.status, 200, await split.text());
  for (let i = 10; i < 20; i++) await c.items.create({ id: `${i}`, pk: `pk${i}` });
  const after = await pull(c, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(start.token) });
  assert.deepEqual([start.ids, after.ids], [numbers(0, 10), numbers(10, 20)]);
});

check("bulk", async () => {
  const c = await container();
  const creates = numbers(0, 100).map((id) => ({ operationType: BulkOperationType.Create, resourceBody: { id, pk: `pk${id % 7}` }, partitionKey: `pk${id % 7}` }));
  for (const want of [201, 409]) { // the second time they are there
    const results = await c.items.executeBulkOperations(creates);
    assert.deepEqual([...new Set(results.map((r) => r.response?.statusCode ?? r.error?.code))], [want]);
  }
  assert.deepEqual((await c.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources, [100]);
});

check("change feed of all versions", async () => {
  const c = await container({ changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) });
  const seen = async (changeFeedStartFrom) => {
    const items = [];
    for await (const page of c.items.getChangeFeedIterator({ changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes, changeFeedStartFrom }).getAsyncIterator()) {
      items.push(...page.result);
      if (page.statusCode === StatusCodes.NotModified) return { items, token: page.continuationToken };
    }
  };
  const start = await seen(ChangeFeedStartFrom.Now());
  assert.deepEqual(start.items, []);
  await c.items.create({ id: "1", pk: "a", n: 1 });
  await c.items.upsert({ id: "1", pk: "a", n: 2 });
  await c.item("1", "a").delete();
  const { items } = await seen(ChangeFeedStartFrom.Continuation(start.token));
  assert.deepEqual(items.map((i) => i.metadata.operationType), ["create", "replace", "delete"]);
  assert.deepEqual([items[1].current.n, items[2].previous.n], [2, 2]);
});

check("unique keys", async () => {
  const c = await container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] } });
  await c.items.create({ id: "1", pk: "a", mail: "m" });
  assert.equal(await status(c.items.create({ id: "2", pk: "a", mail: "m" })), 409);
  assert.equal(await status(c.items.create({ id: "2", pk: "b", mail: "m" })), 201);
});

check("users, permissions and resource tokens", async () => {
  const c = await container({}, 2);
  const { user } = await c.database.users.create({ id: "ann" });
  const { resource: permission } = await user.permissions.create({ id: "p", permissionMode: PermissionMode.Read, resource: c.url });
  const reader = new CosmosClient({ endpoint, permissionFeed: [permission] }).database("js").container(c.id);
  assert.equal((await reader.item("1", "pk0").read()).resource.id, "1");
  assert.equal(await status(reader.items.create({ id: "9", pk: "pk0" })), 403);
  assert.equal(await status(c.database.users.create({ id: "ann" })), 409);
  assert.equal((await user.delete()).statusCode, 204);
});

let failures = 0;
for (const { name, run } of checks) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok ${name}: ${error.stack ?? JSON.stringify(error)}`);
  }
}
console.log(`${checks.length - failures} of ${checks.length} passed`);
process.exit(failures);
