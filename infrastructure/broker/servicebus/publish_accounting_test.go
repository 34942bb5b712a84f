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
