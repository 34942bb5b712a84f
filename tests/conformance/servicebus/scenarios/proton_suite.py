"""Scenarios of Qpid Proton (its Python binding), AMQP 1.0 without any SDK of the service.

Proton is the C library under several clients of the service. It differs from the other
clients in what the protocol leaves open: symbols as descriptors, one AMQP session for all
links, heartbeats, drain by the receiver, a dynamic source for replies.

Prints one line for each scenario and exits 1 if one failed. An argument selects those
whose name contains it.
"""

import base64
import collections
import hashlib
import hmac
import os
import sys
import time
import traceback
import urllib.parse
import uuid

from proton import UNDESCRIBED, Array, Condition, ConnectionException, Data, Delivery, Described, Link, Message, Terminus, byte, float32, int32, symbol, timestamp, ulong
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import AtMostOnce, Copy, Filter, LinkOption, Selector
from proton.utils import BlockingConnection, ConnectionClosed, LinkDetached, SendException

PARTS = dict(p.split("=", 1) for p in os.environ["SERVICEBUS_CONNECTION_STRING"].split(";") if p)
HOST = PARTS["Endpoint"].removeprefix("sb://").rstrip("/")
KEY_NAME, KEY = PARTS["SharedAccessKeyName"], PARTS["SharedAccessKey"]
RUN = uuid.uuid4().hex[:8]  # makes message ids unique: duplicate histories outlive a run
WAIT, SOON = 5, 0.3


def connect(user=KEY_NAME, password=KEY, **more):
    login = {"user": user, "password": password, "allowed_mechs": "PLAIN"} if user else {"allowed_mechs": "ANONYMOUS"}
    return BlockingConnection("amqp://" + HOST, timeout=WAIT, allow_insecure_mechs=True, **login, **more)


class Settings(LinkOption):
    """Settings of a link that have no option of Proton's own."""

    def __init__(self, session=None, mode=None, target=None, **properties):
        self.session, self.mode, self.target, self.properties = session, mode, target, properties

    def apply(self, link):
        if link.is_receiver:
            link.rcv_settle_mode = Link.RCV_SECOND
        if self.session is not None:
            link.source.filter.put_dict({symbol("com.microsoft:session-filter"): self.session[0]})
        if self.mode is not None:
            link.source.distribution_mode = self.mode
        if self.target is not None:
            link.target.address = self.target
        if self.properties:
            link.properties = {symbol("com.microsoft:" + k.replace("_", "-")): v for k, v in self.properties.items()}


class Inbox(MessagingHandler):
    """Keeps what comes."""

    def __init__(self):
        super().__init__(prefetch=0, auto_accept=False, auto_settle=False)
        self.incoming = collections.deque()

    def on_message(self, event):
        self.incoming.append((event.message, event.delivery))


class Receiver:
    """A receiver that asks for each message and settles with what it is told."""

    def __init__(self, connection, queue, *options):
        self.connection, self.inbox = connection, Inbox()
        name = uuid.uuid4().hex  # Proton's own is the same for each link of a queue
        self.blocking = connection.create_receiver(queue, name=name, handler=self.inbox, credit=0, options=[*options] or [Settings()])
        self.link = self.blocking.link

    def take(self, timeout=WAIT):
        if not self.link.credit and not self.inbox.incoming:
            self.link.flow(1)
        self.connection.wait(lambda: self.inbox.incoming, timeout=timeout, msg="a message")
        return self.inbox.incoming.popleft()

    def nothing(self):
        """Says whether nothing comes, and takes the credit back."""
        self.link.drain(1)
        self.connection.wait(lambda: self.inbox.incoming or not self.link.credit, msg="the drain")
        self.link.drained()
        return not self.inbox.incoming

    def settle(self, delivery, state, wait=True):
        delivery.update(state)
        if wait:
            self.connection.wait(lambda: delivery.settled, msg="the confirmation")
        confirmed = delivery.remote_state
        delivery.settle()
        return confirmed

    def want(self, *bodies):
        """Takes and completes messages of these bodies, and no more."""
        for body in bodies:
            m, d = self.take()
            same(m.body, body)
            same(self.settle(d, Delivery.ACCEPTED), Delivery.ACCEPTED)
        assert self.nothing(), "more came"

    def close(self):
        self.link.close()


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def message(body, **more):
    more.setdefault("id", f"{RUN}-{body}" if isinstance(body, str) and len(body) < 60 else f"{RUN}-large")
    return Message(body=body, **more)


