package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/busemu/amqp"
)

// rejectContaining rejects messages that contain text with cond.
func rejectContaining(text string, cond amqp.Symbol) func([]byte) answer {
	return func(payload []byte) answer {
		if bytes.Contains(payload, []byte(text)) {
			return answer{reject: cond}
		}
		return answer{}
	}
}

func TestBrokerErrorsAreClassified(t *testing.T) {
	for _, tt := range []struct {
		cond amqp.Symbol
		want string // class and reason
	}{
		{"com.microsoft:server-busy", "outage server_busy"},
		{"com.microsoft:timeout", "outage server_timeout"},
		{"com.microsoft:operation-cancelled", "outage operation_cancelled"},
		{"amqp:internal-error", "outage server_error"},
		{"amqp:unauthorized-access", "outage unauthorized"},
		{"amqp:resource-limit-exceeded", "blocked entity_full"},
		{"com.microsoft:entity-disabled", "blocked entity_disabled"},
		{"amqp:not-found", "blocked entity_not_found"},
		{"amqp:link:message-size-exceeded", "refused too_large"},
		{"amqp:not-allowed", "refused not_allowed"},
		{"amqp:decode-error", "refused malformed"},
		{"amqp:invalid-field", "refused malformed"},
		{"com.microsoft:argument-error", "refused malformed"},
		{"com.microsoft:session-cannot-be-locked", "outage unknown"},
		{"com.microsoft:unheard-of", "outage unknown"},
	} {
		t.Run(string(tt.cond), func(t *testing.T) {
			inScript(t, func(t *testing.T, w *world, s *script) {
				p := w.publisher(t, nil)
				s.set(rejectContaining("b.", tt.cond))
				for range 2 {
					wantFailed(t, p.Publish(t.Context(), []relay.Group{group("b", 10, 10)}), "a after 0: "+tt.want)
				}
				s.set(nil)
				if err := p.Publish(t.Context(), []relay.Group{group("a", 10, 10), group("b", 10, 10)}); err != nil {
					t.Fatal(err)
				}
				want := map[string][]string{"a": {"a.1", "a.2"}, "b": {"b.1", "b.2"}}
				if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
					t.Errorf("received (-want +got):\n%s", diff)
				}
				if n := w.connections(); n != 1 {
					t.Errorf("%d connections, want 1: an error must not close the connection", n)
				}
			})
		})
	}
}

