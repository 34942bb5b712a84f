# Python imports this before moto (moto.go). moto's FIFO queues differ from those of SQS in two
# ways that a consumer meets: its threads do not lock each other out, so that a message that comes
# while others are deleted may be gone; and of messages of a group that become visible at the same
# time it may give the second one first. Its topics keep two attributes that they do not return.
#
# Two thirds of its processor time were conversions of the current time, three for each message of a
# queue with each message that is sent. Reading the policies of IAM, which no test uses, delayed its start.
import copy
import functools
import sys
import threading
import time
import types

try:
    from moto.sns.responses import SNSResponse
    from moto.sqs import models
except ImportError:  # another program than moto
    models = None


def take(queue, count, visibility, names):
    seen = [(m, m.visible and not m.delayed) for m in queue._messages]
    flying = {m.group_id for m, visible in seen if not visible}
    got, dead = [], []
    for m, visible in seen:
        if not visible or m.group_id in flying or len(got) == count:
            continue
        policy = queue.redrive_policy
        if queue.dead_letter_queue is not None and policy and m.approximate_receive_count >= int(policy["maxReceiveCount"]):
            dead.append(m)
            continue
        m.mark_received(visibility_timeout=visibility)
        queue.pending_messages.add(m)
        given = copy.deepcopy(m)
        models._filter_message_attributes(given, names or [])
        got.append(given)
    for m in dead:
        queue._messages.remove(m)
        queue.dead_letter_queue.add_message(m)
    return got


if models is not None:
    models.unix_time = time.time
    models.unix_time_millis = lambda: time.time() * 1000
    policies = types.ModuleType("moto.iam.aws_managed_policies")
    policies.aws_managed_policies_data = "{}"
    sys.modules[policies.__name__] = policies

    lock = threading.RLock()
    receive = models.SQSBackend.receive_message

    def receive_message(self, queue_name, count, wait, visibility, names=None):
        queue = self.get_queue(queue_name)
        if not queue.fifo_queue:
            return receive(self, queue_name, count, wait, visibility, names)
        if queue_name.endswith("-dead-letters.fifo"):
            # Operators wait for a second so that SQS asks all of its servers. Moto is one process.
            wait = min(wait, 0.1)
        end = time.time() + wait
        while True:
            with lock:
                got = take(queue, count, visibility, names)
            if got or time.time() >= end:
                return got
            time.sleep(0.05)

    models.SQSBackend.receive_message = receive_message

    def locked(method):
        @functools.wraps(method)
        def call(*args, **more):
            with lock:
                return method(*args, **more)

        return call

    for name in ("send_message", "send_message_batch", "delete_message", "delete_message_batch", "change_message_visibility", "change_message_visibility_batch"):
        setattr(models.SQSBackend, name, locked(getattr(models.SQSBackend, name)))

    topic_attributes = SNSResponse.get_topic_attributes

    def get_topic_attributes(self):
        answer = topic_attributes(self)
        topic = self.backend.get_topic(self._get_param("TopicArn"))
        for name, field in (("FifoThroughputScope", "fifo_throughput_scope"), ("MaximumMessageSize", "maximum_message_size")):
            if hasattr(topic, field):
                answer.result["Attributes"][name] = getattr(topic, field)
        return answer

    SNSResponse.get_topic_attributes = get_topic_attributes
