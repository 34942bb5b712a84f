"""Scenarios of azure-servicebus (Python, its own AMQP stack) against an endpoint.

The third client next to Go and JavaScript: what one of them happens to do must not
become the specification. Its AMQP library asks for links of its own kind: it flows
credit as messages are consumed, settles by link or by $management, and describes
the session filter.

Each scenario has its own entities (Config.json). Prints one line for each and exits
1 if one failed. An argument selects scenarios whose name contains it.
"""

import datetime
import os
import sys
import time
import traceback
import uuid

from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
    TransportType,
)
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    SessionCannotBeLockedError,
)

RUN = uuid.uuid4().hex[:8]  # makes message ids unique: duplicate histories outlive a run


def client():
    return ServiceBusClient.from_connection_string(
        os.environ["SERVICEBUS_CONNECTION_STRING"], retry_total=0
    )


def message(name, session=None, **more):
    return ServiceBusMessage(name, message_id=f"{RUN}-{name}", session_id=session, **more)


def send(c, queue, *messages):
    with c.get_queue_sender(queue) as sender:
        sender.send_messages(list(messages))


def names(messages):
    return [m.message_id.removeprefix(RUN + "-") for m in messages]


def take(receiver, count):
    got = []
    while len(got) < count:
        some = receiver.receive_messages(max_message_count=count - len(got), max_wait_time=5)
        assert some, f"{len(got)} of {count} messages came"
        got += some
    return got


def raises(kind, do):
    try:
        do()
    except kind as e:
        return e
    raise AssertionError(f"nothing raised {kind.__name__}")


def later(**by):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**by)


def session_by_name(c):
    """session: accept by name, receive in order, complete"""
    send(c, "sessions", *[message(f"a-{n}", "a") for n in range(5)])
    with c.get_queue_receiver("sessions", session_id="a") as r:
        assert r.session.session_id == "a"
        got = take(r, 5)
        assert names(got) == [f"a-{n}" for n in range(5)], names(got)
        assert [m.sequence_number for m in got] == sorted(m.sequence_number for m in got)
        assert got[0].delivery_count == 0 and got[0].session_id == "a"
        for m in got:
            r.complete_message(m)
        assert r.peek_messages(10) == []


def session_next(c):
    """session: accept next, time-out when none is left, a held one is refused"""
    send(c, "sessions-next", message("x", "x"), message("y", "y"))
    first = c.get_queue_receiver("sessions-next", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5)
    second = c.get_queue_receiver("sessions-next", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5)
    with first, second:
        got = take(first, 1) + take(second, 1)
        assert sorted(m.session_id for m in got) == ["x", "y"]
        none = c.get_queue_receiver("sessions-next", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1)
        raises(OperationTimeoutError, none.__enter__)
        held = c.get_queue_receiver("sessions-next", session_id="x")
        raises(SessionCannotBeLockedError, held.__enter__)
    with c.get_queue_receiver("sessions-next", session_id="x") as again:  # not settled: given back
        m = take(again, 1)[0]
        assert m.delivery_count == 0, m.delivery_count
        again.complete_message(m)


def session_state(c):
    """session: state and renewal"""
    with c.get_queue_receiver("sessions-state", session_id="s") as r:
        r.session.set_state(b"half way")
        assert r.session.get_state() == b"half way"
        before = r.session.locked_until_utc
        time.sleep(0.05)
        assert r.session.renew_lock() > before
        r.session.set_state(None)
        assert r.session.get_state() is None


def batch_duplicates(c):
    """batch: duplicate ids are accepted and dropped"""
    with c.get_queue_sender("dedupe") as sender:
        batch = sender.create_message_batch()
        for n in "123":
            batch.add_message(message(n))
        sender.send_messages(batch)
        sender.send_messages([message(n) for n in "234"])
    with c.get_queue_receiver("dedupe") as r:
        got = take(r, 4)
        assert names(got) == ["1", "2", "3", "4"], names(got)
        for m in got:
            r.complete_message(m)
        assert r.receive_messages(1, max_wait_time=0.3) == []