def send(c, queue, *messages):
    sender = c.create_sender(queue)
    for m in messages:
        same(sender.send(m if isinstance(m, Message) else message(m)).remote_state, Delivery.ACCEPTED)
    sender.close()


def refused(condition, do, c=None):
    """Closes the connection, as Proton does with the first link that is refused."""
    c = c or connect()
    try:
        do(c)
    except LinkDetached as e:
        assert str(e.condition).startswith(condition), e
        return
    finally:
        c.close()
    raise AssertionError("not refused")


class Management:
    """Asks <entity>/$management, or $cbs, over a pair of links."""

    def __init__(self, connection, node):
        self.sender = connection.create_sender(node)
        self.receiver = Receiver(connection, node, Settings(target="replies-" + uuid.uuid4().hex))

    def request(self, body, **properties):
        m = Message(id=uuid.uuid4().hex, reply_to=self.receiver.link.target.address, properties=properties, body=body)
        self.sender.send(m)
        answer, delivery = self.receiver.take()
        delivery.settle()
        same(answer.correlation_id, m.id)
        return answer

    def call(self, operation, body, status=200):
        answer = self.request(body, operation="com.microsoft:" + operation)
        same((answer.properties["statusCode"], operation), (status, operation))
        return answer.body


def round_trip(c):
    """queue: in order, every type of property and body comes back"""
    properties = {
        "text": "é", "int": int32(7), "long": 1 << 40, "byte": byte(-3), "double": 1.5, "float": float32(0.5),
        "bool": True, "uuid": uuid.UUID(int=7), "time": timestamp(1700000000123), "symbol": symbol("s"), "nothing": None,
    }
    bodies = ["text", b"\x00\xff", 42, ["a", 1, None], {"k": "v"}, None]
    sent = [
        Message(
            id=f"{RUN}-all-{n}", body=body, properties=properties, correlation_id="c", subject="s", reply_to="r", content_type="t/x",
            priority=7, durable=True, annotations={symbol("x-opt-own"): "mine"},
        )
        for n, body in enumerate(bodies)
    ]
    send(c, "drain", *sent)
    r = Receiver(c, "drain")
    for want in sent:
        m, d = r.take()
        for field in ("id", "body", "correlation_id", "subject", "reply_to", "content_type", "priority", "durable"):
            same((field, getattr(m, field)), (field, getattr(want, field)))
        same({k: (type(v), v) for k, v in m.properties.items()}, {k: (type(v), v) for k, v in properties.items()})
        same(m.annotations["x-opt-own"], "mine")
        assert m.annotations["x-opt-sequence-number"] > 0 and m.delivery_count == 0
        r.settle(d, Delivery.ACCEPTED)
    assert r.nothing()


def outcomes(c):
    """outcomes: each is confirmed as it was asked for"""
    send(c, "abandon", "a", "b", "c")
    r = Receiver(c, "abandon")
    for state, body, count, prepare in [
        (Delivery.RELEASED, "a", 0, {}),
        (Delivery.MODIFIED, "a", 0, {"failed": True}),
        (Delivery.ACCEPTED, "a", 1, {}),
        (Delivery.REJECTED, "b", 0, {}),
        (Delivery.MODIFIED, "c", 0, {"undeliverable": True}),
    ]:
        m, d = r.take()
        same((m.body, m.delivery_count), (body, count))
        for name, value in prepare.items():
            setattr(d.local, name, value)
        same(r.settle(d, state), state)
    assert r.nothing()


