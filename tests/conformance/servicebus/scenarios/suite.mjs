// Scenarios of @azure/service-bus against the emulator, so that what the Go SDK
// happens to do does not become the specification. rhea, the AMQP library below,
// differs from go-amqp on the wire: plain session filters, drain, one AMQP session
// for all links, a $cbs link for the connection's life.
//
// Each scenario has its own entities (Config.json). Prints one line for each and exits
// 1 if one failed.

import assert from "node:assert/strict";
import { ServiceBusClient, isServiceBusError } from "@azure/service-bus";

const client = () => new ServiceBusClient(process.env.SERVICEBUS_CONNECTION_STRING, { retryOptions: { maxRetries: 0, timeoutInMs: 10000 } });
const ids = (messages) => messages.map((m) => m.messageId);
const session = (id, n) => Array.from({ length: n }, (_, i) => ({ body: { n: i + 1 }, messageId: `${id}-${i + 1}`, sessionId: id }));

async function take(receiver, count) {
  const got = [];
  while (got.length < count) {
    const some = await receiver.receiveMessages(count - got.length, { maxWaitTimeInMs: 5000 });
    assert.ok(some.length > 0, `${got.length} of ${count} messages came`);
    got.push(...some);
  }
  return got;
}

const scenarios = {
  async "session: accept by name, receive in order, complete"(c) {
    await c.createSender("sessions").sendMessages(session("a", 5));
    const receiver = await c.acceptSession("sessions", "a");
    assert.equal(receiver.sessionId, "a");
    assert.ok(receiver.sessionLockedUntilUtc > new Date());
    const got = await take(receiver, 5);
    assert.deepEqual(ids(got), ["a-1", "a-2", "a-3", "a-4", "a-5"]);
    assert.deepEqual(got[0].body, { n: 1 });
    assert.equal(got[0].deliveryCount, 0);
    for (const m of got) await receiver.completeMessage(m);
    assert.equal((await receiver.peekMessages(10)).length, 0);
    await receiver.close();
  },

  async "session: accept next, time-out when none is left"(c) {
    await c.createSender("sessions-next").sendMessages([...session("x", 1), ...session("y", 1)]);
    const first = await c.acceptNextSession("sessions-next");
    const second = await c.acceptNextSession("sessions-next");
    assert.deepEqual([first.sessionId, second.sessionId].sort(), ["x", "y"]);
    await assert.rejects(c.acceptNextSession("sessions-next", { maxTimeAfterFirst: 0, abortSignal: AbortSignal.timeout(8000) }));
    await assert.rejects(c.acceptSession("sessions-next", "x"), (e) => isServiceBusError(e) && e.code === "SessionCannotBeLocked");
    await first.close();
    const again = await c.acceptSession("sessions-next", "x");
    await again.close();
    await second.close();
  },

  async "session: state and renewal"(c) {
    const receiver = await c.acceptSession("sessions-state", "s");
    assert.equal(await receiver.getSessionState(), null);
    await receiver.setSessionState(Buffer.from("half way"));
    assert.equal((await receiver.getSessionState()).toString(), "half way");
    const before = receiver.sessionLockedUntilUtc;
    await new Promise((r) => setTimeout(r, 50));
    assert.ok((await receiver.renewSessionLock()) > before);
    await receiver.setSessionState(null);
    assert.equal(await receiver.getSessionState(), null);
    await receiver.close();
  },

  async "batch: duplicate ids are accepted and dropped"(c) {
    const sender = c.createSender("dedupe");
    const batch = await sender.createMessageBatch();
    const run = Date.now().toString(36); // the history outlives a run
    for (const id of ["1", "2", "3"]) assert.ok(batch.tryAddMessage({ body: id, messageId: run + id }));
    await sender.sendMessages(batch);
    await sender.sendMessages(["2", "3", "4"].map((id) => ({ body: id, messageId: run + id })));
    const receiver = c.createReceiver("dedupe");
    const got = await take(receiver, 4);
    assert.deepEqual(got.map((m) => m.body), ["1", "2", "3", "4"]);
    for (const m of got) await receiver.completeMessage(m);
    assert.equal((await receiver.receiveMessages(1, { maxWaitTimeInMs: 200 })).length, 0);
  },

  async "drain: credit that is not used is given back in time"(c) {
    const receiver = c.createReceiver("drain");
    for (let i = 0; i < 3; i++) {
      const start = Date.now();
      assert.equal((await receiver.receiveMessages(10, { maxWaitTimeInMs: 100 })).length, 0);
      assert.ok(Date.now() - start < 1000);
    }
    await c.createSender("drain").sendMessages(["1", "2", "3"].map((id) => ({ body: id, messageId: id })));
    const got = await receiver.receiveMessages(10, { maxWaitTimeInMs: 1000 });
    assert.ok(got.length > 0 && got.length <= 3);
    got.push(...(await take(receiver, 3 - got.length)));
    for (const m of got) await receiver.completeMessage(m);
    assert.ok(!receiver.isClosed);
  },

  async "receive and delete"(c) {
    await c.createSender("delete").sendMessages([{ body: 1 }, { body: 2 }]);
    const receiver = c.createReceiver("delete", { receiveMode: "receiveAndDelete" });
    assert.equal((await take(receiver, 2)).length, 2);
    assert.equal((await receiver.peekMessages(10)).length, 0);
  },

  async "peek: messages and their state"(c) {
    const sender = c.createSender("peek");
    await sender.sendMessages([{ body: "a", messageId: "a", subject: "s", applicationProperties: { n: 1 } }, { body: "b", messageId: "b" }]);
    const [scheduled] = await sender.scheduleMessages({ body: "c", messageId: "c" }, new Date(Date.now() + 3600e3));
    const receiver = c.createReceiver("peek");
    const seen = await receiver.peekMessages(10);
    assert.deepEqual(ids(seen), ["a", "b", "c"]);
    assert.deepEqual(seen.map((m) => m.state), ["active", "active", "scheduled"]);
    assert.equal(seen[0].subject, "s");
    assert.deepEqual(seen[0].applicationProperties, { n: 1 });
    assert.equal(seen[2].sequenceNumber.toString(), scheduled.toString());
    await sender.cancelScheduledMessages(scheduled);
    for (const m of await take(receiver, 2)) await receiver.completeMessage(m);
  },

  async "abandon: comes again, counted, with changed properties"(c) {
    await c.createSender("abandon").sendMessages({ body: 1, messageId: "a" });
    const receiver = c.createReceiver("abandon");
    const [first] = await take(receiver, 1);
    await receiver.abandonMessage(first, { tried: "once" });
    const [second] = await take(receiver, 1);
    assert.equal(second.messageId, "a");
    assert.equal(second.deliveryCount, 1);
    assert.equal(second.applicationProperties.tried, "once");
    await receiver.completeMessage(second);
    await assert.rejects(receiver.completeMessage(first), (e) => isServiceBusError(e) || e instanceof Error);
  },

  async "dead letter: reason, description, source"(c) {
    await c.createSender("dead").sendMessages({ body: 1, messageId: "a" });
    const receiver = c.createReceiver("dead");
    const [m] = await take(receiver, 1);
    await receiver.deadLetterMessage(m, { deadLetterReason: "bad", deadLetterErrorDescription: "very", seen: true });
    const dlq = c.createReceiver("dead", { subQueueType: "deadLetter" });
    const [dead] = await take(dlq, 1);
    assert.equal(dead.deadLetterReason, "bad");
    assert.equal(dead.deadLetterErrorDescription, "very");
    assert.equal(dead.applicationProperties.seen, true);
    await dlq.completeMessage(dead);
  },

  async "max delivery count: ends in the dead-letter queue"(c) {
    await c.createSender("maxdelivery").sendMessages({ body: 1, messageId: "a" });
    const receiver = c.createReceiver("maxdelivery");
    for (let i = 0; i < 3; i++) await receiver.abandonMessage((await take(receiver, 1))[0]);
    const [dead] = await take(c.createReceiver("maxdelivery", { subQueueType: "deadLetter" }), 1);
    assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  },

  async "schedule: comes when it is due; cancelled ones never"(c) {
    const sender = c.createSender("schedule");
    const at = new Date(Date.now() + 700);
    const numbers = await sender.scheduleMessages([{ body: 1, messageId: "kept" }, { body: 2, messageId: "cancelled" }], at);
    await sender.cancelScheduledMessages(numbers[1]);
    const receiver = c.createReceiver("schedule");
    const [m] = await take(receiver, 1);
    assert.ok(Date.now() >= at.getTime() - 5);
    assert.equal(m.messageId, "kept");
    await receiver.completeMessage(m);
    assert.equal((await receiver.peekMessages(10)).length, 0);
  },

  async "defer: only by sequence number, settled without a link"(c) {
    await c.createSender("defer").sendMessages([{ body: 1, messageId: "a" }, { body: 2, messageId: "b" }]);
    const receiver = c.createReceiver("defer");
    const [a, b] = await take(receiver, 2);
    await receiver.deferMessage(a, { why: "later" });
    await receiver.completeMessage(b);
    assert.equal((await receiver.receiveMessages(1, { maxWaitTimeInMs: 200 })).length, 0);
    const [back] = await receiver.receiveDeferredMessages(a.sequenceNumber);
    assert.equal(back.messageId, "a");
    assert.equal(back.applicationProperties.why, "later");
    await receiver.completeMessage(back);
    assert.equal((await receiver.peekMessages(10)).length, 0);
  },

  async "message lock: renewed, and settled by another link"(c) {
    await c.createSender("locks").sendMessages({ body: 1, messageId: "a" }); // the SDK cannot complete without an id
    const receiver = c.createReceiver("locks");
    const [m] = await take(receiver, 1);
    const before = m.lockedUntilUtc;
    await new Promise((r) => setTimeout(r, 50));
    assert.ok((await receiver.renewMessageLock(m)) > before);
    await receiver.completeMessage(m);
  },

  async "streaming: subscribe to a session"(c) {
    await c.createSender("stream").sendMessages(session("s", 50));
    const receiver = await c.acceptSession("stream", "s");
    const got = [];
    await new Promise((resolve, reject) => {
      receiver.subscribe({
        async processMessage(m) {
          got.push(m.messageId);
          if (got.length === 50) resolve();
        },
        async processError(e) { reject(e.error); },
      });
    });
    assert.deepEqual(got, session("s", 50).map((m) => m.messageId));
    await receiver.close();
  },

  async "topic: rules by the rule manager"(c) {
    const rules = c.createRuleManager("topic", "sub");
    await rules.createRule("red", { subject: "red" });
    await rules.createRule("big", { sqlExpression: "size > 10" });
    await rules.deleteRule("$Default");
    const listed = [];
    for await (const r of rules.listRules()) listed.push(r);
    assert.deepEqual(listed.map((r) => r.name).sort(), ["big", "red"]);
    assert.equal(listed.find((r) => r.name === "red").filter.subject, "red");
    assert.equal(listed.find((r) => r.name === "big").filter.sqlExpression, "size > 10");
    await c.createSender("topic").sendMessages([
      { body: 1, messageId: "red", subject: "red" }, { body: 2, messageId: "blue", subject: "blue" },
      { body: 3, messageId: "large", applicationProperties: { size: 11 } },
    ]);
    const receiver = c.createReceiver("topic", "sub");
    const got = await take(receiver, 2);
    assert.deepEqual(ids(got).sort(), ["large", "red"]);
    for (const m of got) await receiver.completeMessage(m);
    for (const name of ["red", "big"]) await rules.deleteRule(name);
    await rules.createRule("$Default", { sqlExpression: "1=1" });
  },

  async "errors: unknown entity, too large, non-session receiver on sessions"(c) {
    await assert.rejects(c.createSender("nobody").sendMessages({ body: 1 }), (e) => e.code === "MessagingEntityNotFound");
    await assert.rejects(c.createSender("peek").sendMessages({ body: Buffer.alloc(300 * 1024) }), (e) => e.code === "MessageSizeExceeded");
    await assert.rejects(c.createReceiver("sessions").receiveMessages(1, { maxWaitTimeInMs: 1000 }), (e) => /requires sessions/.test(e.message));
    await assert.rejects(c.createSender("sessions").sendMessages({ body: 1 }), (e) => /SessionId/.test(e.message));
  },
};

let passed = 0;
let failed = 0;
for (const [name, scenario] of Object.entries(scenarios)) {
  if (process.argv[2] && !name.includes(process.argv[2])) continue;
  const c = client();
  const start = Date.now();
  try {
    await Promise.race([
      scenario(c),
      new Promise((_, reject) => setTimeout(() => reject(new Error("took longer than 90 s")), 90e3).unref()),
    ]);
    passed++;
    console.log(`pass  ${name} (${Date.now() - start} ms)`);
  } catch (e) {
    failed++;
    console.log(`FAIL  ${name} (${Date.now() - start} ms)\n${e.stack ?? e}`);
  }
  await c.close().catch(() => {});
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
