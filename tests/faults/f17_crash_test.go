package faults

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F17: a relay crashes repeatedly after it has parked a refused event and before the checkpoint passes
// that page. Its successor reads the page again. The events accepted before the refused one are not
// parked. Exactly the refused ones and the later events of their keys are. They are edited after the
// broker has forgotten their predecessors, and are then sent once and in order.
func TestRelayDiesBetweenParkAndCheckpoint(t *testing.T) {
	const full, each, contactsEach, badEach = 60, 10, 20, 2
	const forgets = 2 * time.Minute
	runScenario(t, testkit.Result{
		Fault: "F17", Name: "a relay dies between the parking of an event and the checkpoint behind it", Seed: 172, Of: full,
		Note: "exactly the refused ones and their followers parked; retried once the broker had forgotten the others' ids",
	}, world.Topology{APIs: -1, Relays: 2, Consumers: 1, Sessions: 16, MaxItems: 100, DuplicateWindow: forgets}, func(s *scenario) {
		rounds := max(4, testkit.Count(s, full))
		c := s.containers(world.Data, world.Parked)
		p := &poisoning{s: s, data: c[0], parked: c[1], bad: map[string]int{}, last: make([]int, rounds*contactsEach)}
		trap := &parkTrap{s: s, positions: map[string]string{}}
		remove := s.FaultCosmos(trap.look)
		for round := range rounds {
			first := round * contactsEach
			for range badEach {
				p.bad[eventID(p.key(first+s.pick(contactsEach)), 2+s.pick(each-1))] = len(p.bad) % len(badData)
			}
			trap.arm()
			for i := range contactsEach {
				p.write(first+i, each)
			}
			if !s.Eventually(2*time.Minute, func() bool { return trap.victim() != "" }) {
				s.Fatalf("round %d: no relay came to a checkpoint behind a parked event", round)
			}
			s.Sleep(s.between(0, 15*time.Second)) // the successor may be the other relay or the same one
			s.Start(trap.victim())
			s.Sleep(15 * time.Second)
		}
		remove()
		want := p.behind(each)
		s.Eventually(2*time.Minute, func() bool { return len(p.ids()) >= len(want) && int(s.Accepted()) >= len(p.last)*each-len(want) })
		s.Sleep(forgets + time.Minute)
		if got := p.ids(); !slices.Equal(got, want) {
			s.Errorf("%d events are parked, want exactly the %d refused ones and their followers\n got %.500v\nwant %.500v", len(got), len(want), got, want)
		}
		p.repair()
		s.Eventually(10*time.Minute, func() bool { return len(p.ids()) == 0 })
		run := s.Settle()
		p.history(run)
		s.verify(run)
	})
}

// parkTrap kills a relay at the first checkpoint that would pass an event it has parked.
type parkTrap struct {
	s *scenario

	mu        sync.Mutex // guards the fields below
	armed     bool
	parked    []string          // effective partition keys of events parked since it was armed
	positions map[string]string // last written position of each lease
	struck    string            // the relay that was killed
}

func (p *parkTrap) arm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.parked, p.struck = true, nil, ""
}

func (p *parkTrap) victim() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// look is a hook of the store.
func (p *parkTrap) look(c *cosmosemu.Call) *cosmosemu.Fault {
	switch {
	case !writes(c):
	case c.Container == world.Parked && strings.Contains(string(c.Body), `"parkedEvent"`):
		p.mu.Lock()
		p.parked = append(p.parked, world.EPK(partitionKey(c)))
		p.mu.Unlock()
	case c.Container == world.Leases && p.passes(c):
		return &cosmosemu.Fault{Loss: cosmosemu.Reset}
	}
	return nil
}

// passes reports whether a call is a checkpoint that passes a parked event. It crashes the relay that
// made the call.
func (p *parkTrap) passes(c *cosmosemu.Call) bool {
	var l struct {
		lease
		Position string `json:"ContinuationToken"`
	}
	if json.Unmarshal(c.Body, &l) != nil || l.Token == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.positions[l.ID]
	passes := known && before != l.Position && p.armed && slices.ContainsFunc(p.parked, func(at string) bool {
		return l.Feed.Range.Min <= at && at < l.Feed.Range.Max
	})
	if !passes {
		p.positions[l.ID] = l.Position
		return false
	}
	name := l.Owner[:max(0, strings.LastIndex(l.Owner, "."))]
	if !slices.Contains(p.s.Kind("relay"), name) || !p.s.Crash(name) {
		return false
	}
	p.armed, p.struck = false, name
	p.s.struck.Add(1)
	return true
}
