//go:build faults

package sim

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/operator/plan"
	"feedbox/tests/sim/world"
)

// shape is a load of the planner.
type shape struct {
	rate   int                        // changes a second
	events int                        // of a change
	patch  func(n int) map[string]any // has one member for each event
}

// eventBytes is about the size of a stored event and of a stored contact here.
const eventBytes = 1000

// The throughput that feedbox plan gives for a load is enough for it, and three quarters of that are not:
// events are then later and later. The load is an open loop of changes at the API, and each partition keeps
// to its share of the request units. The units of a change are those of the planner's table without the
// expiry of events, because on the service the expiry uses what is left over and delays nothing.
func TestPlannedThroughputIsEnoughAndThreeQuartersAreNot(t *testing.T) {
	text := strings.Repeat("x", 480)
	for name, s := range map[string]shape{
		"one event": {90, 1, func(n int) map[string]any { return map[string]any{"description": fmt.Sprint(n, text)} }},
		"two events": {60, 2, func(n int) map[string]any {
			return map[string]any{"description": fmt.Sprint(n, text), "email": fmt.Sprintf("a%d@contoso.com", n)}
		}},
		"three events": {45, 3, func(n int) map[string]any {
			return map[string]any{"description": fmt.Sprint(n, text), "email": fmt.Sprintf("a%d@contoso.com", n), "name": map[string]any{"firstName": fmt.Sprint(n)}}
		}},
	} {
		in := plan.Defaults()
		in.Changes, in.Events, in.EventBytes, in.StateBytes, in.TTL = float64(s.rate), float64(s.events), eventBytes, eventBytes, plan.Duration(24*time.Hour)
		read, write := plan.Charge(eventBytes)
		documents := float64(1 + s.events)
		in.ChangeUnits = read + documents*write + plan.FeedCharge(0, documents, documents*eventBytes/1024)
		p, err := plan.New(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []float64{1, 0.75} {
			t.Run(fmt.Sprintf("%s with %.2f", name, part), func(t *testing.T) {
				t.Parallel()
				world.Bubble(t, func(t *testing.T) {
					const behind = 1.5 // seconds; a backlog that only grows passes it, one that ends does not reach it
					units := int(p.RequestUnits * part)
					least, most := s.run(t, units)
					t.Logf("%d changes of %d events a second with %d RU/s: after 30 s %.1f to %.1f s late", s.rate, s.events, units, least, most)
					if part == 1 && most > behind || part < 1 && least < behind {
						t.Error("the throughput is not what the plan says")
					}
				})
			})
		}
	}
}

// run makes changes for 40 seconds. It returns by how many seconds of events the broker was late in the last
// ten of them, at least and at most.
func (s shape) run(t *testing.T, throughput int) (least, most float64) {
	const length, settled = 40, 30
	w := world.New(t, 1, world.Topology{Throughput: throughput, Consumers: -1, PollMin: 10 * time.Millisecond, MaxItems: 100})
	client := w.NewClient()
	defer client.Close()
	ask := func(n int, method, path string, body map[string]any, headers ...string) (r world.Reply) {
		for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
			if r = client.Do(t.Context(), fmt.Sprintf("api-%d", n%2), method, path, body, headers...); r.OK() {
				return r
			}
			if r.Definite() && r.Status != http.StatusTooManyRequests || time.Now().After(limit) {
				t.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
				return r
			}
		}
	}
	// Their ids are random. The plan assumes an even spread, so each partition gets half of them: with more
	// than six tenths on one of them, its share of the throughput would not be enough.
	const half = 50
	var contacts []string
	for spread := map[bool]int{}; len(contacts) < 2*half; {
		r := ask(len(contacts), http.MethodPost, "/api/contacts", map[string]any{"firstName": "A", "lastName": "B", "companyName": "C", "email": "a@contoso.com"})
		id := path.Base(r.Header.Get("Location"))
		if upper := world.EPK(id) >= "20"; spread[upper] < half {
			spread[upper]++
			contacts = append(contacts, id)
		}
		if t.Failed() {
			return 0, 0
		}
	}
	w.Sleep(20 * time.Second)
	before := w.Accepted()
	late := func(changes int) float64 {
		return float64(int64(changes*s.events)-(w.Accepted()-before)) / float64(s.rate*s.events)
	}
	var all sync.WaitGroup
	for i := range s.rate * length {
		if i == s.rate*settled {
			least, most = late(i), late(i)
		}
		least, most = min(least, late(i)), max(most, late(i))
		all.Go(func() {
			ask(i, http.MethodPatch, "/api/contacts/"+contacts[i%len(contacts)], s.patch(i), "Content-Type", "application/merge-patch+json")
		})
		w.Sleep(time.Second / time.Duration(s.rate))
	}
	all.Wait()
	if !w.Eventually(time.Minute, func() bool { return late(s.rate*length) == 0 }) {
		t.Errorf("%.1f s of events are missing", late(s.rate*length))
	}
	return least, most
}