def receive_and_delete(c):
    """receive and delete"""
    send(c, "delete", message("1"), message("2"))
    with c.get_queue_receiver("delete", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as r:
        assert len(take(r, 2)) == 2
        assert r.peek_messages(10) == []


def round_trip(c):
    """message: every field and property type comes back"""
    sent = ServiceBusMessage(
        b"\x00\x01\xff" * 50000,  # several frames
        message_id=f"{RUN}-all", correlation_id="c", subject="s", to="t", reply_to="r", reply_to_session_id="rs",
        content_type="application/json", partition_key="p",
        application_properties={"text": "é", "int": 7, "double": 1.5, "bool": True, "bytes": b"\x00", "uuid": uuid.UUID(int=7)},
    )
    send(c, "abandon", sent)
    with c.get_queue_receiver("abandon") as r:
        m = take(r, 1)[0]
        assert b"".join(m.body) == b"\x00\x01\xff" * 50000
        assert (m.correlation_id, m.subject, m.to, m.reply_to, m.reply_to_session_id) == ("c", "s", "t", "r", "rs")
        assert (m.content_type, m.partition_key) == ("application/json", "p")
        props = {k.decode(): v for k, v in m.application_properties.items()}
        assert props["text"] in ("é", "é".encode()) and props["int"] == 7 and props["double"] == 1.5, props
        assert props["bool"] is True and props["bytes"] == b"\x00" and props["uuid"] == uuid.UUID(int=7), props
        assert m.enqueued_time_utc and m.locked_until_utc > later() and m.sequence_number > 0
        r.complete_message(m)


def peek(c):
    """peek: messages and their state"""
    with c.get_queue_sender("peek") as sender:
        sender.send_messages([message("a", subject="s"), message("b")])
        (number,) = sender.schedule_messages(message("c"), later(hours=1))
        with c.get_queue_receiver("peek") as r:
            seen = r.peek_messages(10)
            assert names(seen) == ["a", "b", "c"], names(seen)
            assert [m.state.name for m in seen] == ["ACTIVE", "ACTIVE", "SCHEDULED"], [m.state.name for m in seen]
            assert seen[2].sequence_number == number, (seen[2].sequence_number, number)
            assert seen[0].subject == "s", seen[0].subject
            sender.cancel_scheduled_messages(number)
            assert names(r.peek_messages(10, sequence_number=seen[0].sequence_number)) == ["a", "b"]
            for m in take(r, 2):
                r.complete_message(m)


def abandon(c):
    """abandon: comes again, counted"""
    send(c, "abandon", message("a"))
    with c.get_queue_receiver("abandon") as r:
        first = take(r, 1)[0]
        r.abandon_message(first)
        second = take(r, 1)[0]
        assert second.message_id == first.message_id and second.delivery_count == 1
        r.complete_message(second)


def dead_letter(c):
    """dead letter: reason, description"""
    send(c, "dead", message("a"))
    with c.get_queue_receiver("dead") as r:
        r.dead_letter_message(take(r, 1)[0], reason="bad", error_description="very")
    with c.get_queue_receiver("dead", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as r:
        m = take(r, 1)[0]
        assert (m.dead_letter_reason, m.dead_letter_error_description) == ("bad", "very")
        r.complete_message(m)


def max_delivery(c):
    """max delivery count: ends in the dead-letter queue"""
    send(c, "maxdelivery", message("a"))
    with c.get_queue_receiver("maxdelivery") as r:
        for _ in range(3):
            r.abandon_message(take(r, 1)[0])
    with c.get_queue_receiver("maxdelivery", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as r:
        m = take(r, 1)[0]
        assert m.dead_letter_reason == "MaxDeliveryCountExceeded"
        r.complete_message(m)


def schedule(c):
    """schedule: comes when it is due"""
    at = later(seconds=0.7)
    with c.get_queue_sender("schedule") as sender:
        sender.schedule_messages([message("kept")], at)
    with c.get_queue_receiver("schedule") as r:
        m = take(r, 1)[0]
        assert later() >= at - datetime.timedelta(milliseconds=5)
        r.complete_message(m)


def defer(c):
    """defer: only by sequence number"""
    send(c, "defer", message("a"), message("b"))
    with c.get_queue_receiver("defer") as r:
        a, b = take(r, 2)
        r.defer_message(a)
        r.complete_message(b)
        assert r.receive_messages(1, max_wait_time=0.3) == []
        (back,) = r.receive_deferred_messages(a.sequence_number)
        assert back.message_id == a.message_id
        r.complete_message(back)
        assert r.peek_messages(10) == []


def locks(c):
    """message lock: renewed"""
    send(c, "locks", message("a"))
    with c.get_queue_receiver("locks") as r:
        m = take(r, 1)[0]
        before = m.locked_until_utc
        time.sleep(0.05)
        assert r.renew_message_lock(m) > before
        r.complete_message(m)


def streaming(c):
    """streaming: iterate over a session"""
    send(c, "stream", *[message(f"s-{n}", "py") for n in range(50)])
    with c.get_queue_receiver("stream", session_id="py", max_wait_time=3, prefetch_count=10) as r:
        got = []
        for m in r:
            got.append(m)
            r.complete_message(m)
            if len(got) == 50:
                break
        assert names(got) == [f"s-{n}" for n in range(50)]


def topic(c):
    """topic: to its subscription"""
    with c.get_topic_sender("topic") as sender:
        sender.send_messages([message("t-1"), message("t-2")])
    with c.get_subscription_receiver("topic", "sub") as r:
        got = take(r, 2)
        assert names(got) == ["t-1", "t-2"], names(got)
        for m in got:
            r.complete_message(m)


def websockets(_):
    """websockets: send, receive, settle"""
    connection = os.environ["SERVICEBUS_CONNECTION_STRING"]
    endpoint = connection.split(";")[0].removeprefix("Endpoint=")  # without it the SDK dials port 443
    with ServiceBusClient.from_connection_string(
        connection, retry_total=0, transport_type=TransportType.AmqpOverWebsocket, custom_endpoint_address=endpoint
    ) as c:
        send(c, "drain", ServiceBusMessage(b"x" * 100000, message_id=f"{RUN}-w"))
        with c.get_queue_receiver("drain") as r:
            m = take(r, 1)[0]
            assert b"".join(m.body) == b"x" * 100000
            r.complete_message(m)
            assert r.peek_messages(10) == []


def outcomes(c):
    """outcomes: one receiver, each in turn; the SDK awaits that it is confirmed"""
    send(c, "dead", message("o-1"), message("o-2"))
    with c.get_queue_receiver("dead") as r:
        one, two = take(r, 2)
        r.abandon_message(one)
        r.dead_letter_message(two, reason="bad")
        again = take(r, 1)[0]
        r.defer_message(again)
        r.complete_message(r.receive_deferred_messages(again.sequence_number)[0])
    with c.get_queue_receiver("dead", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as r:
        r.complete_message(take(r, 1)[0])


def errors(c):
    """errors: unknown entity, too large, wrong kind of receiver, no session id"""
    # The refusal of the token, 404, which this SDK takes for a failed login.
    raises((MessagingEntityNotFoundError, ServiceBusAuthenticationError), lambda: send(c, "nobody", message("x")))
    raises((MessageSizeExceededError, ValueError), lambda: send(c, "peek", ServiceBusMessage(b"x" * (300 << 10))))
    raises(ServiceBusError, c.get_queue_receiver("sessions").__enter__)
    raises(ServiceBusError, lambda: send(c, "sessions", message("x")))


SCENARIOS = [
    session_by_name, session_next, session_state, batch_duplicates, receive_and_delete, round_trip, peek, abandon,
    dead_letter, max_delivery, schedule, defer, locks, streaming, topic, websockets, outcomes, errors,
]


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = 0
    for scenario in SCENARIOS:
        if wanted not in scenario.__doc__:
            continue
        start = time.monotonic()
        try:
            with client() as c:
                scenario(c)
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