def outcomes_many(c):
    """outcomes: many at a time, in any order, and some settled without an answer"""
    send(c, "locks", *[f"{n:02}" for n in range(20)])
    r = Receiver(c, "locks")
    r.link.flow(20)
    c.wait(lambda: len(r.inbox.incoming) == 20, msg="20 messages")
    got = [(m.body, d) for m, d in r.inbox.incoming]
    r.inbox.incoming.clear()
    same([body for body, _ in got], [f"{n:02}" for n in range(20)])
    for _, d in got[::-2]:
        d.update(Delivery.ACCEPTED)
        d.settle()
    for _, d in got[::2]:
        d.update(Delivery.RELEASED)
    c.wait(lambda: all(d.settled for _, d in got[::2]), msg="the confirmations")
    for _, d in got[::2]:
        same(d.remote_state, Delivery.RELEASED)
        d.settle()
    r.want(*[f"{n:02}" for n in range(0, 20, 2)])


def abandon(c):
    """abandon: comes again, counted, with the properties it was given"""
    send(c, "abandon", "again")
    r = Receiver(c, "abandon")
    m, d = r.take()
    d.local.annotations = {symbol("why"): "busy"}
    d.local.failed = True
    r.settle(d, Delivery.MODIFIED)
    m, d = r.take()
    same((m.body, m.delivery_count, m.properties), ("again", 1, {"why": "busy"}))
    r.settle(d, Delivery.ACCEPTED)


def dead_letter(c):
    """dead letter: reason, description, properties"""
    send(c, "dead", "bad")
    r = Receiver(c, "dead")
    _, d = r.take()
    d.local.condition = Condition("com.microsoft:dead-letter", None, {symbol("DeadLetterReason"): "why", symbol("DeadLetterErrorDescription"): "more", symbol("own"): 1})
    same(r.settle(d, Delivery.REJECTED), Delivery.REJECTED)
    dlq = Receiver(c, "dead/$DeadLetterQueue")
    m, d = dlq.take()
    same(m.properties, {"DeadLetterReason": "why", "DeadLetterErrorDescription": "more", "own": 1})
    dlq.settle(d, Delivery.ACCEPTED)
    assert dlq.nothing() and r.nothing()


def max_delivery(c):
    """max delivery count: ends in the dead-letter queue"""
    send(c, "maxdelivery", "often")
    r = Receiver(c, "maxdelivery")
    for _ in range(3):
        _, d = r.take()
        d.local.failed = True
        r.settle(d, Delivery.MODIFIED)
    dlq = Receiver(c, "maxdelivery/$DeadLetterQueue")
    m, d = dlq.take()
    same(m.properties["DeadLetterReason"], "MaxDeliveryCountExceeded")
    dlq.settle(d, Delivery.ACCEPTED)


def defer(c):
    """defer: only by sequence number"""
    send(c, "defer", "a")
    r, management = Receiver(c, "defer"), Management(c, "defer/$management")
    m, d = r.take()
    number = m.annotations["x-opt-sequence-number"]
    d.local.undeliverable = True
    same(r.settle(d, Delivery.MODIFIED), Delivery.MODIFIED)
    assert r.nothing()
    body = management.call("receive-by-sequence-number", {"sequence-numbers": Array(UNDESCRIBED, Data.LONG, number), "receiver-settle-mode": 1})
    (one,) = body["messages"]
    back = Message()
    back.decode(bytes(one["message"]))
    same(back.body, "a")
    management.call("update-disposition", {"disposition-status": "completed", "lock-tokens": Array(UNDESCRIBED, Data.UUID, one["lock-token"])})
    management.call("receive-by-sequence-number", {"sequence-numbers": Array(UNDESCRIBED, Data.LONG, number), "receiver-settle-mode": 1}, status=404)


