import com.azure.cosmos.*;
import com.azure.cosmos.models.*;
import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Runs the change feed processor of azure-cosmos for a while, as the neighbour of another
 * product's on the same leases: Neighbour DATABASE PREFIX DOCUMENTS. It reads the container feed from
 * its beginning and keeps its leases in the container leases, both of the database. It waits until it has delivered so many documents, a
 * minute at most, and four seconds more. It prints what it delivered: delivered N of M documents. It renews no lease: a renewal that meets
 * a checkpoint undoes it (azure-cosmos 4.81).
 */
class Neighbour {
    public static void main(String[] args) throws Exception {
        var client = new CosmosClientBuilder().endpoint(System.getenv("COSMOS_ENDPOINT")).key(System.getenv("COSMOS_KEY"))
            .gatewayMode().contentResponseOnWriteEnabled(true).buildAsyncClient();
        var database = client.getDatabase(args[0]);
        var options = new ChangeFeedProcessorOptions().setFeedPollDelay(Duration.ofMillis(100)).setLeasePrefix(args[1]).setStartFromBeginning(true)
            .setLeaseAcquireInterval(Duration.ofSeconds(1)).setLeaseRenewInterval(Duration.ofMinutes(2)).setLeaseExpirationInterval(Duration.ofMinutes(5));
        var seen = new ConcurrentHashMap<String, Integer>();
        var processor = new ChangeFeedProcessorBuilder().hostName("java").feedContainer(database.getContainer("feed"))
            .leaseContainer(database.getContainer("leases")).options(options)
            .handleLatestVersionChanges(items -> items.forEach(i -> seen.merge(i.getCurrent().get("id").asText(), 1, Integer::sum)))
            .buildChangeFeedProcessor();
        try {
            processor.start().block(Duration.ofMinutes(1));
            for (long end = System.currentTimeMillis() + 60_000; seen.size() < Integer.parseInt(args[2]) && System.currentTimeMillis() < end; ) {
                Thread.sleep(100);
            }
            Thread.sleep(4000);
            processor.stop().block(Duration.ofSeconds(20));
        } catch (Exception e) {
            System.out.println("failed: " + String.valueOf(e).replaceAll("\\s+", " "));
        }
        System.out.println("delivered " + seen.values().stream().mapToInt(n -> n).sum() + " of " + seen.size() + " documents");
        System.exit(0);
    }
}
