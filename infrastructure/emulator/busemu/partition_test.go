package busemu

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Partitioned entities, seen through the SDK.

// keyed is a message with a partition key, and with its id as body.
func keyed(key, id string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(id), MessageID: &id, PartitionKey: &key}
}

func partitionOf(m *azservicebus.ReceivedMessage) int64 { return *m.SequenceNumber >> 48 }

// receiver is a Receiver or a SessionReceiver of the SDK.
type receiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// receiveN receives n messages in several calls, or fails after a minute.
func receiveN(t *testing.T, r receiver, n int) (got []*azservicebus.ReceivedMessage) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(got) < n {
		got = append(got, must(r.ReceiveMessages(ctx, n-len(got), allAtOnce))(t)...)
	}
	return got
}

func partitionedQueue(q Queue) *Topology {
	q.Name, q.Partitioned = "q", true
	return &Topology{Queues: []Queue{q}}
}

// TestPartitionedQueue: the key determines the partition, which is in the upper 16 bits of the
// sequence number. Messages of a key keep their order. A peek and a receiver reach all
// partitions.
func TestPartitionedQueue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := clientT(t, startT(t, &Options{Topology: partitionedQueue(Queue{})}))
	sender := must(client.NewSender("q", nil))(t)
	const keys, each = 40, 3
	for n := range each {
		for key := range keys {
			check(t, sender.SendMessage(ctx, keyed(fmt.Sprint(key), fmt.Sprintf("%d-%d", key, n)), nil))
		}
	}
	receiver := must(client.NewReceiverForQueue("q", nil))(t)
	peeked := make(map[string]int64)
	for len(peeked) < keys*each {
		page := must(receiver.PeekMessages(ctx, 7, nil))(t)
		if len(page) == 0 {
			t.Fatalf("peeked %d messages of %d", len(peeked), keys*each)
		}
		for _, m := range page {
			peeked[m.MessageID] = *m.SequenceNumber
		}
	}
	partitions := make(map[string]int64) // by key
	last := make(map[string]int64)
	for _, m := range receiveN(t, receiver, keys*each) {
		key := *m.PartitionKey
		if p, known := partitions[key]; known && p != partitionOf(m) {
			t.Errorf("key %s is in the partitions %d and %d", key, p, partitionOf(m))
		}
		partitions[key] = partitionOf(m)
		if *m.SequenceNumber <= last[key] {
			t.Errorf("%s with number %x comes after %x", m.MessageID, *m.SequenceNumber, last[key])
		}
		last[key] = *m.SequenceNumber
		if peeked[m.MessageID] != *m.SequenceNumber {
			t.Errorf("%s was peeked as %x and received as %x", m.MessageID, peeked[m.MessageID], *m.SequenceNumber)
		}
		check(t, receiver.CompleteMessage(ctx, m, nil))
	}
	used := slices.Compact(slices.Sorted(maps.Values(partitions)))
	if len(used) < 8 || used[len(used)-1] > 15 {
		t.Errorf("%d keys are spread over the partitions %v", keys, used)
	}
}

// TestPartitionedSessions: a session is in one partition and in order, on a topic too.
func TestPartitionedSessions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := clientT(t, startT(t, &Options{Topology: &Topology{Topics: []Topic{{
		Name: "t", Partitioned: true, RequiresDuplicateDetection: true, Subscriptions: []Subscription{{Name: "s", RequiresSession: true}},
	}}}}))
	sender := must(client.NewSender("t", nil))(t)
	const sessions, each = 20, 5
	for s := range sessions {
		id := fmt.Sprint(s)
		sendBatch(ctx, t, sender, message(id, 0), message(id, 1), message(id, 2))
		sendBatch(ctx, t, sender, message(id, 3), message(id, 0), message(id, 4)) // one is a duplicate
	}
	used := make(map[int64]bool)
	for range sessions {
		receiver := must(client.AcceptNextSessionForSubscription(ctx, "t", "s", nil))(t)
		first := int64(-1)
		for n, m := range receiveN(t, receiver, each) {
			if first < 0 {
				first = *m.SequenceNumber
			}
			if m.MessageID != fmt.Sprintf("%s-%d", receiver.SessionID(), n) || partitionOf(m) != first>>48 || *m.EnqueuedSequenceNumber>>48 != first>>48 {
				t.Errorf("message %d of session %s is %s, number %x (of the topic %x)", n, receiver.SessionID(), m.MessageID, *m.SequenceNumber, *m.EnqueuedSequenceNumber)
			}
			check(t, receiver.CompleteMessage(ctx, m, nil))
		}
		used[first>>48] = true
		check(t, receiver.Close(ctx))
	}
	if len(used) < 6 {
		t.Errorf("%d sessions are in %d partitions", sessions, len(used))
	}
}

