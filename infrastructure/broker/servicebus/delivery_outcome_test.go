package servicebus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/busemu/amqp"
)

// The Send method of go-amqp treats every outcome except rejected as success.
func TestOnlyAcceptedDeliveriesAreSent(t *testing.T) {
	for outcome, reason := range map[busemu.Outcome]string{busemu.Released: "released", busemu.Modified: "modified", busemu.Unsettled: "no_outcome"} {
		for name, groups := range map[string][]relay.Group{"batch": {group("a", 10, 10)}, "single": {group("a", 10)}} {
			t.Run(fmt.Sprint(reason, " ", name), func(t *testing.T) {
				inWorld(t, nil, func(t *testing.T, w *world) {
					p := w.publisher(t, nil)
					w.server.Control(busemu.OpSend, busemu.Times(2, busemu.Fault{Outcome: outcome}))
					for range 2 {
						wantFailed(t, p.Publish(t.Context(), groups), "a after 0: outage "+reason)
					}
					if err := p.Publish(t.Context(), groups); err != nil {
						t.Fatal(err)
					}
					if got := idsByKey(w.received(t)); len(got["a"]) != len(groups[0].Messages) {
						t.Errorf("received %v, want %d", got, len(groups[0].Messages))
					}
					if n := w.connections(); n != 1 {
						t.Errorf("%d connections, want 1: an error must not close the connection", n)
					}
				})
			})
		}
	}
}

