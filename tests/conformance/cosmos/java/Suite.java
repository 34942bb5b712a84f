import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;

/**
 * Drives the emulator with azure-cosmos: items, batches, bulk, the table of queries, the pull feed
 * of both kinds. The environment names it: COSMOS_ENDPOINT, COSMOS_KEY, CONTROL (the control
 * endpoint), COSMOS_PARTITIONS, QUERIES (the table). Each check prints one line.
 */
class Suite {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int PARTITIONS = Integer.parseInt(System.getenv("COSMOS_PARTITIONS"));
    static CosmosClient client;
    static CosmosDatabase database;
    static int passed, total;

    interface Check { void run() throws Exception; }

    static void check(String name, Check c) {
        total++;
        try {
            c.run();
            passed++;
            System.out.println("ok " + name);
        } catch (Throwable e) {
            System.out.println("not ok " + name + ": " + String.valueOf(e).replaceAll("\\s+", " "));
        }
    }

    static void want(Object got, Object want, String what) {
        if (!String.valueOf(got).equals(String.valueOf(want))) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    static void refused(int status, Check c) throws Exception {
        try {
            c.run();
        } catch (CosmosException e) {
            want(e.getStatusCode(), status, "status");
            return;
        }
        throw new AssertionError("not refused with " + status);
    }

    static ObjectNode item(String id, String pk, int n) {
        return JSON.createObjectNode().put("id", id).put("pk", pk).put("n", n);
    }

    static CosmosContainer container(CosmosContainerProperties properties) {
        database.createContainerIfNotExists(properties);
        return database.getContainer(properties.getId());
    }

    static void control(String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("CONTROL") + path))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var reply = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        want(reply.statusCode() / 100, 2, path + " " + reply.body());
    }

    public static void main(String[] args) throws Exception {
        client = new CosmosClientBuilder().endpoint(System.getenv("COSMOS_ENDPOINT")).key(System.getenv("COSMOS_KEY"))
            .gatewayMode().contentResponseOnWriteEnabled(true).buildClient();
        client.createDatabaseIfNotExists("java");
        database = client.getDatabase("java");
        check("items", Suite::items);
        check("unique keys", Suite::uniqueKeys);
        check("hierarchical keys", Suite::hierarchical);
        check("batches", Suite::batches);
        check("bulk", Suite::bulk);
        check("all items of a key", Suite::deleteKey);
        check("pull feed over a split", Suite::pull);
        check("pull feed of all versions", Suite::versions);
        queries();
        client.close();
        System.out.println(passed + " of " + total + " passed");
        System.exit(Math.min(total - passed, 100));
    }

    static void items() throws Exception {
        var c = container(new CosmosContainerProperties("items", "/pk"));
        want(c.getFeedRanges().size(), PARTITIONS, "ranges");
        var created = c.createItem(item("1", "a", 1));
        want(created.getStatusCode(), 201, "create");
        refused(409, () -> c.createItem(item("1", "a", 1)));
        var key = new PartitionKey("a");
        want(c.readItem("1", key, JsonNode.class).getItem().get("n"), 1, "read");
        var match = new CosmosItemRequestOptions().setIfMatchETag(created.getETag());
        want(c.replaceItem(item("1", "a", 2), "1", key, match).getItem().get("n"), 2, "replace");
        refused(412, () -> c.replaceItem(item("1", "a", 3), "1", key, match));
        want(c.upsertItem(item("2", "a", 1)).getStatusCode(), 201, "upsert");
        want(c.patchItem("1", key, CosmosPatchOperations.create().increment("/n", 5).add("/x", "y"), JsonNode.class).getItem().get("n"), 7, "patch");
        want(c.readMany(List.of(new CosmosItemIdentity(key, "1"), new CosmosItemIdentity(key, "2")), JsonNode.class).getResults().size(), 2, "read many");
        want(c.readAllItems(key, JsonNode.class).stream().count(), 2, "read all");
        want(c.deleteItem("1", key, null).getStatusCode(), 204, "delete");
        refused(404, () -> c.readItem("1", key, JsonNode.class));
    }

    static void uniqueKeys() throws Exception {
        var policy = new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/mail"))));
        var c = container(new CosmosContainerProperties("unique", "/pk").setUniqueKeyPolicy(policy));
        want(c.read().getProperties().getUniqueKeyPolicy().getUniqueKeys().size(), 1, "policy");
        c.createItem(item("1", "a", 1).put("mail", "m"));
        refused(409, () -> c.createItem(item("2", "a", 1).put("mail", "m")));
        c.createItem(item("2", "b", 1).put("mail", "m"));
    }

    static void hierarchical() throws Exception {
        var definition = new PartitionKeyDefinition().setPaths(List.of("/tenant", "/user"));
        definition.setKind(PartitionKind.MULTI_HASH);
        definition.setVersion(PartitionKeyDefinitionVersion.V2);
        var c = container(new CosmosContainerProperties("tree", definition));
        for (int i = 0; i < 10; i++) {
            c.createItem(JSON.createObjectNode().put("id", "" + i).put("tenant", "t" + i % 2).put("user", "u" + i));
        }
        var prefix = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("t1").build());
        want(c.queryItems("SELECT * FROM c", prefix, JsonNode.class).stream().count(), 5, "items below a prefix");
        want(c.readItem("3", new PartitionKeyBuilder().add("t1").add("u3").build(), JsonNode.class).getStatusCode(), 200, "read");
    }

    static void batches() throws Exception {
        var c = container(new CosmosContainerProperties("batches", "/pk"));
        var key = new PartitionKey("a");
        var batch = CosmosBatch.createCosmosBatch(key);
        batch.createItemOperation(item("1", "a", 1));
        batch.upsertItemOperation(item("2", "a", 1));
        batch.readItemOperation("1");
        batch.patchItemOperation("2", CosmosPatchOperations.create().set("/n", 9));
        var reply = c.executeCosmosBatch(batch);
        want(reply.getResults().stream().map(r -> r.getStatusCode()).toList(), "[201, 201, 200, 200]", "statuses");
        want(reply.getResults().get(3).getItem(JsonNode.class).get("n"), 9, "patched");
        batch = CosmosBatch.createCosmosBatch(key);
        batch.createItemOperation(item("3", "a", 1));
        batch.createItemOperation(item("1", "a", 1));
        want(c.executeCosmosBatch(batch).getResults().stream().map(r -> r.getStatusCode()).toList(), "[424, 409]", "statuses of one that fails");
        refused(404, () -> c.readItem("3", key, JsonNode.class));
    }

    static void bulk() throws Exception {
        var c = container(new CosmosContainerProperties("bulk", "/pk"));
        var creates = IntStream.range(0, 300).mapToObj(i -> CosmosBulkOperations.getCreateItemOperation(item("" + i, "k" + i % 40, i), new PartitionKey("k" + i % 40))).toList();
        var statuses = new TreeMap<Integer, Integer>();
        for (int round = 0; round < 2; round++) { // the second time they are there
            for (var r : c.executeBulkOperations(creates)) {
                statuses.merge(r.getResponse().getStatusCode(), 1, Integer::sum);
            }
        }
        want(statuses, "{201=300, 409=300}", "statuses");
        want(c.queryItems("SELECT VALUE COUNT(1) FROM c", null, Integer.class).stream().toList(), "[300]", "count");
    }

    static void deleteKey() throws Exception {
        var c = container(new CosmosContainerProperties("bulk", "/pk"));
        c.deleteAllItemsByPartitionKey(new PartitionKey("k7"), null);
        want(c.readAllItems(new PartitionKey("k7"), JsonNode.class).stream().count(), 0, "items");
    }

    static List<JsonNode> drain(CosmosContainer c, CosmosChangeFeedRequestOptions from, String[] continuation) {
        var out = new ArrayList<JsonNode>();
        var options = continuation[0] == null ? from : CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(continuation[0]);
        for (var page : c.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            out.addAll(page.getResults());
            continuation[0] = page.getContinuationToken();
            if (page.getResults().isEmpty()) {
                break; // nothing new in any range
            }
        }
        return out;
    }

    static void pull() throws Exception {
        var c = container(new CosmosContainerProperties("pull", "/pk"));
        for (int i = 0; i < 60; i++) {
            c.createItem(item("" + i, "k" + i, i));
        }
        var continuation = new String[1];
        var start = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        var seen = drain(c, start, continuation);
        want(seen.stream().map(n -> n.get("id").asText()).distinct().count() + " of " + seen.size(), "60 of 60", "changes");
        control("dbs/java/colls/pull/split", "{\"range\":\"0\"}");
        for (int i = 60; i < 90; i++) {
            c.createItem(item("" + i, "k" + i, i));
        }
        seen = drain(c, start, continuation);
        want(seen.stream().map(n -> n.get("id").asText()).distinct().count() + " of " + seen.size(), "30 of 30", "changes behind the split");
    }

    static void versions() throws Exception {
        var properties = new CosmosContainerProperties("versions", "/pk");
        properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        var c = container(properties);
        var continuation = new String[1];
        var start = CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()).allVersionsAndDeletes();
        want(drain(c, start, continuation).size(), 0, "changes before");
        c.createItem(item("1", "a", 1));
        c.upsertItem(item("1", "a", 2));
        c.deleteItem("1", new PartitionKey("a"), null);
        var seen = drain(c, start, continuation);
        want(seen.stream().map(n -> n.get("metadata").get("operationType").asText()).toList(), "[create, replace, delete]", "operations");
        want(seen.get(1).get("current").get("n"), 2, "the replaced one");
        want(seen.get(2).get("previous").get("n"), 2, "the deleted one");
    }

    static void queries() throws Exception {
        var table = JSON.readTree(Files.readString(Path.of(System.getenv("QUERIES"))));
        var properties = new CosmosContainerProperties("queries", "/pk");
        var computed = new ArrayList<ComputedProperty>();
        table.get("computed").forEach(p -> computed.add(new ComputedProperty(p.get("name").asText(), p.get("query").asText())));
        properties.setComputedProperties(computed);
        var policy = new IndexingPolicy();
        var included = new ArrayList<IncludedPath>();
        table.get("indexing").get("includedPaths").forEach(p -> included.add(new IncludedPath(p.get("path").asText())));
        policy.setIncludedPaths(included);
        properties.setIndexingPolicy(policy);
        var c = container(properties);
        for (var item : table.get("items")) {
            c.createItem(item);
        }
        for (var q : table.get("queries")) {
            check(q.get("text").asText(), () -> query(c, q));
        }
    }

    static void query(CosmosContainer c, JsonNode q) throws Exception {
        var parameters = new ArrayList<SqlParameter>();
        if (q.has("parameters")) {
            q.get("parameters").forEach(p -> parameters.add(new SqlParameter(p.get("name").asText(), p.get("value"))));
        }
        var rows = new ArrayList<String>();
        Check all = () -> {
            for (var page : c.queryItems(new SqlQuerySpec(q.get("text").asText(), parameters), new CosmosQueryRequestOptions(), JsonNode.class).iterableByPage(2)) {
                for (var row : page.getResults()) {
                    rows.add(text(row));
                }
            }
        };
        var missing = q.path("refused").path("java");
        if (!missing.isMissingNode()) {
            try {
                all.run();
            } catch (RuntimeException e) {
                if (String.valueOf(e).contains(missing.asText())) {
                    return;
                }
                throw e;
            }
            throw new AssertionError("not refused: " + rows);
        }
        all.run();
        var want = new ArrayList<String>();
        for (var row : q.path("rowsOf").has("java") ? q.get("rowsOf").get("java") : q.get("rows")) {
            want.add(text(row));
        }
        if (!q.path("ordered").asBoolean()) {
            Collections.sort(rows);
            Collections.sort(want);
        }
        want(rows, want, "rows");
    }

    /** A row with its members in one order, and numbers in one spelling. */
    static String text(JsonNode n) {
        if (n == null || n.isNull()) {
            return "null";
        }
        if (n.isNumber()) {
            return n.asDouble() == n.asLong() ? "" + n.asLong() : "" + n.asDouble();
        }
        if (n.isArray()) {
            return StreamSupport.stream(n.spliterator(), false).map(Suite::text).toList().toString();
        }
        if (n.isObject()) {
            var out = new TreeMap<String, String>();
            n.fields().forEachRemaining(f -> out.put(f.getKey(), text(f.getValue())));
            return out.toString();
        }
        return n.toString();
    }
}