// TestBatchOverPartitionsIsRefused: a batch has one partition; one with two is refused as a
// whole.
func TestBatchOverPartitionsIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startT(t, &Options{Topology: partitionedQueue(Queue{})})
	o := srv.ClientOptions()
	o.RetryOptions.MaxRetries = -1 // the SDK treats a refused schedule as an outage
	client := must(azservicebus.NewClientFromConnectionString(srv.ConnectionString(), o))(t)
	defer func() { check(t, client.Close(context.WithoutCancel(ctx))) }()
	sender := must(client.NewSender("q", nil))(t)
	for name, second := range map[string]*azservicebus.Message{"another key": keyed("y", "2"), "none": body("2"), "a session": message("y", 1)} {
		batch := must(sender.NewMessageBatch(ctx, nil))(t)
		check(t, batch.AddMessage(keyed("x", "1"), nil))
		check(t, batch.AddMessage(second, nil))
		if err := sender.SendMessageBatch(ctx, batch, nil); err == nil || !strings.Contains(err.Error(), "distinct SessionId or PartitionKey") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := sender.ScheduleMessages(ctx, []*azservicebus.Message{keyed("x", "1"), second}, srv.o.Now().Add(time.Hour), nil); err == nil {
			t.Errorf("%s: scheduled", name)
		}
	}
	if n := len(must(srv.Peek("q", 10))(t)); n != 0 {
		t.Errorf("%d messages of refused batches are there", n)
	}
	sendBatch(ctx, t, sender, body("1"), body("2")) // none has a key
	both := must(srv.Peek("q", 10))(t)
	if len(both) != 2 || both[0].SequenceNumber+1 != both[1].SequenceNumber {
		t.Errorf("a batch without keys became %+v", both)
	}
}

// TestPartitionedDuplicates: an id is a duplicate only with the same partition key.
func TestPartitionedDuplicates(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startT(t, &Options{Topology: partitionedQueue(Queue{RequiresDuplicateDetection: true})})
	sender := must(clientT(t, srv).NewSender("q", nil))(t)
	id := "1"
	for range 2 {
		check(t, sender.SendMessage(ctx, keyed("x", id), nil))
		check(t, sender.SendMessage(ctx, keyed("y", id), nil))
		check(t, sender.SendMessage(ctx, &azservicebus.Message{MessageID: &id}, nil))
	}
	if n := len(must(srv.Peek("q", 10))(t)); n != 3 {
		t.Errorf("%d messages are there, want one of each key and one without", n)
	}
}

// TestPartitionedMessages: dead letters keep their partition; deferred and scheduled messages
// are found by number.
func TestPartitionedMessages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startT(t, &Options{Topology: partitionedQueue(Queue{})})
	client := clientT(t, srv)
	sender := must(client.NewSender("q", nil))(t)
	receiver := must(client.NewReceiverForQueue("q", nil))(t)
	partitions := make(map[string]int64)
	for i := range 10 {
		key := fmt.Sprint(i)
		check(t, sender.SendMessage(ctx, keyed(key, "dead"), nil))
		check(t, sender.SendMessage(ctx, keyed(key, "deferred"), nil))
		numbers := must(sender.ScheduleMessages(ctx, []*azservicebus.Message{keyed(key, "cancelled"), keyed(key, "scheduled")}, srv.o.Now().Add(time.Hour), nil))(t)
		check(t, sender.CancelScheduledMessages(ctx, numbers[:1], nil))
		partitions[key] = numbers[0] >> 48
	}
	var deferred []int64
	for _, m := range receiveN(t, receiver, 20) {
		if partitionOf(m) != partitions[*m.PartitionKey] {
			t.Errorf("%s of key %s is in partition %d, the scheduled one is in %d", m.Body, *m.PartitionKey, partitionOf(m), partitions[*m.PartitionKey])
		}
		if string(m.Body) == "dead" {
			check(t, receiver.DeadLetterMessage(ctx, m, nil))
			continue
		}
		deferred = append(deferred, *m.SequenceNumber)
		check(t, receiver.DeferMessage(ctx, m, nil))
	}
	again := must(receiver.ReceiveDeferredMessages(ctx, deferred, nil))(t)
	srv.Advance(time.Hour)
	again = append(again, receiveN(t, receiver, 10)...)
	dead := must(client.NewReceiverForQueue("q", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}))(t)
	again = append(again, receiveN(t, dead, 10)...)
	found := make(map[string]int)
	for _, m := range again {
		found[string(m.Body)]++
		if partitionOf(m) != partitions[*m.PartitionKey] {
			t.Errorf("%s of key %s came from partition %d to %d", m.Body, *m.PartitionKey, partitions[*m.PartitionKey], partitionOf(m))
		}
	}
	if want := map[string]int{"deferred": 10, "scheduled": 10, "dead": 10}; !maps.Equal(found, want) {
		t.Errorf("found %v", found)
	}
}

