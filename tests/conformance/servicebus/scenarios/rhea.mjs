// Scenarios of rhea, AMQP 1.0 without any SDK of the service, against an endpoint: what
// the protocol alone says of outcomes, browsers and transactions, over TCP and WebSockets.
//
// Prints one line for each and exits 1 if one failed.

import assert from "node:assert/strict";
import rhea from "rhea";
import WebSocket from "ws";

const parts = Object.fromEntries(process.env.SERVICEBUS_CONNECTION_STRING.split(";").filter(Boolean).map((p) => [p.slice(0, p.indexOf("=")), p.slice(p.indexOf("=") + 1)]));
const { hostname, port } = new URL(parts.Endpoint.replace("sb://", "http://"));
const login = { username: parts.SharedAccessKeyName, password: parts.SharedAccessKey, reconnect: false };

const connect = (more) => rhea.create_container().connect({ host: hostname, port, ...login, ...more });
const once = (from, event) =>
  new Promise((resolve, reject) => {
    from.once(event, resolve);
    setTimeout(() => reject(new Error(`no ${event} within 5 s`)), 5000).unref();
  });

// send sends texts and resolves with the outcomes.
async function send(connection, queue, ...texts) {
  const sender = connection.open_sender(queue);
  await once(sender, "sendable");
  for (const body of texts) {
    sender.send({ body });
    await once(sender, "accepted");
  }
  sender.close();
}

// receive opens a receiver that settles nothing by itself.
const open = (connection, source) => connection.open_receiver({ source, credit_window: 0, autoaccept: false, autosettle: false, rcv_settle_mode: 1 });

async function take(receiver) {
  receiver.add_credit(1);
  return once(receiver, "message");
}

// batchDelete asks the entity's management node, as the newest SDKs do.
async function batchDelete(connection, queue, count, before) {
  const sender = connection.open_sender(`${queue}/$management`);
  const receiver = connection.open_receiver({ source: `${queue}/$management`, target: "replies" });
  await Promise.all([once(sender, "sendable"), once(receiver, "receiver_open")]);
  sender.send({
    message_id: "1", reply_to: "replies", application_properties: { operation: "com.microsoft:batch-delete-messages" },
    body: { "message-count": rhea.types.wrap_int(count), "enqueued-time-utc": rhea.types.wrap_timestamp(before.getTime()) },
  });
  const { message } = await once(receiver, "message");
  sender.close();
  receiver.close();
  const { statusCode } = message.application_properties;
  assert.ok(statusCode === 200 || statusCode === 204, `status ${statusCode}: ${message.application_properties.statusDescription}`);
  return statusCode === 204 ? 0 : message.body["message-count"];
}

const scenarios = {
  async "outcomes: each is confirmed as it was asked for"(connection) {
    await send(connection, "abandon", "a", "b", "c");
    const receiver = open(connection, "abandon");
    for (const [settle, confirmed] of [
      [(d) => d.update(false, rhea.message.released().described()), "released"],
      [(d) => d.update(false, rhea.message.modified({ delivery_failed: true }).described()), "modified"],
      [(d) => d.update(false, rhea.message.accepted().described()), "accepted"],
      [(d) => d.update(false, rhea.message.rejected({}).described()), "rejected"],
      [(d) => d.update(false, rhea.message.modified({ undeliverable_here: true }).described()), "modified"],
    ]) {
      const { delivery } = await take(receiver);
      const answered = once(receiver, "settled");
      settle(delivery);
      const { delivery: d } = await answered;
      assert.equal(d.remote_state.constructor.composite_type, confirmed);
    }
    receiver.close();
  },

  async "browse: distribution-mode copy takes nothing"(connection) {
    await send(connection, "browse", "a", "b");
    for (let round = 0; round < 2; round++) {
      const browser = open(connection, { address: "browse", distribution_mode: "copy" });
      const seen = [];
      for (let i = 0; i < 2; i++) {
        const { message, delivery } = await take(browser);
        seen.push(message.body);
        delivery.accept();
      }
      assert.deepEqual(seen, ["a", "b"]);
      browser.close();
    }
    const receiver = open(connection, "browse");
    for (const body of ["a", "b"]) {
      const { message, delivery } = await take(receiver);
      assert.equal(message.body, body);
      delivery.accept();
    }
    receiver.close();
  },

  async "batch delete: the oldest, as many as asked for, none after a time"(connection) {
    await send(connection, "peek", "a", "b", "c");
    assert.equal(await batchDelete(connection, "peek", 2, new Date(Date.now() - 60_000)), 0);
    assert.equal(await batchDelete(connection, "peek", 2, new Date(Date.now() + 60_000)), 2);
    const receiver = open(connection, "peek");
    const { message, delivery } = await take(receiver);
    assert.equal(message.body, "c");
    delivery.accept();
    receiver.close();
    assert.equal(await batchDelete(connection, "peek", 2, new Date(Date.now() + 60_000)), 0);
  },

  async "send via: it goes to the destination"(connection) {
    const sender = connection.open_sender({ target: "tx", properties: { "com.microsoft:transfer-destination-address": "tx-out" } });
    await once(sender, "sendable");
    sender.send({ body: "via" });
    await once(sender, "accepted");
    sender.close();
    const receiver = open(connection, "tx-out");
    const { message, delivery } = await take(receiver);
    assert.equal(message.body, "via");
    delivery.accept();
    receiver.close();
  },

  async "websockets: send and receive"() {
    const ws = rhea.websocket_connect(WebSocket);
    const connection = connect({ connection_details: ws(`ws://${hostname}:${port}/$servicebus/websocket`, ["AMQPWSB10"], {}) });
    await once(connection, "connection_open");
    await send(connection, "drain", "x".repeat(200_000));
    const receiver = open(connection, "drain");
    const { message, delivery } = await take(receiver);
    assert.equal(message.body.length, 200_000);
    delivery.accept();
    receiver.close();
    connection.close();
    await once(connection, "connection_close");
  },

  async "refused: an unknown filter, an unknown distribution-mode"(connection) {
    for (const source of [{ address: "drain", filter: rhea.filter.selector("n > 1") }, { address: "drain", distribution_mode: "fan" }]) {
      const receiver = open(connection, source);
      const { receiver: closed } = await once(receiver, "receiver_error");
      assert.equal(closed.error.condition, "amqp:not-implemented");
    }
  },
};

let passed = 0;
let failed = 0;
for (const [name, scenario] of Object.entries(scenarios)) {
  if (process.argv[2] && !name.includes(process.argv[2])) continue;
  const start = Date.now();
  const connection = connect();
  try {
    await once(connection, "connection_open");
    await scenario(connection);
    passed++;
    console.log(`pass  ${name} (${Date.now() - start} ms)`);
  } catch (e) {
    failed++;
    console.log(`FAIL  ${name} (${Date.now() - start} ms)\n${e.stack ?? e}`);
  }
  connection.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