def schedule(c):
    """schedule: by annotation, by $management, cancelled"""
    at = time.time() + 0.7
    send(c, "schedule", message("due", annotations={symbol("x-opt-scheduled-enqueue-time"): timestamp(int(at * 1000))}))
    management = Management(c, "schedule/$management")
    never = message("never", annotations={symbol("x-opt-scheduled-enqueue-time"): timestamp(int((at + 3600) * 1000))})
    body = management.call("schedule-message", {"messages": [{"message-id": never.id, "message": never.encode()}]})
    numbers = body["sequence-numbers"]
    seen = management.call("peek-message", {"from-sequence-number": 0, "message-count": 10})["messages"]
    same(len(seen), 2)
    management.call("cancel-scheduled-message", {"sequence-numbers": Array(UNDESCRIBED, Data.LONG, *numbers.elements)})
    r = Receiver(c, "schedule")
    assert r.nothing()
    m, d = r.take()
    assert time.time() > at - 0.01, "too early"
    same(m.body, "due")
    r.settle(d, Delivery.ACCEPTED)
    management.call("peek-message", {"from-sequence-number": 0, "message-count": 10}, status=204)


def described(session):
    return [Described(ulong(0x137000000C), session)]


def session_by_name(c):
    """session: by name, described or plain, in order; a held one is refused"""
    for form in (described("a"), ["a"]):
        send(c, "sessions", *[message(f"{n}", group_id="a") for n in range(5)], message("other", group_id="b"))
        r = Receiver(c, "sessions", Settings(session=form))
        same(filters(r.link)["com.microsoft:session-filter"], form[0])
        assert r.link.remote_properties["com.microsoft:locked-until-utc"] > 0
        refused("com.microsoft:session-cannot-be-locked", lambda c: Receiver(c, "sessions", Settings(session=described("a"))))
        r.want(*[f"{n}" for n in range(5)])
        r.close()
        r = Receiver(c, "sessions", Settings(session=described("b")))
        r.want("other")
        r.close()


def filters(link):
    data = link.remote_source.filter
    data.rewind()
    data.next()
    return data.get_object()


def session_next(c):
    """session: the next one, a wait that ends when one comes, a wait in vain"""
    send(c, "sessions-next", message("x", group_id="x"))
    first = Receiver(c, "sessions-next", Settings(session=described(None)))
    same(filters(first.link)["com.microsoft:session-filter"].value, "x")
    begun = time.time()
    refused("com.microsoft:timeout", lambda c: Receiver(c, "sessions-next", Settings(session=[None], timeout=700)))
    assert time.time() - begun > 0.6, "too soon"
    first.want("x")
    first.close()


def session_state(c):
    """session: state, renewal, list of sessions; order is kept when it is given up"""
    send(c, "sessions-state", *[message(b, group_id="s") for b in "abc"])
    r, management = Receiver(c, "sessions-state", Settings(session=["s"])), Management(c, "sessions-state/$management")
    management.call("set-session-state", {"session-id": "s", "session-state": b"half way"})
    same(management.call("get-session-state", {"session-id": "s"})["session-state"], b"half way")
    assert management.call("renew-session-lock", {"session-id": "s"})["expiration"] > time.time() * 1000
    listed = management.call("get-message-sessions", {"last-updated-time": timestamp(253402300800000), "skip": 0, "top": 10})
    assert "s" in getattr(listed["sessions-ids"], "elements", listed["sessions-ids"])
    management.call("set-session-state", {"session-id": "s", "session-state": None})
    r.link.flow(2)
    c.wait(lambda: len(r.inbox.incoming) == 2, msg="2 messages")
    r.close()
    c.wait(lambda: r.link.state & Link.REMOTE_CLOSED, msg="the detach")
    r = Receiver(c, "sessions-state", Settings(session=["s"]))
    m, d = r.take()
    same((m.body, m.delivery_count), ("a", 0))
    r.settle(d, Delivery.ACCEPTED)
    r.want("b", "c")


def duplicates(c):
    """duplicates: accepted and dropped"""
    send(c, "dedupe", message("1"), message("2"), message("1"), message("2"))
    Receiver(c, "dedupe").want("1", "2")


def browse(c):
    """browse: distribution-mode copy takes nothing"""
    send(c, "browse", "a", "b")
    for _ in range(2):
        r = Receiver(c, "browse", Copy())
        for want in "ab":
            m, d = r.take()
            same(m.body, want)
            d.update(Delivery.ACCEPTED)
            d.settle()
        r.nothing()
        r.close()
    Receiver(c, "browse").want("a", "b")


