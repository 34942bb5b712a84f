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

// How the third of a contact's events is strange.
const (
	strangeKind  = iota // a kind that nobody has heard of: for the consumer to judge
	strangeText         // bytes that are not UTF-8: nobody could read the message
	strangeType         // no type: nobody can tell that it is an event
	strangeWays         // how many there are
	strangePlace = 3    // sequence of the strange event, one of five
	strangeEach  = 5
)

// F17: what is no event by the letter. An unknown kind is sent as any other. An event
// that is not UTF-8 is parked with its followers. A document without type is none of the
// relay's: it is not sent, and the contact's history tells that an event is missing.
func TestStrangeDocuments(t *testing.T) {
	const full = 1200 // strange documents
	// The store refuses text that is not UTF-8, so it gets there on the way back.
	const written, read = "text-to-spoil", "text-\xff\xfe-spoil"
	tell(t, testkit.Result{
		Fault: "F17", Name: "events of unknown kind, without type, or not UTF-8", Seed: 171, Of: full,
		Note: "sent; reported as missing; parked with their followers",
	}, world.Topology{APIs: -1, Relays: -1, Consumers: 1, Sessions: 16}, func(s *story) {
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
		// To the relay they are as events that expired: lost, and told of.
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
