import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;

/**
 * Runs the change feed processor of azure-cosmos on the emulator, of its three kinds, each with two
 * hosts: a split under load, one host that stops, both that stop and one that starts again. The
 * environment is that of Suite.java.
 */
class Processor {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int ITEMS = 150, TOUCHED = 20;
    static CosmosAsyncDatabase database;
    static int passed, total;

    /** What the hosts of a kind were handed: how often each id, and the operations of each id in their order. */
    static class Seen {
        final Map<String, Integer> times = new ConcurrentHashMap<>();
        final Map<String, List<String>> operations = new ConcurrentHashMap<>();

        void add(String id, String operation) {
            times.merge(id, 1, Integer::sum);
            operations.computeIfAbsent(id, x -> new CopyOnWriteArrayList<>()).add(operation);
        }
    }

    enum Kind { CHANGES, LATEST_VERSION, ALL_VERSIONS }

    public static void main(String[] args) throws Exception {
        var client = new CosmosClientBuilder().endpoint(System.getenv("COSMOS_ENDPOINT")).key(System.getenv("COSMOS_KEY"))
            .gatewayMode().contentResponseOnWriteEnabled(true).buildAsyncClient();
        client.createDatabaseIfNotExists("processor").block();
        database = client.getDatabase("processor");
        for (var kind : Kind.values()) {
            total++;
            try {
                run(kind);
                passed++;
                System.out.println("ok " + kind);
            } catch (Throwable e) {
                System.out.println("not ok " + kind + ": " + String.valueOf(e).replaceAll("\\s+", " "));
            }
        }
        client.close();
        System.out.println(passed + " of " + total + " passed");
        System.exit(total - passed);
    }

    static void run(Kind kind) throws Exception {
        var properties = new CosmosContainerProperties("feed" + kind.ordinal(), "/pk");
        if (kind == Kind.ALL_VERSIONS) {
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        }
        database.createContainerIfNotExists(properties).block();
        database.createContainerIfNotExists("leases" + kind.ordinal(), "/id").block();
        var feed = database.getContainer(properties.getId());
        var leases = database.getContainer("leases" + kind.ordinal());
        var seen = new Seen();

        var first = host("first", kind, feed, leases, seen);
        first.start().block();
        Thread.sleep(3000); // all versions are read from now, and now is when it has its leases
        var second = host("second", kind, feed, leases, seen);
        second.start().block();
        write(feed, 0, ITEMS);
        control("dbs/processor/colls/" + properties.getId() + "/split", "{\"range\":\"0\"}");
        write(feed, ITEMS, 2 * ITEMS);
        await("all changes over a split", () -> seen.times.size() == 2 * ITEMS);

        second.stop().block();
        write(feed, 2 * ITEMS, 3 * ITEMS);
        await("all changes with one host", () -> seen.times.size() == 3 * ITEMS);
        // A renewal of azure-cosmos 4.81 that meets a conflict writes the continuation that it read before the last
        // checkpoint. The next change of the range ends that.
        int[] waits = {0};
        try {
            await("no lag", () -> {
                if (++waits[0] % 50 == 0) {
                    for (int i = 1; i <= TOUCHED; i++) {
                        feed.upsertItem(JSON.createObjectNode().put("id", "" + i).put("pk", "" + i).put("n", waits[0])).block();
                    }
                }
                return lag(first) == 0;
            });
        } catch (AssertionError e) {
            leases.queryItems("SELECT * FROM c", JsonNode.class).toIterable().forEach(l -> System.out.println("a lease: " + l));
            throw new AssertionError(e.getMessage() + ": " + first.getCurrentState().block());
        }
        first.stop().block();
        write(feed, 3 * ITEMS, 4 * ITEMS);
        int open = lag(first);
        if (open < ITEMS / 4 || open > ITEMS) {
            throw new AssertionError("the estimate of " + ITEMS + " open changes is " + open);
        }
        var again = host("again", kind, feed, leases, seen);
        again.start().block();
        await("all changes after a restart", () -> seen.times.size() == 4 * ITEMS);
        if (kind == Kind.ALL_VERSIONS) {
            feed.upsertItem(JSON.createObjectNode().put("id", "0").put("pk", "0").put("n", 1)).block();
            feed.deleteItem("0", new PartitionKey("0")).block();
            await("a deletion", () -> seen.operations.get("0").contains("delete"));
            var operations = new ArrayList<>(new LinkedHashSet<>(seen.operations.get("0"))); // one may have come twice
            if (!operations.equals(List.of("create", "replace", "delete"))) {
                throw new AssertionError("the operations of an item are " + operations);
            }
        }
        again.stop().block();
        long repeated = seen.times.values().stream().filter(n -> n > 1).count();
        if (repeated > (kind == Kind.ALL_VERSIONS ? ITEMS + 1 : ITEMS) + TOUCHED) {
            throw new AssertionError(repeated + " changes were repeated");
        }
    }

    static ChangeFeedProcessor host(String name, Kind kind, CosmosAsyncContainer feed, CosmosAsyncContainer leases, Seen seen) {
        var options = new ChangeFeedProcessorOptions().setFeedPollDelay(Duration.ofMillis(100))
            .setLeaseAcquireInterval(Duration.ofSeconds(1)).setLeaseRenewInterval(Duration.ofSeconds(1)).setLeaseExpirationInterval(Duration.ofSeconds(4));
        if (kind != Kind.ALL_VERSIONS) {
            options.setStartFromBeginning(true);
        }
        var builder = new ChangeFeedProcessorBuilder().hostName(name).feedContainer(feed).leaseContainer(leases).options(options);
        switch (kind) {
            case CHANGES -> builder.handleChanges((List<JsonNode> items) -> items.forEach(i -> seen.add(i.get("id").asText(), "change")));
            case LATEST_VERSION -> builder.handleLatestVersionChanges(items -> items.forEach(i -> seen.add(i.getCurrent().get("id").asText(), "change")));
            case ALL_VERSIONS -> builder.handleAllVersionsAndDeletesChanges(items -> items.forEach(i -> {
                var deleted = i.getChangeFeedMetaData().getOperationType() == ChangeFeedOperationType.DELETE;
                seen.add((deleted ? i.getPrevious() : i.getCurrent()).get("id").asText(), i.getChangeFeedMetaData().getOperationType().toString().toLowerCase());
            }));
        }
        return builder.buildChangeFeedProcessor();
    }

    static int lag(ChangeFeedProcessor p) {
        return p.getCurrentState().block().stream().mapToInt(s -> s.getEstimatedLag()).sum();
    }

    static void write(CosmosAsyncContainer feed, int from, int to) {
        for (int i = from; i < to; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "" + i).put("pk", "" + i).put("n", 0)).block();
        }
    }

    static void await(String what, BooleanSupplier done) throws Exception {
        for (long end = System.currentTimeMillis() + 60_000; !done.getAsBoolean(); Thread.sleep(100)) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError(what + ": not in a minute");
            }
        }
    }

    static void control(String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("CONTROL") + path))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var reply = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (reply.statusCode() / 100 != 2) {
            throw new AssertionError(path + ": " + reply.body());
        }
    }
}
