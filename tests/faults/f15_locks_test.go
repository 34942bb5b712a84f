package faults

import (
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F15: consumers lose the locks of messages and sessions, cannot renew them, settle after they have
// expired, lose their links, tokens and connections, and are killed. Messages are redelivered, but
// handled once, unless a session is lost while its handler runs.
func TestLostLocks(t *testing.T) {
	const full = 600 // sessions stolen, one every three seconds
	runScenario(t, testkit.Result{
		Fault: "F15", Name: "session locks stolen, settlements refused or unanswered, renewals refused, tokens and connections lost, consumers killed", Seed: 15, Of: 3000,
	}, world.Topology{APIs: 1, Relays: 1}, func(s *scenario) {
		seen := &sessions{held: map[string]bool{}, stolen: map[string]bool{}}
		s.FaultBus(func(c *busemu.Call) *busemu.Fault {
			seen.note(c)
			var f busemu.Fault
			switch n := s.pick(100); {
			case c.Operation == busemu.OpSettle && n < 5:
				f.Err = &busemu.Error{Condition: busemu.MessageLockLost, Description: "The lock supplied is invalid."}
			case c.Operation == busemu.OpSettle && n < 10:
				f.Execute, f.Loss = true, s.loss()
			case c.Operation == busemu.OpSettle && n < 12:
				f.Delay = 40 * time.Second // until the lock has expired
			case c.Operation == busemu.OpDeliver && n < 2:
				f.Detach = &busemu.Error{Condition: busemu.DetachForced, Description: "The link was detached."}
			case c.Operation == busemu.OpManagement && c.Name == "renew-session-lock" && n < 30:
				f.Err = &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}
			default:
				return nil
			}
			s.struck.Add(1)
			return &f
		})
		load := s.StartLoad(world.LoadOptions{Writers: 3, Pace: time.Second})
		s.Sleep(10 * time.Second)
		for i := range max(10, testkit.Count(s, full)) {
			if i%7 == 3 { // handlers run longer than their locks, unless these are renewed
				s.SlowConsumers(s.between(10*time.Second, 40*time.Second))
			} else {
				s.SlowConsumers(s.between(0, 3*time.Second))
			}
			s.Sleep(s.between(0, 6*time.Second))
			switch i % 25 {
			case 7: // every session of every consumer is lost
				seen.loseAll()
				s.Bus().ExpireTokens()
				s.struck.Add(1)
				continue
			case 13: // kill -9
				seen.loseAll()
				for _, name := range s.Kind("consumer") {
					s.Crash(name)
					s.Start(name)
				}
				s.struck.Add(1)
				continue
			case 19:
				seen.loseAll()
				s.Bus().Disconnect()
				s.struck.Add(1)
				continue
			}
			if session, ok := seen.any(s); ok {
				seen.stolen[session] = true
				if err := s.Bus().ExpireSession(world.Topic+"/Subscriptions/"+world.Subscription, session); err == nil {
					s.struck.Add(1)
				}
			}
		}
		load.Stop()
		run := s.judge()
		again := seen.handledAgain(s, run)
		s.Logf("%d events were handled again, all of sessions stolen while their handler ran", again)
		s.Logf("%d deliveries were repeats that the inbox dropped", run.Repeats)
		if run.Repeats == 0 {
			s.Error("nothing was delivered twice: the test proves nothing")
		}
	})
}

// sessions tracks the sessions with recent deliveries.
type sessions struct {
	mu     sync.Mutex // guards held
	held   map[string]bool
	stolen map[string]bool // used by the test goroutine only
}

// handledAgain counts the events that were handled more than once. The inbox drops redeliveries with
// one exception: if a session is stolen while a handler runs, its mark is not stored yet, and the
// next holder of the session receives the event.
func (h *sessions) handledAgain(s *scenario, run *verify.Run) int {
	s.Helper()
	times, again := make(map[string]int, len(run.Handled)), 0
	for _, m := range run.Handled {
		if times[m.ID]++; times[m.ID] == 1 {
			continue
		}
		again++
		if !h.stolen[m.Session] {
			s.Errorf("event %s of session %s, sequence %d, was handled again", m.ID, m.Session, m.Sequence)
		}
	}
	return again
}

// loseAll marks all sessions with recent deliveries as lost.
func (h *sessions) loseAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for session := range h.held {
		h.stolen[session] = true
	}
}

func (h *sessions) note(c *busemu.Call) {
	if c.Operation != busemu.OpDeliver || c.Session == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[c.Session] = true
}

// any removes and returns a random session.
func (h *sessions) any(s *scenario) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		return "", false
	}
	n := s.pick(len(h.held))
	for session := range h.held {
		if n--; n < 0 {
			delete(h.held, session)
			return session, true
		}
	}
	return "", false
}
