package servicebus

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
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
		{"amqp:internal-error", "outage connection_lost"},
		{"amqp:unauthorized-access", "outage unauthorized"},
		{"amqp:resource-limit-exceeded", "blocked entity_full"},
		{"com.microsoft:entity-disabled", "blocked entity_disabled"},
		{"amqp:not-found", "blocked entity_not_found"},
		{"amqp:link:message-size-exceeded", "refused too_large"},
		{"amqp:not-allowed", "refused not_allowed"},
		{"amqp:decode-error", "outage connection_lost"}, // the client keeps the condition to itself
		{"com.microsoft:unheard-of", "outage connection_lost"},
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
			})
		})
	}
}

// TestLinksThatTheBrokerEnds: a forced detach is not even noticed, and no condition
// leaves a publisher that is broken for good.
func TestLinksThatTheBrokerEnds(t *testing.T) {
	for _, tt := range []struct {
		cond amqp.Symbol
		want string // class and reason of the send it hits; "" = it is accepted
	}{
		{"amqp:link:detach-forced", ""},
		{"amqp:internal-error", ""},
		{"com.microsoft:entity-disabled", "blocked entity_disabled"},
		{"amqp:unauthorized-access", "outage unauthorized"},
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
		p := w.publisher(t, &PublisherOptions{SendTimeout: 2 * time.Second})
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

// TestAMessageThatBreaksTheConnection is refused in the end although the client tells of
// nothing but lost connections; other keys get through, and no other is refused.
func TestAMessageThatBreaksTheConnection(t *testing.T) {
	inScript(t, func(t *testing.T, w *world, s *script) {
		s.set(has("bad.1", "amqp:decode-error"))
		r, err := relay.New(lines{}, w.publisher(t, nil), &relay.Options{Patience: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			changes := []relay.Change{{Raw: []byte("bad bad.1")}, {Raw: fmt.Appendf(nil, "a a.%d", n)}, {Raw: []byte("bad bad.2")}}
			err := r.Handle(t.Context(), changes)
			failed, ok := errors.AsType[*relay.BatchError](err)
			if !ok {
				t.Fatalf("error %v, want the bad event to fail", err)
			}
			for _, f := range failed.Failures {
				if f.Key != "bad" && relay.ClassOf(f.Err) == relay.Refused {
					t.Fatalf("refused %+v", f)
				}
			}
			if failed.Class() == relay.Refused {
				if relay.ReasonOf(err) != "unaccepted" || n == 0 {
					t.Errorf("refused in page %d: %v", n, err)
				}
				return
			}
		}
		t.Fatal("never refused")
	})
}
