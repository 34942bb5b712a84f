import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.util.BinaryData;
import com.azure.core.util.IterableStream;
import com.azure.messaging.servicebus.*;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.exception.*;
import com.azure.messaging.servicebus.administration.*;
import com.azure.messaging.servicebus.administration.models.*;
import com.azure.messaging.servicebus.models.*;
import java.io.*;
import java.time.*;
import java.util.*;
import java.util.stream.*;

/**
 * Scenarios of azure-messaging-servicebus (Java, on Proton-J) against an endpoint. It checks
 * what others do not: that a settlement is confirmed with the outcome it asked for, and that
 * a state is answered for each of them.
 *
 * Each scenario has its own entities (Config.json) or empties those it uses. Prints one
 * line for each and exits 1 if one failed. An argument selects those whose name contains it.
 * The SDK dials port 5672 of the connection string's host, whatever port that names.
 */
public class Suite {
    static final String RUN = UUID.randomUUID().toString().substring(0, 8);
    static final Duration WAIT = Duration.ofSeconds(5);
    static final Duration SOON = Duration.ofMillis(300);

    interface Scenario { void run() throws Exception; }

    static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    static ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(System.getenv("SERVICEBUS_CONNECTION_STRING"))
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(10)));
    }

    static ServiceBusReceiverClient receiver(String queue) { return builder().receiver().queueName(queue).disableAutoComplete().buildClient(); }
    static ServiceBusSenderClient sender(String queue) { return builder().sender().queueName(queue).buildClient(); }
    static ServiceBusReceiverClient dead(String queue) {
        return builder().receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).disableAutoComplete().buildClient();
    }

    static ServiceBusMessage message(String name) {
        return new ServiceBusMessage(BinaryData.fromString(name)).setMessageId(RUN + "-" + name);
    }

    static void send(String queue, ServiceBusMessage... messages) {
        try (var s = sender(queue)) { s.sendMessages(List.of(messages)); }
    }

    static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient r, int count) {
        var got = new ArrayList<ServiceBusReceivedMessage>();
        while (got.size() < count) {
            var some = r.receiveMessages(count - got.size(), WAIT).stream().toList();
            check(!some.isEmpty(), got.size() + " of " + count + " messages came");
            got.addAll(some);
        }
        return got;
    }

    static void none(ServiceBusReceiverClient r) {
        var got = names(r.receiveMessages(1, SOON).stream().toList());
        check(got.isEmpty(), "came: " + got);
    }

    static List<String> names(Collection<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(m -> m.getBody().toString()).toList();
    }

    static void check(boolean ok, String otherwise) { if (!ok) throw new AssertionError(otherwise); }
    static void same(Object got, Object want) { check(Objects.equals(got, want), "got " + got + ", want " + want); }

    static ServiceBusException refused(ServiceBusFailureReason reason, Scenario s) throws Exception {
        try { s.run(); } catch (ServiceBusException e) { same(e.getReason(), reason); return e; }
        throw new AssertionError("nothing was thrown");
    }

    /** The connection string for what is never without TLS: administration and WebSockets, on port 443. */
    static String secure() {
        return System.getenv("SERVICEBUS_CONNECTION_STRING").replaceAll(":5672|;UseDevelopmentEmulator=true", "");
    }

    static void thrown(Class<? extends Exception> kind, Scenario s) throws Exception {
        try { s.run(); } catch (Exception e) { check(kind.isInstance(e), "thrown: " + e); return; }
        throw new AssertionError("nothing was thrown");
    }

    static {
        SCENARIOS.put("complete: gone", () -> {
            send("drain", message("a"), message("b"));
            try (var r = receiver("drain")) {
                for (var m : take(r, 2)) r.complete(m);
                none(r);
            }
        });
        SCENARIOS.put("abandon: comes again, counted, with properties", () -> {
            send("abandon", message("a"));
            try (var r = receiver("abandon")) {
                r.abandon(take(r, 1).get(0), new AbandonOptions().setPropertiesToModify(Map.of("why", "later")));
                var again = take(r, 1).get(0);
                same(again.getDeliveryCount(), 1L);
                same(again.getApplicationProperties().get("why"), "later");
                r.complete(again);
            }
        });
        SCENARIOS.put("dead letter: reason, description, property", () -> {
            send("dead", message("a"));
            try (var r = receiver("dead"); var d = dead("dead")) {
                r.deadLetter(take(r, 1).get(0), new DeadLetterOptions().setDeadLetterReason("bad").setDeadLetterErrorDescription("very")
                    .setPropertiesToModify(Map.of("k", 7)));
                var m = take(d, 1).get(0);
                same(m.getDeadLetterReason() + " " + m.getDeadLetterErrorDescription(), "bad very");
                same(m.getApplicationProperties().get("k"), 7);
                d.complete(m);
            }
        });
        SCENARIOS.put("defer: only by sequence number", () -> {
            send("defer", message("a"), message("b"));
            try (var r = receiver("defer")) {
                var got = take(r, 2);
                r.defer(got.get(0));
                r.complete(got.get(1));
                none(r);
                var back = r.receiveDeferredMessage(got.get(0).getSequenceNumber());
                same(back.getBody().toString(), "a");
                r.complete(back);
            }
        });
        SCENARIOS.put("max delivery count: ends in the dead-letter queue", () -> {
            send("maxdelivery", message("a"));
            try (var r = receiver("maxdelivery"); var d = dead("maxdelivery")) {
                for (int i = 0; i < 3; i++) r.abandon(take(r, 1).get(0));
                var m = take(d, 1).get(0);
                same(m.getDeadLetterReason(), "MaxDeliveryCountExceeded");
                d.complete(m);
            }
        });
        SCENARIOS.put("schedule: comes when it is due, a cancelled one never", () -> {
            try (var s = sender("schedule"); var r = receiver("schedule")) {
                var at = OffsetDateTime.now().plus(Duration.ofMillis(700));
                s.scheduleMessage(message("kept"), at);
                s.cancelScheduledMessage(s.scheduleMessage(message("gone"), at));
                var m = take(r, 1).get(0);
                check(!OffsetDateTime.now().isBefore(at.minus(Duration.ofMillis(5))), "too early");
                same(m.getBody().toString(), "kept");
                r.complete(m);
                none(r);
            }
        });
        SCENARIOS.put("session: by name, in order, state, renewal", () -> {
            send("sessions", IntStream.range(0, 5).mapToObj(i -> message("a-" + i).setSessionId("a")).toArray(ServiceBusMessage[]::new));
            try (var c = builder().sessionReceiver().queueName("sessions").disableAutoComplete().buildClient(); var r = c.acceptSession("a")) {
                same(r.getSessionId(), "a");
                var got = take(r, 5);
                same(names(got), List.of("a-0", "a-1", "a-2", "a-3", "a-4"));
                r.setSessionState("half way".getBytes());
                same(new String(r.getSessionState()), "half way");
                check(r.renewSessionLock().isAfter(OffsetDateTime.now()), "not renewed");
                r.setSessionState(null);
                for (var m : got) r.complete(m);
            }
        });
        SCENARIOS.put("session: next available, a held one is refused, abandon keeps the order", () -> {
            send("sessions-next", message("x-1").setSessionId("x"), message("x-2").setSessionId("x"));
            try (var c = builder().sessionReceiver().queueName("sessions-next").disableAutoComplete().buildClient(); var r = c.acceptNextSession()) {
                same(r.getSessionId(), "x");
                try {
                    c.acceptSession("x").close();
                    throw new AssertionError("a session was accepted twice");
                } catch (AmqpException e) {
                    check(e.getMessage().contains("cannot be accepted"), e.getMessage());
                }
                var first = take(r, 1).get(0);
                r.abandon(first);
                var again = take(r, 2);
                same(names(again), List.of("x-1", "x-2"));
                for (var m : again) r.complete(m);
            }
        });
        SCENARIOS.put("message lock: renewed", () -> {
            send("locks", message("a"));
            try (var r = receiver("locks")) {
                var m = take(r, 1).get(0);
                check(r.renewMessageLock(m).isAfter(m.getEnqueuedTime()), "not renewed");
                r.complete(m);
            }
        });
        SCENARIOS.put("duplicates: accepted and dropped, in a batch too", () -> {
            try (var s = sender("dedupe"); var r = receiver("dedupe")) {
                var batch = s.createMessageBatch();
                for (var n : List.of("1", "2", "3")) check(batch.tryAddMessage(message(n)), "does not fit");
                s.sendMessages(batch);
                s.sendMessages(List.of(message("2"), message("3"), message("4")));
                var got = take(r, 4);
                same(names(got), List.of("1", "2", "3", "4"));
                for (var m : got) r.complete(m);
                none(r);
            }
        });
        SCENARIOS.put("browse: peek shows and takes nothing", () -> {
            send("peek", message("a"), message("b"));
            try (var r = receiver("peek")) {
                same(names(r.peekMessages(10).stream().toList()), List.of("a", "b"));
                for (var m : take(r, 2)) r.complete(m);
                same(r.peekMessages(10).stream().count(), 0L);
            }
        });
        SCENARIOS.put("receive and delete", () -> {
            send("delete", message("a"), message("b"));
            try (var r = builder().receiver().queueName("delete").receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
                same(names(take(r, 2)), List.of("a", "b"));
                same(r.peekMessages(10).stream().count(), 0L);
            }
        });
        SCENARIOS.put("rules: made, listed, obeyed, removed", () -> {
            try (var rules = builder().ruleManager().topicName("topic").subscriptionName("rules").buildClient();
                 var s = builder().sender().topicName("topic").buildClient();
                 var r = builder().receiver().topicName("topic").subscriptionName("rules").disableAutoComplete().buildClient();
                 var other = builder().receiver().topicName("topic").subscriptionName("sub").receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
                for (var rule : rules.listRules()) rules.deleteRule(rule.getName());
                rules.createRule("sql", new CreateRuleOptions(new SqlRuleFilter("n * 2 BETWEEN 4 AND 6 AND sys.Label = 's'"))
                    .setAction(new SqlRuleAction("SET seen = n + 1; REMOVE n")));
                rules.createRule("exact", new CreateRuleOptions(new CorrelationRuleFilter().setCorrelationId("c")));
                same(rules.listRules().stream().map(RuleProperties::getName).sorted().toList(), List.of("exact", "sql"));
                for (int n = 1; n <= 4; n++) {
                    var m = message("n" + n).setSubject("s");
                    m.getApplicationProperties().put("n", n);
                    s.sendMessage(m);
                }
                s.sendMessage(message("c").setCorrelationId("c"));
                var got = take(r, 3);
                same(names(got), List.of("n2", "n3", "c"));
                same(got.get(0).getApplicationProperties(), Map.of("seen", 3L));
                for (var m : got) r.complete(m);
                take(other, 5);
            }
        });
        SCENARIOS.put("transactions: send and settle in one, committed", () -> {
            send("tx", message("in"));
            try (var c = receiver("tx"); var s = sender("tx-out"); var out = receiver("tx-out")) {
                var m = take(c, 1).get(0);
                var t = c.createTransaction();
                c.complete(m, new CompleteOptions().setTransactionContext(t));
                c.commitTransaction(t);
                none(c);
                var u = s.createTransaction();
                s.sendMessage(message("1"), u);
                s.sendMessages(List.of(message("2"), message("3")), u);
                same(out.peekMessages(10).stream().count(), 0L); // a receive that ended empty has a credit left, and the SDK puts back what comes for it, behind others
                s.commitTransaction(u);
                var got = take(out, 3);
                same(names(got), List.of("1", "2", "3"));
                for (var x : got) out.complete(x);
            }
        });
        SCENARIOS.put("transactions: rolled back, nothing has happened", () -> {
            send("tx", message("in"));
            try (var c = receiver("tx"); var s = sender("tx-out"); var out = receiver("tx-out")) {
                var m = take(c, 1).get(0);
                var t = c.createTransaction();
                c.deadLetter(m, new DeadLetterOptions().setTransactionContext(t));
                c.rollbackTransaction(t);
                same(c.peekMessages(10).stream().count(), 1L); // and still locked: the SDK lets nobody settle it again
                var u = s.createTransaction();
                s.sendMessage(message("never"), u);
                s.rollbackTransaction(u);
                none(out);
                none(c);
            }
        });
        SCENARIOS.put("websockets: send, receive, settle, by TLS", () -> {
            var b = new ServiceBusClientBuilder().connectionString(secure()).transportType(AmqpTransportType.AMQP_WEB_SOCKETS);
            var large = "x".repeat(200_000);
            try (var s = b.sender().queueName("drain").buildClient(); var r = b.receiver().queueName("drain").disableAutoComplete().buildClient()) {
                s.sendMessage(new ServiceBusMessage(large));
                var m = take(r, 1).get(0);
                same(m.getBody().toString(), large);
                r.complete(m);
                none(r);
            }
        });
        SCENARIOS.put("administration: queues, topics, subscriptions, rules", () -> {
            var a = new ServiceBusAdministrationClientBuilder().connectionString(secure()).buildClient();
            var name = "own-" + RUN;
            var q = a.createQueue(name, new CreateQueueOptions().setLockDuration(Duration.ofSeconds(20)).setSessionRequired(true).setMaxDeliveryCount(4));
            same(List.of(q.getLockDuration(), q.isSessionRequired(), q.getMaxDeliveryCount()), List.of(Duration.ofSeconds(20), true, 4));
            same(a.updateQueue(q.setMaxDeliveryCount(5)).getMaxDeliveryCount(), 5);
            same(a.getQueue(name).getMaxDeliveryCount(), 5);
            check(a.getQueueExists(name) && !a.getQueueExists("nobody"), "exists");
            check(a.listQueues().stream().anyMatch(x -> x.getName().equals(name)), "not listed");
            send(name, message("1").setSessionId("s"), message("2").setSessionId("s"));
            var counts = a.getQueueRuntimeProperties(name);
            same(List.of(counts.getActiveMessageCount(), counts.getTotalMessageCount()), List.of(2, 2L));
            thrown(ResourceExistsException.class, () -> a.createQueue(name));
            a.deleteQueue(name);
            check(!a.getQueueExists(name), "is still there");
            thrown(ResourceNotFoundException.class, () -> a.getQueue(name));
            a.createTopic(name);
            a.createSubscription(name, "sub", "mine", new CreateSubscriptionOptions().setDeadLetteringOnMessageExpiration(true),
                new CreateRuleOptions().setFilter(new SqlRuleFilter("n > 1")).setAction(new SqlRuleAction("SET n = 7")));
            a.createRule(name, "other", "sub", new CreateRuleOptions().setFilter(new CorrelationRuleFilter().setLabel("l")));
            same(a.listRules(name, "sub").stream().map(RuleProperties::getName).sorted().toList(), List.of("mine", "other"));
            same(((SqlRuleFilter) a.getRule(name, "sub", "mine").getFilter()).getSqlExpression(), "n > 1");
            a.deleteRule(name, "sub", "other");
            same(a.getTopicRuntimeProperties(name).getSubscriptionCount(), 1);
            a.deleteSubscription(name, "sub");
            a.deleteTopic(name);
            check(!a.getTopicExists(name), "is still there");
        });
        SCENARIOS.put("errors: unknown entity, too large, wrong kind of receiver", () -> {
            refused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> send("nobody", message("x")));
            refused(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED, () -> {
                try (var s = sender("peek")) { s.sendMessage(new ServiceBusMessage(BinaryData.fromBytes(new byte[300 << 10]))); }
            });
            try (var r = receiver("sessions")) {
                r.receiveMessages(1, SOON).stream().count();
                throw new AssertionError("received from sessions without one");
            } catch (RuntimeException expected) { // of several kinds, by who notices first
            }
        });
    }

    public static void main(String[] args) {
        int passed = 0, failed = 0;
        for (var s : SCENARIOS.entrySet()) {
            if (args.length > 0 && !s.getKey().contains(args[0])) continue;
            long start = System.nanoTime();
            String verdict = "pass", more = "";
            try {
                s.getValue().run();
                passed++;
            } catch (Throwable e) { // of whatever kind: the scenario failed
                failed++;
                verdict = "FAIL";
                var text = new StringWriter();
                e.printStackTrace(new PrintWriter(text));
                more = "\n" + text.toString().lines().limit(12).collect(Collectors.joining("\n"));
            }
            System.out.printf("%s  %s (%d ms)%s%n", verdict, s.getKey(), (System.nanoTime() - start) / 1_000_000, more);
        }
        System.out.printf("%d passed, %d failed%n", passed, failed);
        System.exit(failed > 0 ? 1 : 0);
    }
}
