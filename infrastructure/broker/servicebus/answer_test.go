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

// has rejects with cond what contains text.
func has(text string, cond amqp.Symbol) func([]byte) answer {
	return func(payload []byte) answer {
		if bytes.Contains(payload, []byte(text)) {
			return answer{reject: cond}
		}
		return answer{}
	}
}

// TestAnswersOfTheBroker has the broker answer each class of failure, and then accept.
func TestAnswersOfTheBroker(t *testing.T) {
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
				s.set(has("b.", tt.cond))
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
				if n := w.dialled(); n != 1 {
					t.Errorf("%d connections, want 1: the answer is no reason to lose it", n)
				}
			})
		})
	}
}

// TestLinksThatTheBrokerEnds: what will pass is not even noticed, and no condition
// leaves a publisher that is broken for good.
func TestLinksThatTheBrokerEnds(t *testing.T) {
	for _, tt := range []struct {
		cond amqp.Symbol
		want string // class and reason of the send it hits; "" = it is accepted
	}{
		{"amqp:link:detach-forced", ""},
		{"amqp:internal-error", ""},
		{"com.microsoft:entity-disabled", "blocked entity_disabled"},
		{"amqp:unauthorized-access", ""}, // a token that ran out: the next link has a new one
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

// TestLostAnswers loses every third answer; what is sent again for it is dropped.
func TestLostAnswers(t *testing.T) {
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
			for tries := 0; ; tries++ {
				err := p.Publish(t.Context(), []relay.Group{g})
				if err == nil {
					break
				}
				wantFailed(t, err, "a after 0: outage send_timeout")
				if tries > 5 {
					t.Fatal("never accepted")
				}
			}
		}
		if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// TestPackingEndsWhereItIsRefused has the broker refuse batches of several keys, as an
// entity with partitions does.
func TestPackingEndsWhereItIsRefused(t *testing.T) {
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

// TestAMessageThatFailsForAReasonNobodyKnows waits, for it may be the broker's fault; the
// other keys get through, every time.
func TestAMessageThatFailsForAReasonNobodyKnows(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		s.set(has("bad.1", "com.microsoft:unheard-of"))
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
				t.Fatalf("page %d: %s, want it to wait", n, c)
			}
		}
	})
}

// TestARefusedTokenEndsItsLink: the next one is attached with a new token.
func TestARefusedTokenEndsItsLink(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		p := w.publisher(t, nil)
		attached := 0
		w.server.Control(busemu.OpAttach, func(c *busemu.Call) *busemu.Fault {
			if c.Entity == "contacts" {
				attached++
			}
			return nil
		})
		s.set(has("a.1", "amqp:unauthorized-access"))
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: outage unauthorized")
		if err := p.Publish(t.Context(), []relay.Group{group("b", 10)}); err != nil || attached != 2 {
			t.Errorf("the next send: %v, on link %d; want the second", err, attached)
		}
	})
}

// TestABatchHasTheSizeThatTheBrokerTells, which may be less than that of one message. One
// that tells nothing of use gets what all take.
func TestABatchHasTheSizeThatTheBrokerTells(t *testing.T) {
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
