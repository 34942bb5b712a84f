package faults

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// The defect of the third of a contact's events.
const (
	strangeKind  = iota // an unknown kind: the consumer decides
	strangeText         // bytes that are not UTF-8: no consumer could read the message
	strangeType         // no type: the document is not recognised as an event
	strangeWays         // number of defects
	strangePlace = 3    // sequence of the strange event, one of five
	strangeEach  = 5
)

// F17: documents that are not valid events. An unknown kind is sent like any other. An event that is
// not UTF-8 is parked with the later events of its key. A document without a type is not sent, and
// its event is reported as missing.
func TestStrangeDocuments(t *testing.T) {
	const full = 1200 // strange documents
	// The store refuses text that is not UTF-8, so the answers are changed instead.
	const written, read = "text-to-spoil", "text-\xff\xfe-spoil"
	runScenario(t, testkit.Result{
		Fault: "F17", Name: "events of unknown kind, without type, or not UTF-8", Seed: 171, Of: full,
		Note: "sent; reported as missing; parked with their followers",
	}, world.Topology{APIs: -1, Relays: -1, Consumers: 1, Sessions: 16}, func(s *scenario) {
		s.spoil = func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(written), []byte(read)) }
		relay := s.startRelay("relay-a", nil)
		poison := map[string]bool{}
		var untyped []verify.Event
		data := s.containers(world.Data)[0]
		for i := range max(4*strangeWays, testkit.Count(s, full)) {
			key := fmt.Sprint("contact-", i)
			documents := []document{contact(key, strangeEach, strangeEach)}
			for n := 1; n <= strangeEach; n++ {
				d := event(key, n, -1)
				switch way := i % strangeWays; {
				case way == strangeText && n >= strangePlace:
					poison[eventID(key, n)] = true
					if n == strangePlace {
						d.raw = strings.Replace(d.raw, `"data":{`, `"data":{"firstName":"`+written+`",`, 1)
					}
				case way == strangeKind && n == strangePlace:
					d.raw = strings.Replace(d.raw, "ContactNameUpdatedEvent", "Contact/Kontakt verschoben™", 1)
				case way == strangeType && n == strangePlace:
					d.raw = strings.Replace(d.raw, `"type":"domainEvent",`, "", 1)
					untyped = append(untyped, verify.Event{
						ID: eventID(key, n), Key: key, Action: "ContactNameUpdatedEvent", Version: int64(n), Sequence: int64(n), Expired: true,
					})
				}
				documents = append(documents, d)
			}
			s.commit(data, key, documents...)
			s.struck.Add(1)
		}
		s.Eventually(5*time.Minute, func() bool { return len(losses(relay)) == len(untyped) })
		run := s.Settle()
		run.Acked, run.Poison = nil, poison
		// For the relay they are like expired events: lost and reported.
		run.Events, run.Expires, run.Reported = append(run.Events, untyped...), true, losses(relay)
		s.verify(run)
		if got := len(run.Reported); got != len(untyped) {
			s.Errorf("%d losses are reported, want one for each of the %d documents without type", got, len(untyped))
		}
		if got := len(run.Parked); got != len(poison) {
			s.Errorf("%d events are parked, want %d", got, len(poison))
		}
	})
}