// TestPartitionedRestart: numbers, partitions and the duplicate history survive a restart.
func TestPartitionedRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := &Options{DataDir: "data", FS: vfs.NewMem(), Topology: partitionedQueue(Queue{RequiresDuplicateDetection: true})}
	srv := must(Start(o))(t)
	client := srv.Client()
	sender := must(client.NewSender("q", nil))(t)
	for i := range 20 {
		check(t, sender.SendMessage(ctx, keyed(fmt.Sprint(i), "before"), nil))
	}
	before := must(srv.Peek("q", 100))(t)
	check(t, client.Close(ctx))
	check(t, srv.Close())

	o.Partitions = 5 // for new entities
	srv = startT(t, o)
	client = clientT(t, srv)
	sender = must(client.NewSender("q", nil))(t)
	last := make(map[string]int64)
	for _, m := range before {
		last[m.PartitionKey] = m.SequenceNumber
		check(t, sender.SendMessage(ctx, keyed(m.PartitionKey, "before"), nil)) // duplicates
		check(t, sender.SendMessage(ctx, keyed(m.PartitionKey, "after"), nil))
	}
	receiver := must(client.NewReceiverForQueue("q", nil))(t)
	seen := make(map[int64]bool)
	for _, m := range receiveN(t, receiver, 40) {
		first := last[*m.PartitionKey]
		if string(m.Body) == "after" && *m.SequenceNumber <= first || string(m.Body) == "before" && *m.SequenceNumber != first || partitionOf(m) != first>>48 || seen[*m.SequenceNumber] {
			t.Errorf("%s of key %s has number %x; the first had %x", m.Body, *m.PartitionKey, *m.SequenceNumber, first)
		}
		seen[*m.SequenceNumber] = true
		check(t, receiver.CompleteMessage(ctx, m, nil))
	}
	if n := len(must(srv.Peek("q", 100))(t)); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestPartitionedAdmin: partitioning can be set whenever an entity is created, and not
// changed.
func TestPartitionedAdmin(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topology := must(ParseConfig([]byte(`{"UserConfig": {"Namespaces": [{"Name": "ns",
		"Queues": [{"Name": "configured", "Properties": {"EnablePartitioning": true}}],
		"Topics": [{"Name": "topic", "Properties": {"EnablePartitioning": true}}]}]}}`)))(t)
	srv := startT(t, &Options{Topology: topology, Partitions: 4})
	c := adminClient(t, srv, srv.ConnectionString())
	created := must(c.CreateQueue(ctx, "q", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{EnablePartitioning: to.Ptr(true)}}))(t)
	if !*created.EnablePartitioning || *created.MaxSizeInMegabytes != 4*1024 {
		t.Errorf("created %+v", created.QueueProperties)
	}
	created.EnablePartitioning = to.Ptr(false)
	if _, err := c.UpdateQueue(ctx, "q", created.QueueProperties, nil); err == nil || !strings.Contains(err.Error(), "Partitioning cannot be changed") {
		t.Errorf("partitioning was changed: %v", err)
	}
	if topic := must(c.GetTopic(ctx, "topic", nil))(t); !*topic.EnablePartitioning {
		t.Errorf("the topic of the configuration is %+v", topic.TopicProperties)
	}
	for _, queue := range []string{"q", "configured"} {
		for range 4 {
			check(t, srv.Send(ctx, queue, Message{}))
		}
		for i, m := range must(srv.Peek(queue, 10))(t) {
			if m.SequenceNumber != int64(i)<<48+1 {
				t.Errorf("%s: message %d has number %x", queue, i, m.SequenceNumber)
			}
		}
		must(c.DeleteQueue(ctx, queue, nil))(t)
		if _, err := srv.Peek(queue, 1); err == nil {
			t.Errorf("%s is there after it was deleted", queue)
		}
	}
	premium := startT(t, &Options{Premium: true, Partitions: 2})
	check(t, premium.Healthy(ctx))
	c = adminClient(t, premium, premium.ConnectionString())
	if _, err := c.CreateQueue(ctx, "q", nil); err == nil || !strings.Contains(err.Error(), "EnablePartitioning must be set to true") {
		t.Errorf("created in a partitioned namespace: %v", err)
	}
	if _, err := Start(&Options{Partitions: 257}); err == nil {
		t.Error("started with 257 partitions")
	}
}