def pre_settled(c):
    """at most once: senders and receivers that settle first"""
    sender = c.create_sender("delete", options=AtMostOnce())
    for body in "ab":
        sender.send(message(body))
    r = Receiver(c, "delete", AtMostOnce())
    for body in "ab":
        m, d = r.take()
        same((m.body, d.settled), (body, True))
    assert r.nothing()


def credit(c):
    """credit: no more than was asked for; a drain gives the rest back"""
    send(c, "drain", *"abcde")
    r = Receiver(c, "drain")
    r.link.flow(2)
    c.wait(lambda: len(r.inbox.incoming) == 2, msg="2 messages")
    same(r.link.credit, 0)
    r.link.drain(10)
    c.wait(lambda: not r.link.credit and not r.link.draining(), msg="the drain")
    same((len(r.inbox.incoming), r.link.drained()), (5, 7))
    while r.inbox.incoming:
        r.settle(r.inbox.incoming.popleft()[1], Delivery.ACCEPTED)
    r.link.flow(1)
    send(c, "drain", "f")
    m, d = r.take()
    same(m.body, "f")
    r.settle(d, Delivery.ACCEPTED)


def large(c):
    """large messages: in many frames; what is too large is rejected and the link lives on"""
    small = connect(max_frame_size=4096)
    for c in (c, small):
        sender, body = c.create_sender("peek"), os.urandom(200_000)
        same(sender.send(message(body)).remote_state, Delivery.ACCEPTED)
        r = Receiver(c, "peek")
        m, d = r.take()
        assert m.body == body
        r.settle(d, Delivery.ACCEPTED)
        d = sender.send(message(b"x" * 300_000), error_states=[])
        same((d.remote_state, d.remote.condition.name), (Delivery.REJECTED, "amqp:link:message-size-exceeded"))
        same(sender.send(message("small")).remote_state, Delivery.ACCEPTED)
        r.want("small")
        r.close()
    small.close()


class Transactions(TransactionHandler):
    """Remembers what became of the last transaction."""

    def __init__(self):
        super().__init__()
        self.outcome, self.transaction = None, None

    def on_transaction_declared(self, event):
        self.transaction = event.transaction

    def on_transaction_committed(self, event):
        self.outcome = "committed"

    def on_transaction_aborted(self, event):
        self.outcome = "aborted"

    def on_transaction_declare_failed(self, event):
        self.outcome = "not declared"

    def on_transaction_commit_failed(self, event):
        self.outcome = "not committed"


def begin(c, **more):
    handler = Transactions()
    c.container.declare_transaction(c.conn, handler=handler, **more)
    c.wait(lambda: handler.transaction or handler.outcome, msg="the transaction")
    same(handler.outcome, None)
    return handler


def end(c, handler, commit):
    handler.transaction.discharge(not commit)
    c.wait(lambda: handler.outcome, msg="the end of the transaction")
    same(handler.outcome, "committed" if commit else "aborted")


def transaction_committed(c):
    """transaction: receive and send, committed"""
    for settle_first in (False, True):
        send(c, "tx", "in")
        r, sender = Receiver(c, "tx"), c.create_sender("tx-out", name=uuid.uuid4().hex)
        t = begin(c, settle_before_discharge=settle_first)
        _, d = r.take()
        t.transaction.accept(d)
        for body in "12":
            t.transaction.send(sender.link, message(body))
        out = Receiver(c, "tx-out")
        assert out.nothing()
        end(c, t, True)
        out.want("1", "2")
        out.close()
        assert r.nothing()
        r.close()


def transaction_aborted(c):
    """transaction: rolled back, nothing was sent and nothing taken"""
    send(c, "tx", "in")
    r, sender = Receiver(c, "tx"), c.create_sender("tx-out")
    t = begin(c)
    _, d = r.take()
    t.transaction.accept(d)
    t.transaction.send(sender.link, message("never"))
    end(c, t, False)  # Proton releases what it had accepted
    r.want("in")
    assert Receiver(c, "tx-out").nothing()