func TestOutcomesOfConcurrentSendsAreKeptApart(t *testing.T) {
	for _, links := range []int{1, 3} {
		inWorld(t, nil, func(t *testing.T, w *world) {
			n := 0
			w.server.Control(busemu.OpSend, func(*busemu.Call) *busemu.Fault {
				if n++; n%5 == 0 {
					return &busemu.Fault{Outcome: busemu.Released}
				}
				return nil
			})
			groups := make([]relay.Group, 26)
			for i := range groups {
				groups[i] = group(string('a'+rune(i)), 10, 10)
			}
			failed := make([]bool, len(groups))
			var sends sync.WaitGroup
			for i := range links {
				first, end := i*len(groups)/links, (i+1)*len(groups)/links
				p := w.publisher(t, nil)
				sends.Go(func() {
					err := p.Publish(t.Context(), groups[first:end])
					if e, ok := err.(*relay.PublishError); ok { //nolint:errorlint // Publish documents it
						for _, k := range e.Keys {
							failed[first+k.Group] = true
						}
					}
				})
			}
			sends.Wait()
			if n := len(slices.DeleteFunc(slices.Clone(failed), func(f bool) bool { return !f })); n != 5 {
				t.Errorf("%d keys failed of 26, want the 5 that were released", n)
			}
			want := map[string][]string{}
			for i, g := range groups {
				if !failed[i] {
					want[g.Key] = []string{g.Key + ".1", g.Key + ".2"}
				}
			}
			if diff := cmp.Diff(want, idsByKey(w.received(t))); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

// The broker has received no message on a link that it refuses.
func TestRefusedLinkDoesNotRefuseTheMessage(t *testing.T) {
	for name, refusal := range map[string]busemu.Error{
		"not-allowed":         {Condition: "amqp:not-allowed"},
		"invalid-field":       {Condition: "amqp:invalid-field"},
		"precondition-failed": {Condition: "amqp:precondition-failed"},
		"not-implemented":     {Condition: "amqp:not-implemented"},
	} {
		for _, when := range []string{"at first", "within a send"} {
			t.Run(name+" "+when, func(t *testing.T) {
				inWorld(t, nil, func(t *testing.T, w *world) {
					p := w.publisher(t, nil)
					if when == "within a send" {
						if err := p.Publish(t.Context(), []relay.Group{group("z", 10)}); err != nil {
							t.Fatal(err)
						}
						w.server.Control(busemu.OpSend, busemu.Times(1, busemu.Fault{Detach: &busemu.Error{Condition: busemu.DetachForced}}))
					}
					heal := w.server.Control(busemu.OpAttach, busemu.When(busemu.Call{Entity: "contacts"}, busemu.Times(100, busemu.Fault{Err: &refusal})))
					for range 6 {
						wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 10)}), "a after 0: blocked link_refused")
					}
					heal()
					if err := p.Publish(t.Context(), []relay.Group{group("a", 10)}); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// AMQP has several encodings of an outcome, and a broker may send an invalid one. go-amqp closes the
// connection if it cannot decode a frame.
func TestAllEncodingsOfOutcomes(t *testing.T) {
	malformed := &amqp.Error{Condition: "amqp:invalid-field", Description: string(bytes.Repeat([]byte("long "), 100)), Info: amqp.Map{{Key: amqp.Symbol("x"), Value: "y"}}}
	for name, tt := range map[string]struct {
		state []byte
		want  string // "" = accepted
	}{
		"accepted, list8":         {[]byte{0, 0x53, 0x24, 0xc0, 1, 0}, ""},
		"accepted, list32":        {[]byte{0, 0x53, 0x24, 0xd0, 0, 0, 0, 4, 0, 0, 0, 0}, ""},
		"released":                {amqp.StateReleased, "outage released"},
		"released, list8":         {[]byte{0, 0x53, 0x26, 0xc0, 1, 0}, "outage released"},
		"modified":                {(&amqp.State{Code: amqp.CodeModified}).Append(nil), "outage modified"},
		"modified, undeliverable": {(&amqp.State{Code: amqp.CodeModified, DeliveryFailed: true, UndeliverableHere: true, MessageAnnotations: malformed.Info}).Append(nil), "outage modified"},
		"received":                {(&amqp.State{Code: amqp.CodeReceived}).Append(nil), "outage no_outcome"},
		"null":                    {[]byte{0x40}, "outage no_outcome"},
		"rejected without error":  {amqp.Rejected(nil), "refused rejected"},
		"rejected":                {amqp.Rejected(malformed), "refused malformed"},
		"unknown state":           {[]byte{0, 0x53, 0x34, 0x45}, "outage connection_lost"},
		"no state":                {[]byte{0x50, 7}, "outage connection_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			inScript(t, func(t *testing.T, w *world, s *script) {
				s.set(func([]byte) answer { return answer{state: tt.state} })
				p := w.publisher(t, nil)
				for _, groups := range [][]relay.Group{{group("a", 10)}, {group("a", 10, 10)}} {
					if err := p.Publish(t.Context(), groups); tt.want != "" {
						wantFailed(t, err, "a after 0: "+tt.want)
					} else if err != nil {
						t.Error(err)
					}
				}
				if n := w.connections(); n != 1 && tt.want != "outage connection_lost" {
					t.Errorf("%d connections, want 1", n)
				}
			})
		})
	}
}

// checkAccounting fails unless err reports for each group the number of messages that the links have
// accepted. A message that is neither accepted nor reported is lost.
func checkAccounting(t *testing.T, err error, groups []relay.Group, links ...*fakeLink) {
	t.Helper()
	failed := map[int]relay.KeyError{}
	if err != nil {
		e, ok := errors.AsType[*relay.PublishError](err)
		if !ok {
			t.Fatalf("error %v, want a PublishError", err)
		}
		for _, k := range e.Keys {
			failed[k.Group] = k
		}
	}
	for g := range groups {
		accepted := 0
		for _, l := range links {
			accepted += len(l.accepted[groups[g].Key])
		}
		k, isFailed := failed[g]
		reported := len(groups[g].Messages)
		if isFailed {
			reported = k.Sent
		}
		if reported != accepted || isFailed && (k.Err == nil || reported == len(groups[g].Messages)) {
			t.Errorf("key %s: %d of %d messages are reported as sent, %d are accepted (error %v)", groups[g].Key, reported, len(groups[g].Messages), accepted, k.Err)
		}
	}
}

// After a timeout of the call, every message was accepted or its key has an error.
func TestEndedCallReportsEveryMessage(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			l := &fakeLink{delay: time.Second}
			p := publisherOver(t, l, &PublisherOptions{PackKeys: seed%4 > 0, limits: limits{
				inFlight: 1 + random.IntN(3), packMessages: 1 + random.IntN(6), batchMessages: 1 + random.IntN(3), sendTimeout: time.Hour,
			}})
			var groups []relay.Group
			for i := range 12 {
				groups = append(groups, group(fmt.Sprintf("k%d", i), make([]int, 1+random.IntN(4))...))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(6000))*time.Millisecond)
			defer cancel()
			checkAccounting(t, p.Publish(ctx, groups), groups, l)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

func TestFailedKeyIsNotSentToOtherTopics(t *testing.T) {
	attempts := 0
	fallback, other := &fakeLink{}, &fakeLink{}
	other.refuse = func([]string, map[string]bool) error {
		if attempts++; attempts > 1 {
			return nil // so that a call that continues ends
		}
		return rejected("com.microsoft:server-busy")
	}
	topics := &Topics{shards: []*Publisher{publisherOver(t, fallback, nil)}, byAction: map[string]*Publisher{"Other": publisherOver(t, other, nil)}}
	groups := []relay.Group{group("a", 1, 1, 1), group("b", 1)}
	groups[0].Messages[1].Action = "Other"
	err := topics.Publish(t.Context(), groups)
	wantFailed(t, err, "a after 1: outage server_busy")
	checkAccounting(t, err, groups, fallback, other)
	if attempts != 1 {
		t.Errorf("%d attempts at the failed topic in one call", attempts)
	}
}
