package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// badData are values of an event's data that no relay can send.
var badData = []string{
	`"text"`, `[1]`, `null`, `{}`, // no object, no action
	`{"action":7,"sequence":%d,"aggregateVersion":%[1]d}`,
	`{"action":"","sequence":%d,"aggregateVersion":%[1]d}`,
	`{"action":"ContactNameUpdatedEvent","sequence":"one","aggregateVersion":%d}`,
	`{"action":"ContactNameUpdatedEvent","sequence":1.5,"aggregateVersion":%d}`,
	`{"action":"ContactNameUpdatedEvent","sequence":123456789012345678901234567890,"aggregateVersion":%d}`,
	`{"action":"ContactNameUpdatedEvent","sequence":%d,"aggregateVersion":{}}`,
	`{"action":"ContactNameUpdatedEvent","sequence":-1,"aggregateVersion":%d}`,
	`{"action":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `,"sequence":%d}`,
}

// F17: bad events among good ones. Exactly the bad ones and the later events of their keys are parked;
// all others arrive in order. After the bad ones are edited, a retry drains them in order while new
// events of their keys arrive.
func TestPoison(t *testing.T) {
	const full, fullEvents, each = 200, 20_000, 10
	runScenario(t, testkit.Result{
		Fault: "F17", Name: "bad documents among 20,000 events, later mended and retried", Seed: 17, Of: full,
		Note: "exactly the bad ones and their followers parked; drained in order while new events came",
	}, world.Topology{APIs: -1, Relays: 2, Consumers: 1, Sessions: 32, MaxItems: 100}, func(s *scenario) {
		c := s.containers(world.Data, world.Parked)
		p := &poisoning{s: s, data: c[0], parked: c[1], bad: map[string]int{}, last: make([]int, max(30, testkit.Count(s, fullEvents)/each))}
		p.choose(max(len(badData), testkit.Count(s, full)), each)
		for i := range p.last {
			p.write(i, each)
		}
		total := each * len(p.last)
		want := p.behind(each)
		if !s.Eventually(10*time.Minute, func() bool { return len(p.ids()) == len(want) && int(s.Accepted()) == total-len(want) }) {
			s.Errorf("%d events accepted, want %d", s.Accepted(), total-len(want))
		}
		s.Sleep(30 * time.Second) // nothing more is parked
		if got := p.ids(); !slices.Equal(got, want) {
			s.Fatalf("%d events are parked, want exactly the %d bad ones and their followers\n got %.500v\nwant %.500v", len(got), len(want), got, want)
		}
		s.struck.Add(int64(len(p.bad)))

		retried := time.Now()
		p.repair()
		for range 5 { // new events arrive
			for i := range p.last {
				if _, poisoned := p.first(i, each); poisoned {
					p.write(i, 1)
				}
			}
			s.Sleep(2 * time.Second)
		}
		// Events that arrive during the drain need no further retry.
		s.Eventually(10*time.Minute, func() bool { return len(p.ids()) == 0 })
		run := s.Settle()
		s.result.Recovery = time.Since(retried).Seconds()
		p.history(run)
		s.verify(run)
	})
}

// poisoning writes contacts with bad events among the good ones.
type poisoning struct {
	s            *scenario
	data, parked *azcosmos.ContainerClient
	bad          map[string]int // event id to its kind
	last         []int          // sequence of each contact
}

func (p *poisoning) key(i int) string { return fmt.Sprint("contact-", i) }

// choose picks which events are bad.
func (p *poisoning) choose(n, each int) {
	for len(p.bad) < n {
		id := eventID(p.key(p.s.pick(len(p.last))), 1+p.s.pick(each))
		if _, taken := p.bad[id]; !taken {
			p.bad[id] = len(p.bad) % len(badData)
		}
	}
}

// first returns the sequence of the first bad event of a contact.
func (p *poisoning) first(i, each int) (n int, poisoned bool) {
	for n := 1; n <= each; n++ {
		if _, bad := p.bad[eventID(p.key(i), n)]; bad {
			return n, true
		}
	}
	return 0, false
}

// behind lists the events that cannot be sent, in order of their ids.
func (p *poisoning) behind(each int) []string {
	var ids []string
	for i := range p.last {
		first, poisoned := p.first(i, each)
		for n := first; poisoned && n <= each; n++ {
			ids = append(ids, eventID(p.key(i), n))
		}
	}
	slices.Sort(ids)
	return ids
}

func (p *poisoning) write(i, events int) {
	p.s.Helper()
	key := p.key(i)
	documents := []document{contact(key, p.last[i]+events, p.last[i]+events)}
	for range events {
		p.last[i]++
		d := event(key, p.last[i], -1)
		if kind, bad := p.bad[eventID(key, p.last[i])]; bad {
			data := badData[kind]
			if strings.Contains(data, "%") {
				data = fmt.Sprintf(data, p.last[i])
			}
			d.raw = fmt.Sprintf(`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":%s,"ttl":-1}`, eventID(key, p.last[i]), key, data)
		}
		documents = append(documents, d)
	}
	p.s.commit(p.data, key, documents...)
}

