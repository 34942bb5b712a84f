package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F18: events live for two seconds, and the relay is down or cannot read the feed for longer. Events
// that expired before they were sent are lost. The relay reports each of them in its log and its
// metric, whether the contact changes again or not.
func TestEventsExpireBeforeTheyAreSent(t *testing.T) {
	const full, ttl = 1000, 2 // events that expire
	runScenario(t, testkit.Result{
		Fault: "F18", Name: "events expire while the relay is down or cannot read", Seed: 18, Of: full,
		Note: "the loss is the fault's: each lost event was reported, in the log and in outbox_events_expired_total",
	}, world.Topology{APIs: -1, Relays: -1, Consumers: 1, EventTTL: ttl * time.Second}, func(s *scenario) {
		h := &histories{s: s, last: make([]int, max(12, testkit.Count(s, full)/4))}
		first := s.startRelay("relay-a", nil)
		for i := range h.last {
			h.write(i, 2, ttl)
		}
		s.Sleep(10 * time.Second)

		// The relay runs and has seen the earlier events, so it reports exactly the missing ones.
		remove := s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
			if c.Operation != cosmosemu.OpReadChangeFeed || !strings.Contains(c.Header.Get("User-Agent"), "feedbox") {
				return nil
			}
			f := cosmosemu.Unavailable()
			return &f
		})
		s.Sleep(time.Second) // pending reads have ended
		expired := h.expire(0, ttl)
		s.Sleep(10 * time.Second)
		remove()
		s.Sleep(time.Minute) // the longest pause of a relay that could not read
		h.write(0, 1, ttl)
		s.Sleep(10 * time.Second)
		if metric := int(first.metric("outbox_events_expired_total")); metric != expired {
			s.Errorf("%d events expired, outbox_events_expired_total is %d", expired, metric)
		}
		first.stop()
		<-first.done

		// Its successor knows only the end of the loss.
		expired += h.expire(1, ttl)
		s.struck.Add(int64(expired))
		s.Sleep(10 * time.Second)
		second := s.startRelay("relay-b", nil)
		s.Sleep(10 * time.Second)
		h.write(1, 1, ttl)
		s.Sleep(10 * time.Second)

		run := s.Settle()
		run.Acked = nil
		run.Reported = append(losses(first), losses(second)...) // reports of consumers do not count
		s.verify(run)
		if metric, reports := int(second.metric("outbox_events_expired_total")), len(losses(second)); metric != reports {
			s.Errorf("%d losses with unknown beginning were reported, outbox_events_expired_total is %d", reports, metric)
		}
	})
}

// losses returns the losses that a relay has reported.
func losses(r *relayProcess) []verify.Loss {
	var list []verify.Loss
	for _, l := range r.logged("events missing from the feed") {
		if l.attrs["lost"].Bool() {
			list = append(list, verify.Loss{Key: l.attrs["key"].String(), First: l.attrs["first"].Int64(), Last: l.attrs["last"].Int64()})
		}
	}
	return list
}

// histories writes contacts directly to the store.
type histories struct {
	s    *scenario
	last []int // sequence of each
}

// write adds events to contact i.
func (h *histories) write(i, events, ttl int) {
	h.s.Helper()
	key := fmt.Sprint("contact-", i)
	documents := []document{contact(key, h.last[i]+events, h.last[i]+events)}
	for range events {
		h.last[i]++
		documents = append(documents, event(key, h.last[i], ttl))
	}
	h.s.commit(h.s.containers(world.Data)[0], key, documents...)
}

// expire adds events to every second contact, starting at from, and returns their number.
func (h *histories) expire(from, ttl int) int {
	h.s.Helper()
	total := 0
	for i := from; i < len(h.last); i += 2 {
		n := 1 + h.s.pick(3)
		h.write(i, n, ttl)
		total += n
	}
	return total
}