// A link that ends for a temporary reason fails no send, and the publisher recovers from every reason.
func TestPublisherRecoversFromEndedLinks(t *testing.T) {
	for _, tt := range []struct {
		cond amqp.Symbol
		want string // class and reason of the send; "" = accepted
	}{
		{"amqp:link:detach-forced", ""},
		{"amqp:internal-error", ""},
		{"com.microsoft:entity-disabled", "blocked entity_disabled"},
		{"amqp:unauthorized-access", ""}, // an expired token: the next link gets a new one
		{"amqp:not-found", "blocked entity_not_found"},
		{"amqp:resource-limit-exceeded", "blocked entity_full"},
	} {
		t.Run(string(tt.cond), func(t *testing.T) {
			inScript(t, func(t *testing.T, w *world, s *script) {
				p := w.publisher(t, nil)
				if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
					t.Fatal(err)
				}
				once := true
				s.set(func([]byte) answer {
					if once {
						once = false
						return answer{detach: tt.cond}
					}
					return answer{}
				})
				err := p.Publish(t.Context(), []relay.Group{group("b", 10)})
				if tt.want == "" && err != nil {
					t.Fatal(err)
				} else if tt.want != "" {
					wantFailed(t, err, "a after 0: "+tt.want)
				}
				if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil {
					t.Fatalf("the next send: %v", err)
				}
				want := map[string][]string{"a": {"a.1"}, "b": {"b.1"}}
				if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
					t.Errorf("received (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The broker drops messages that are repeated after a lost outcome, by duplicate detection.
func TestRepeatsAfterLostOutcomesAreDropped(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		p := w.publisher(t, &PublisherOptions{limits: limits{sendTimeout: 2 * time.Second}})
		n := 0
		s.set(func([]byte) answer { n++; return answer{lose: n%3 == 0} })
		want := map[string][]string{}
		for i := range 20 {
			g := group("a", 10, 10)
			for j := range g.Messages {
				g.Messages[j].ID = fmt.Sprintf("a.%d.%d", i, j)
				want["a"] = append(want["a"], g.Messages[j].ID)
			}
			for attempts := 0; ; attempts++ {
				err := p.Publish(t.Context(), []relay.Group{g})
				if err == nil {
					break
				}
				wantFailed(t, err, "a after 0: outage send_timeout")
				if attempts > 5 {
					t.Fatal("never accepted")
				}
			}
		}
		if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// An entity with partitions refuses batches of several keys.
func TestPackingEndsIfTheEntityRefusesIt(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		p := w.publisher(t, &PublisherOptions{PackKeys: true})
		s.set(func(payload []byte) answer {
			if bytes.Contains(payload, []byte("a.1")) && bytes.Contains(payload, []byte("b.1")) {
				return answer{reject: "amqp:not-allowed"}
			}
			return answer{}
		})
		groups := []relay.Group{group("a", 10, 10), group("b", 10)}
		if err := p.Publish(t.Context(), groups); err != nil {
			t.Fatal(err)
		}
		s.asked = 0
		if err := p.Publish(t.Context(), groups); err != nil || s.asked != 2 {
			t.Errorf("the second call: %v with %d deliveries, want 2", err, s.asked)
		}
	})
}

// lines decodes "key id".
type lines struct{}

func (lines) Decode(raw []byte) (relay.Message, bool, error) {
	m := relay.Message{Action: "Changed", Body: raw}
	_, err := fmt.Sscan(string(raw), &m.Key, &m.ID)
	return m, true, err
}

// An unknown error may be an error of the broker, so its key is retried. Other keys are not affected.
func TestUnknownErrorBlocksOnlyItsKey(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		s.set(rejectContaining("bad.1", "com.microsoft:unheard-of"))
		r, err := relay.New(lines{}, w.publisher(t, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			changes := []relay.Change{{Raw: []byte("bad bad.1")}, {Raw: fmt.Appendf(nil, "a a.%d", n)}, {Raw: []byte("bad bad.2")}}
			failed := r.Handle(t.Context(), relay.Ownership{}, changes)
			if len(failed) != 2 || failed[0].Key != "bad" || failed[1].Key != "bad" {
				t.Fatalf("page %d: %v, want both events of the bad key to fail and no other", n, failed)
			}
			if c := relay.ClassOf(failed[0].Err); c != relay.Outage {
				t.Fatalf("page %d: %s, want an outage", n, c)
			}
		}
	})
}

// The next link is attached with a new token.
func TestRefusedTokenReplacesTheLink(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		p := w.publisher(t, nil)
		attached := 0
		w.server.Control(busemu.OpAttach, func(c *busemu.Call) *busemu.Fault {
			if c.Entity == "contacts" {
				attached++
			}
			return nil
		})
		s.set(rejectContaining("a.1", "amqp:unauthorized-access"))
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage unauthorized")
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil || attached != 2 {
			t.Errorf("the next send: %v, on link %d; want the second", err, attached)
		}
	})
}

// The limit of batches may be below that of messages. Without a valid limit, the default is used.
func TestBatchSizeIsThatOfTheBroker(t *testing.T) {
	for size, batches := range map[any]string{
		uint64(20_000): "[2 2]", uint32(20_000): "[2 2]", int64(20_000): "[2 2]", uint64(0): "[4]", int64(-1): "[4]",
	} {
		inScript(t, func(t *testing.T, w *world, s *script) {
			s.batch = size
			var sent []int
			p := w.publisher(t, &PublisherOptions{Sent: func(_ context.Context, r relay.BatchReport) { sent = append(sent, r.Messages) }})
			if err := p.Publish(t.Context(), []relay.Group{group("a", 9000, 9000, 9000, 9000)}); err != nil || fmt.Sprint(sent) != batches {
				t.Errorf("%T %[1]v: %v, batches of %v, want %s", size, err, sent, batches)
			}
		})
	}
}
