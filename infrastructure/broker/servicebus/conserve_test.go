package servicebus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
)

// conserved fails unless what err says of each group is what the links have accepted:
// a message that no link has, and no error names, is lost.
func conserved(t *testing.T, err error, groups []relay.Group, links ...*fakeLink) {
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
		said := len(groups[g].Messages)
		if isFailed {
			said = k.Sent
		}
		if said != accepted || isFailed && (k.Err == nil || said == len(groups[g].Messages)) {
			t.Errorf("key %s: %d of %d messages are said to be sent, %d are (error %v)", groups[g].Key, said, len(groups[g].Messages), accepted, k.Err)
		}
	}
}

// However a call of many keys ends, each message was accepted or its key has an error.
func TestACallThatEndsSaysWhatWasSent(t *testing.T) {
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
			conserved(t, p.Publish(ctx, groups), groups, l)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// A key that failed at one topic gets nothing more sent, at no topic.
func TestAKeyThatFailedIsNotSentOn(t *testing.T) {
	tries := 0
	usual, other := &fakeLink{}, &fakeLink{}
	other.refuse = func([]string, map[string]bool) error {
		if tries++; tries > 1 {
			return nil // so that a call that goes on comes to an end
		}
		return rejected("com.microsoft:server-busy")
	}
	topics := &Topics{usual: publisherOver(t, usual, nil), byAction: map[string]*Publisher{"Other": publisherOver(t, other, nil)}}
	groups := []relay.Group{group("a", 1, 1, 1), group("b", 1)}
	groups[0].Messages[1].Action = "Other"
	err := topics.Publish(t.Context(), groups)
	wantFailed(t, err, "a after 1: outage server_busy")
	conserved(t, err, groups, usual, other)
	if tries != 1 {
		t.Errorf("the topic that failed was tried %d times in one call", tries)
	}
}