// parkedDocument is the part of a parked document that is needed to edit it.
type parkedDocument struct {
	ID   string `json:"id"`
	Key  string `json:"partitionKey"`
	Type string `json:"type"`
}

func (p *poisoning) documents() (raw [][]byte, documents []parkedDocument) {
	p.s.Helper()
	all, err := p.s.Cosmos().Items(world.Database, world.Parked)
	if err != nil {
		p.s.Fatal(err)
	}
	for _, r := range all {
		var d parkedDocument
		if err := json.Unmarshal(r, &d); err != nil {
			p.s.Fatal(err)
		}
		if d.Type == "parkedEvent" {
			raw, documents = append(raw, r), append(documents, d)
		}
	}
	return raw, documents
}

// ids lists the parked events in order of their ids.
func (p *poisoning) ids() []string {
	p.s.Helper()
	_, documents := p.documents()
	var ids []string
	for _, d := range documents {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return ids
}

// history replaces the stored events in run by the written ones, because bad documents cannot be read
// from the store.
func (p *poisoning) history(run *verify.Run) {
	p.s.Helper()
	run.Acked, run.Aggregates, run.Events, run.Parked = nil, nil, nil, map[string]bool{}
	for i, last := range p.last {
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: p.key(i), Version: int64(last), Sequence: int64(last)})
		for n := 1; n <= last; n++ {
			run.Events = append(run.Events, verify.Event{ID: eventID(p.key(i), n), Key: p.key(i), Action: "ContactNameUpdatedEvent", Version: int64(n), Sequence: int64(n)})
		}
	}
	for _, id := range p.ids() {
		run.Parked[id] = true
		p.s.Errorf("%s is still parked", id)
	}
}

// repair replaces the bad parked documents by good ones and retries every key, as an operator does
// with feedbox parked retry.
func (p *poisoning) repair() {
	p.s.Helper()
	lot, err := parked.NewStore(p.parked)
	if err != nil {
		p.s.Fatal(err)
	}
	raw, documents := p.documents()
	keys := map[string]bool{}
	for i, d := range documents {
		keys[d.Key] = true
		if _, bad := p.bad[d.ID]; !bad {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw[i], &members); err != nil {
			p.s.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(d.ID, d.Key), ".%d", &n); err != nil {
			p.s.Fatal(err)
		}
		members["document"] = json.RawMessage(event(d.Key, n, -1).raw)
		repaired, err := json.Marshal(members)
		if err != nil {
			p.s.Fatal(err)
		}
		if _, err := p.parked.ReplaceItem(p.s.Context(), azcosmos.NewPartitionKeyString(d.Key), d.ID, repaired, nil); err != nil {
			p.s.Fatal(err)
		}
	}
	for key := range keys {
		if _, err := lot.SetIntent(p.s.Context(), key, relay.Intent{Verb: relay.VerbRetry, By: "test", At: time.Now()}); err != nil {
			p.s.Fatal(err)
		}
	}
}