def topic(c):
    """topic: to a subscription by its path; rules"""
    rules = Management(c, "topic/Subscriptions/rules/$management")
    rules.call("remove-rule", {"rule-name": "$Default"})
    rules.call("add-rule", {"rule-name": "n", "rule-description": {"sql-filter": {"expression": "n > 1"}}})
    send(c, "topic", message("1", properties={"n": 1}), message("2", properties={"n": 2}))
    Receiver(c, "topic/Subscriptions/sub").want("1", "2")
    Receiver(c, "topic/Subscriptions/rules").want("2")


def token(resource, key=KEY):
    until = int(time.time()) + 600
    resource = urllib.parse.quote(resource, safe="").lower()
    signature = base64.b64encode(hmac.new(key.encode(), f"{resource}\n{until}".encode(), hashlib.sha256).digest())
    return f"SharedAccessSignature sr={resource}&sig={urllib.parse.quote(signature, safe='')}&se={until}&skn={KEY_NAME}"


def login(_):
    """login: PLAIN with a wrong key is refused; ANONYMOUS needs a token"""
    try:
        connect(password="wrong").close()
        raise AssertionError("a wrong key was taken")
    except (ConnectionClosed, ConnectionException):
        pass
    c = connect(user=None)
    refused("amqp:unauthorized-access", lambda c: c.create_sender("drain"), connect(user=None))
    cbs, audience = Management(c, "$cbs"), f"amqp://{HOST}/drain"
    put = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience}
    same(cbs.request(token(audience, "wrong"), **put).properties["status-code"], 401)
    assert cbs.request(token(audience), **put).properties["status-code"] in (200, 202)
    send(c, "drain", "with a token")
    Receiver(c, "drain").want("with a token")
    refused("amqp:unauthorized-access", lambda c: c.create_sender("peek"), c)


def heartbeat(_):
    """heartbeat: an idle connection lives"""
    c = connect(heartbeat=1)
    end_at = time.time() + 3
    c.wait(lambda: time.time() > end_at)
    send(c, "drain", "alive")
    Receiver(c, "drain").want("alive")
    c.close()


def refusals(c):
    """refused loudly: selectors on a queue, unknown filters, dynamic nodes, no entity, wrong kinds of receiver"""
    refused("amqp:not-implemented", lambda c: Receiver(c, "drain", Selector("n > 1")))
    refused("amqp:not-implemented", lambda c: Receiver(c, "drain", Filter({symbol("own"): Described(symbol("own"), "x")})))
    refused("amqp:not-found", lambda c: Receiver(c, "nobody"))
    refused("amqp:not-found", lambda c: c.create_sender("nobody"))
    refused("amqp:not-allowed", lambda c: Receiver(c, "sessions"))
    refused("amqp:not-allowed", lambda c: Receiver(c, "drain", Settings(session=["a"])))
    refused("amqp:not-", lambda c: c.create_receiver(None, dynamic=True))
    refused("amqp:not-implemented", lambda c: Receiver(c, "sessions", Settings(session=["a"], mode=Terminus.DIST_MODE_COPY)))
    sender = c.create_sender("sessions")
    try:
        sender.send(message("no session"))
        raise AssertionError("not refused")
    except SendException as e:
        same(e.state, Delivery.REJECTED)


SCENARIOS = [
    round_trip, outcomes, outcomes_many, abandon, dead_letter, max_delivery, defer, schedule, session_by_name, session_next,
    session_state, duplicates, browse, pre_settled, credit, large, transaction_committed, transaction_aborted, topic, login,
    heartbeat, refusals,
]


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = 0
    for scenario in SCENARIOS:
        if wanted not in scenario.__doc__:
            continue
        start = time.monotonic()
        try:
            c = connect()
            try:
                scenario(c)
            finally:
                c.close()
            passed += 1
            verdict, more = "pass", ""
        except Exception:  # of whatever kind: the scenario failed
            failed += 1
            verdict, more = "FAIL", "\n" + traceback.format_exc()
        print(f"{verdict}  {scenario.__doc__} ({(time.monotonic() - start) * 1000:.0f} ms){more}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
