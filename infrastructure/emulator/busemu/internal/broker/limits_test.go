package broker

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 129)
	payload := func(n int) Message { return Message{Payload: make([]byte, n)} }
	for _, test := range []struct {
		name  string
		queue Queue
		batch []Message
		want  error
	}{
		{"largest message", Queue{}, []Message{payload(256 << 10)}, nil},
		{"message too large", Queue{}, []Message{payload(256<<10 + 1)}, MessageSizeExceeded},
		{"largest batch", Queue{}, []Message{payload(128 << 10), payload(128 << 10)}, nil},
		{"batch too large", Queue{}, []Message{payload(128 << 10), payload(128<<10 + 1)}, MessageSizeExceeded},
		{"smaller limit", Queue{MaxMessageSizeKB: 1}, []Message{payload(1025)}, MessageSizeExceeded},
		{"the tier's limit", Queue{MaxMessageSizeKB: 256}, []Message{payload(256<<10 + 1)}, MessageSizeExceeded},
		{"empty batch", Queue{}, nil, NotAllowed},
		{"empty message", Queue{}, []Message{{}}, nil},
		{"message id", Queue{}, []Message{{MessageID: long}}, NotAllowed},
		{"128 characters of two bytes", Queue{}, []Message{{MessageID: strings.Repeat("ü", 128)}}, nil},
		{"session id", Queue{}, []Message{{SessionID: long, HasSession: true}}, NotAllowed},
		{"partition key", Queue{}, []Message{{PartitionKey: long}}, NotAllowed},
		{"keys differ", Queue{}, []Message{{SessionID: "a", HasSession: true, PartitionKey: "b"}}, NotAllowed},
		{"keys agree", Queue{}, []Message{{SessionID: "a", HasSession: true, PartitionKey: "a"}}, nil},
		{"negative time to live", Queue{}, []Message{{TTL: -time.Second}}, NotAllowed},
		{"sessions of a batch", Queue{}, []Message{of("a", "1"), of("b", "2")}, nil},
		{"partitioned, sessions differ", Queue{Partitioned: true}, []Message{of("a", "1"), of("b", "2")}, NotAllowed},
		{"partitioned, sessions agree", Queue{Partitioned: true}, []Message{of("a", "1"), of("a", "2")}, nil},
		{"partitioned, no keys", Queue{Partitioned: true}, []Message{msg("1"), msg("2")}, nil},
		{"partitioned, one key", Queue{Partitioned: true}, []Message{{PartitionKey: "a"}, {}}, NotAllowed},
		{"partitioned, none and the empty session", Queue{Partitioned: true}, []Message{msg("1"), of("", "2")}, NotAllowed},
		{"partitioned, key and session", Queue{Partitioned: true}, []Message{{PartitionKey: "a"}, of("a", "1")}, nil},
		{"partitioned with detection, ids differ", Queue{Partitioned: true, RequiresDuplicateDetection: true}, []Message{msg("1"), msg("2")}, NotAllowed},
		{"partitioned with detection, one session", Queue{Partitioned: true, RequiresDuplicateDetection: true}, []Message{of("a", "1"), of("a", "2")}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			modes(t, func(t *testing.T, r *rig) {
				r.queue("q", test.queue)
				err := r.trySend("q", test.batch...)
				if test.want == nil && err != nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				n, _ := r.Counters("q")
				if held := len(r.peek("q")); err != nil && (held != 0 || n.Refused != int64(len(test.batch))) || err == nil && held != len(test.batch) {
					t.Errorf("%d messages held, counters %+v", held, n)
				}
			})
		})
	}
}

func TestQuota(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{MaxSizeMB: 1})
		r.subscription("t", "a", Subscription{})
		r.subscription("t", "b", Subscription{})
		large := Message{Payload: make([]byte, 250<<10)}
		for range 4 {
			r.send("t", large) // shared by both subscriptions, counted once
		}
		if err := r.trySend("t", large); !errors.Is(err, ResourceLimitExceeded) {
			t.Fatalf("fifth: %v", err)
		}
		for _, s := range []string{"a", "b"} {
			if err := r.trySend("t", large); !errors.Is(err, ResourceLimitExceeded) {
				t.Errorf("%s still holds the payload: %v", s, err)
			}
			c := r.receive("t/subscriptions/"+s, 1)
			c.settle(c.one(), Complete)
		}
		r.await()
		r.send("t", large)
		if err := r.SetQuota("t", 10); err != nil {
			t.Fatal(err)
		}
		if err := r.trySend("t", msg("a")); !errors.Is(err, ResourceLimitExceeded) {
			t.Errorf("quota of 10 bytes: %v", err)
		}
	})
}
