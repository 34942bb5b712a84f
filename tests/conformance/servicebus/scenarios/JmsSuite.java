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

    static Connection connect(String... options) throws JMSException {
        var host = part("Endpoint").replace("sb://", "").replace("/", "");
        var c = new JmsConnectionFactory(part("SharedAccessKeyName"), part("SharedAccessKey"), "amqp://" + host + "?jms.prefetchPolicy.all=10" + String.join("", options)).createConnection();
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
        SCENARIOS.put("topic: consumers get what comes while they are there, each its copy", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var p = s.createProducer(s.createTopic("jms"));
            p.send(s.createTextMessage("before"));
            var one = s.createConsumer(s.createTopic("jms"));
            var two = s.createConsumer(s.createTopic("jms"), "n BETWEEN 2 AND 3 OR JMSType = 'it''s JMSType'");
            for (int n = 1; n <= 4; n++) {
                var m = s.createTextMessage("" + n);
                m.setIntProperty("n", n);
                if (n == 4) m.setJMSType("it's JMSType");
                p.send(m);
            }
            want(one, "1", "2", "3", "4");
            want(two, "2", "3", "4");
        });
        SCENARIOS.put("topic: durable subscriptions keep what comes meanwhile, until they are unsubscribed", plain -> {
            var c = connect("&jms.clientID=durable-" + UUID.randomUUID().toString().substring(0, 6));
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var p = s.createProducer(s.createTopic("jms"));
            var r = s.createDurableSubscriber(s.createTopic("jms"), "durable");
            p.send(s.createTextMessage("1"));
            want(r, "1");
            r.close();
            p.send(s.createTextMessage("2"));
            r = s.createDurableSubscriber(s.createTopic("jms"), "durable");
            want(r, "2");
            r.close();
            p.send(s.createTextMessage("3"));
            s.unsubscribe("durable");
            r = s.createDurableSubscriber(s.createTopic("jms"), "durable");
            want(r);
            r.close();
            s.unsubscribe("durable");
            refused(() -> s.unsubscribe("durable"));
            c.close();
        });
        SCENARIOS.put("topic: shared subscriptions, durable or not, give each message to one consumer", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var t = s.createTopic("jms");
            var p = s.createProducer(t);
            try (var other = connect()) {
                var there = other.createSession(Session.AUTO_ACKNOWLEDGE);
                for (boolean durable : new boolean[] {false, true}) {
                    var name = durable ? "kept" : "shared";
                    var one = durable ? s.createSharedDurableConsumer(t, name) : s.createSharedConsumer(t, name);
                    var two = durable ? there.createSharedDurableConsumer(t, name) : there.createSharedConsumer(t, name);
                    var sent = new TreeSet<String>();
                    for (int n = 0; n < 6; n++) {
                        p.send(s.createTextMessage(name + n));
                        sent.add(name + n);
                    }
                    var got = new TreeSet<String>();
                    for (int n = 0; n < 6; n++) {
                        var m = one.receive(SOON);
                        got.add(text(m != null ? m : two.receive(SOON)));
                    }
                    same(got, sent);
                    same(text(one.receive(SOON)) + text(two.receive(SOON)), "nullnull");
                    one.close();
                    two.close();
                    p.send(s.createTextMessage("meanwhile"));
                    var again = durable ? s.createSharedDurableConsumer(t, name) : s.createSharedConsumer(t, name);
                    if (durable) want(again, "meanwhile"); else want(again);
                    again.close();
                }
                s.unsubscribe("kept");
            }
        });
        SCENARIOS.put("delivery delay: comes when it is due", c -> {
            var s = c.createSession(Session.AUTO_ACKNOWLEDGE);
            var p = s.createProducer(s.createQueue("drain"));
            p.setDeliveryDelay(700);
            var start = System.nanoTime();
            p.send(s.createTextMessage("later"));
            want(s.createConsumer(s.createQueue("drain")), "later");
            if (System.nanoTime() - start < 690_000_000L) throw new AssertionError("too early");
        });
        SCENARIOS.put("refused loudly: selectors on a queue or by an unknown header, temporary queues", c -> {
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createConsumer(s.createQueue("drain"), "n > 1"); });
            refused(() -> { var s = c.createSession(Session.AUTO_ACKNOWLEDGE); s.createConsumer(s.createTopic("jms"), "JMSPriority > 1"); });
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
