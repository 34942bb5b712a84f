import jakarta.jms.*;
import java.io.*;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Scenarios of JMS (Apache Qpid JMS, which Microsoft's own JMS library stands on) against
 * an endpoint: SASL PLAIN with the name and the value of the key, AMQP without the
 * service's extensions. What an SDK of the service takes for granted is asked for here by
 * the protocol alone: browsing, transacted sessions, redelivery.
 *
 * Prints one line for each and exits 1 if one failed. An argument selects those whose
 * name contains it.
 */
public class JmsSuite {
    interface Scenario { void run(Connection c) throws Exception; }

    static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();
    static final long WAIT = 5000, SOON = 300;

    static String part(String name) {
        for (var p : System.getenv("SERVICEBUS_CONNECTION_STRING").split(";"))
            if (p.startsWith(name + "=")) return p.substring(name.length() + 1);
        throw new AssertionError("no " + name + " in the connection string");
    }

    static Connection connect() throws JMSException {
        var host = part("Endpoint").replace("sb://", "").replace("/", "");
        var c = new JmsConnectionFactory(part("SharedAccessKeyName"), part("SharedAccessKey"), "amqp://" + host + "?jms.prefetchPolicy.all=10").createConnection();
        c.start();
        return c;
    }

    static void send(Session s, String queue, String... texts) throws JMSException {
        var p = s.createProducer(s.createQueue(queue));
        for (var t : texts) p.send(s.createTextMessage(t));
        p.close();
    }

    static void want(MessageConsumer c, String... texts) throws JMSException {
        for (var t : texts) same(text(c.receive(WAIT)), t);
        same(text(c.receive(SOON)), null);
    }

    static String text(Message m) throws JMSException { return m == null ? null : m.getBody(String.class); }
    static void same(Object got, Object want) {
        if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
    }

    static {
        SCENARIOS.put("queue: in order, properties, types", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var m = s.createTextMessage("a");
            m.setStringProperty("text", "é");
            m.setLongProperty("number", 7);
            m.setBooleanProperty("flag", true);
            m.setJMSCorrelationID("c");
            var p = s.createProducer(s.createQueue("drain"));
            p.send(m);
            p.send(s.createTextMessage("b"));
            var r = s.createConsumer(s.createQueue("drain"));
            var got = r.receive(WAIT);
            same(List.of(text(got), got.getStringProperty("text"), got.getLongProperty("number"), got.getBooleanProperty("flag"), got.getJMSCorrelationID()),
                List.of("a", "é", 7L, true, "c"));
            want(r, "b");
        });
        SCENARIOS.put("acknowledge by the client; recovered messages come again", c -> {
            var s = c.createSession(Session.CLIENT_ACKNOWLEDGE);
            send(s, "locks", "a", "b");
            var r = s.createConsumer(s.createQueue("locks"));
            same(text(r.receive(WAIT)), "a");
            s.recover();
            var again = r.receive(WAIT);
            same(text(again) + again.getJMSRedelivered(), "atrue");
            same(text(r.receive(WAIT)), "b");
            again.acknowledge();
            want(r);
        });
        SCENARIOS.put("browse: shows all, takes nothing", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            send(s, "browse", "a", "b", "c");
            for (int round = 0; round < 2; round++) {
                var b = s.createBrowser(s.createQueue("browse"));
                var seen = new ArrayList<String>();
                for (Object m : Collections.list(b.getEnumeration())) seen.add(text((Message) m));
                same(seen, List.of("a", "b", "c"));
                b.close();
            }
            want(s.createConsumer(s.createQueue("browse")), "a", "b", "c");
        });
        SCENARIOS.put("transacted: receive and send, committed", c -> {
            var plain = c.createSession(Session.AUTO_ACKNOWLEDGE);
            send(plain, "tx", "in");
            var s = c.createSession(Session.SESSION_TRANSACTED);
            var r = s.createConsumer(s.createQueue("tx"));
            same(text(r.receive(WAIT)), "in");
            send(s, "tx-out", "1", "2");
            var out = plain.createConsumer(plain.createQueue("tx-out"));
            want(out);
            s.commit();
            want(out, "1", "2");
            s.close();
            want(plain.createConsumer(plain.createQueue("tx")));
        });
        SCENARIOS.put("transacted: rolled back, it comes again and nothing was sent", c -> {
            var plain = c.createSession(Session.AUTO_ACKNOWLEDGE);
            send(plain, "tx", "in");
            var s = c.createSession(Session.SESSION_TRANSACTED);
            var r = s.createConsumer(s.createQueue("tx"));
            same(text(r.receive(WAIT)), "in");
            send(s, "tx-out", "never");
            s.rollback();
            var again = r.receive(WAIT);
            same(text(again) + again.getJMSRedelivered(), "intrue");
            s.commit();
            s.close();
            want(plain.createConsumer(plain.createQueue("tx")));
            want(plain.createConsumer(plain.createQueue("tx-out")));
        });
        SCENARIOS.put("topic: to a subscription, by its path", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var r = s.createConsumer(s.createQueue("topic/Subscriptions/sub"));
            s.createProducer(s.createTopic("topic")).send(s.createTextMessage("t"));
            want(r, "t");
        });
        SCENARIOS.put("refused loudly: selectors, consumers and durable subscriptions of a topic, temporary queues", c -> {
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createConsumer(s.createQueue("drain"), "n > 1"); });
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createConsumer(s.createTopic("topic")); });
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createSharedConsumer(s.createTopic("topic"), "shared"); });
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createTemporaryQueue(); });
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createConsumer(s.createQueue("nobody")); });
        });
    }

    interface Call { void run() throws Exception; }

    static void refused(Call call) throws Exception {
        try { call.run(); } catch (JMSException e) { return; }
        throw new AssertionError("not refused");
    }

    public static void main(String[] args) {
        int passed = 0, failed = 0;
        for (var s : SCENARIOS.entrySet()) {
            if (args.length > 0 && !s.getKey().contains(args[0])) continue;
            long start = System.nanoTime();
            String verdict = "pass", more = "";
            try (var c = connect()) {
                s.getValue().run(c);
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
