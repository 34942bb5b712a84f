//go:build browser

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

// Create a contact and follow its event; break an event, see its key parked while others
// flow; correct the event, and check the order of the key.
func TestCorrectedEventKeepsTheOrderOfItsKey(t *testing.T) {
	_, e := dev(t)
	b := open(t, e.Page)

	b.visit("/")
	b.sees("Accepted")
	b.press("Try it")
	b.press("Create it, and see its life")
	b.sees("ContactCreatedEvent")
	b.sees("from creation to reception")

	b.press("Try it")
	b.press("Break an event")
	b.sees("Broken so far")
	b.press("Parked")
	b.sees("invalid_event")
	b.sees("needs an operator")
	b.click(`a[href^="/parked/keys/"]`)
	b.sees("Order of the key")
	key := strings.TrimPrefix(b.path(), "/parked/keys/")
	var held int
	b.value(`document.querySelectorAll(".order .ev.held").length`, &held)
	if held != 2 {
		t.Fatalf("%d events are held, want 2", held)
	}

	// The others flow meanwhile.
	b.press("Try it")
	b.press("Create it, and see its life")
	b.sees("from creation to reception")

	// A document that cannot be sent is not stored.
	b.visit("/parked/keys/" + key)
	b.press("Correct it …")
	b.sees("no data.action")
	b.confirm("Store it and retry")
	b.sees("The corrected document cannot be sent")
	b.forgive("422")
	b.visit("/parked/keys/" + key)
	b.press("Correct it …")
	b.finds(`document.getElementById("f-document")`, `const d = JSON.parse(e.value); d.data.action = "ContactCreatedEvent"; e.value = JSON.stringify(d, null, 2)`)
	b.confirm("Store it and retry")
	b.sees("the key flows again")
	b.press("See the timeline of the key")
	b.sees("flows")
	var order string
	b.becomes(`document.querySelectorAll(".timeline .state.good").length === 3`)
	b.value(`[...document.querySelectorAll(".timeline .place")].map((e) => e.innerText).join(" ")`, &order)
	if order != "1 2 3" {
		t.Errorf("the order is %q", order)
	}
	// The consumer received them in order; the table lists the latest first.
	b.press("Try it")
	b.sees(key)
	b.value(`[...document.querySelectorAll("#received tr")].filter((r) => r.innerText.includes(`+quoted(key)+`)).map((r) => r.cells[2].innerText).join(" ")`, &order)
	if order != "3 2 1" {
		t.Errorf("the consumer received, the latest first: %q", order)
	}
	b.press("Acts")
	b.sees("a browser test")
}

// Visits every view and runs every act from its button to its end.
func TestEveryViewAndAct(t *testing.T) {
	_, e := dev(t)
	b := open(t, e.Page)
	b.visit("/try")
	for n := range 3 {
		b.breakAnother(n + 1)
	}
	b.visit("/ranges")
	b.sees("4 healthy")
	b.click(`td a[href^="/ranges/"]`)
	b.sees("documents handled")
	lease := strings.TrimPrefix(b.path(), "/ranges/")
	b.press("Pause …")
	b.confirm("Pause")
	b.sees("Noted: pause")
	b.visit("/ranges/" + lease)
	b.sees("pause requested")
	b.press("Resume")
	b.confirm("Resume")
	b.sees("Noted: resume")
	for _, act := range []struct{ verb, noted string }{{"Retry", "Noted: retry"}, {"Release", "Noted: release"}} {
		b.visit("/ranges/" + lease)
		b.press(act.verb)
		b.confirm(act.verb)
		b.sees(act.noted)
	}
	b.visit("/members")
	b.sees("alive")
	b.sees("Takeovers")

	b.visit("/ranges")
	b.press("Pause …")
	b.fill("typed", "pause all")
	b.confirm("Pause")
	b.sees("Noted: pause of all ranges")
	b.visit("/")
	b.sees("Paused by an operator")
	b.press("Resume")
	b.confirm("Resume")
	b.sees("Noted: resume")

	b.visit("/ranges")
	b.press("Rewind …")
	b.sees("events sent again")

	b.visit("/parked")
	b.sees("needs an operator")
	b.becomes(`document.querySelectorAll("tr[id^=k-]").length === 3`)
	b.click(`a[href^="/parked/keys/"]`)
	b.press("Retry in order")
	b.confirm("Retry")
	b.sees("The key stays parked")
	b.press("See the key")
	b.sees("refused again")
	b.press("Skip it …")
	var typed string
	b.value(`document.querySelector("label[for=typed] b").innerText`, &typed)
	b.fill("typed", typed)
	b.confirm("Skip it")
	b.sees("the key flows again")

	b.visit("/parked")
	b.press("Retry all")
	b.sees("2 keys with 6 events")
	b.fill("typed", "2")
	b.confirm("Retry all of them")
	b.sees("Noted: retry of 2 keys")

	b.visit("/try")
	b.press("Create it, and see its life")
	b.sees("from creation to reception")
	key := strings.TrimPrefix(b.path(), "/life/")
	b.press("Send its events again …")
	b.confirm("Send them again")
	b.sees("Sent: 1 events")
	b.visit("/events")
	b.fill("key", key)
	b.press("Show")
	b.sees("1 events examined")
	b.click(`td a[href="/life/` + key + `"]`)
	b.sees("from creation to reception")
	b.press("Events")
	b.sees("The stored events of all keys")
	b.visit("/events?action=None&from=x")
	b.sees("A time is an age")

	b.visit("/dead")
	b.sees("has no dead letters")

	b.visit("/doctor")
	b.sees("duplicate detection")
	b.sees("feedbox parked ls")
}

// An act can be found and confirmed with the keyboard only.
func TestKeyboardReachesAnAct(t *testing.T) {
	_, e := dev(t)
	b := open(t, e.Page)
	b.visit("/ranges")
	b.sees("4 healthy")
	focused := func() string {
		var text string
		b.value(`(document.activeElement.innerText || document.activeElement.id || "").trim()`, &text)
		return text
	}
	tabTo := func(want string) {
		t.Helper()
		for range 80 {
			if focused() == want {
				return
			}
			b.do(chromedp.KeyEvent(kb.Tab))
		}
		t.Fatalf("the tab key does not reach %q", want)
	}
	tabTo("Skip to the content")
	b.do(chromedp.KeyEvent(kb.Enter))
	tabTo("Retry")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.sees("reset failure counts")
	tabTo("who")
	b.do(chromedp.KeyEvent("Ann"))
	tabTo("why")
	b.do(chromedp.KeyEvent("by keyboard"), chromedp.KeyEvent(kb.Enter))
	b.sees("Noted: retry of all ranges")
}

// parkAsConsumer parks two events of each key, as a consumer does.
func parkAsConsumer(t *testing.T, e endpoints, name string, keys ...string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: e.CosmosEndpoint, Key: e.CosmosKey})
	must(err)
	t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "parked")
	must(err)
	relays, err := parked.NewStore(container)
	must(err)
	store, err := relays.Of(name)
	must(err)
	for _, key := range keys {
		var events []relay.ParkedEvent
		for n := int64(1); n <= 2; n++ {
			event := consumer.Event{ID: fmt.Sprintf("%s-event-%d", key, n), Key: key, Action: "OrderPaid", Sequence: n, Body: []byte(`{"amount":0}`)}
			document, err := handling.EncodeEvent(&event)
			must(err)
			events = append(events, relay.ParkedEvent{ID: event.ID, Key: key, Action: event.Action, Sequence: n, Document: document, InOrder: true, Reason: "held", ParkedAt: time.Now().UTC()})
		}
		events[0].Reason, events[0].Error, events[0].Attempts = "refused_422", "the receiver answered 422 Unprocessable Entity: amount is missing", 1
		_, err := store.Park(t.Context(), key, events, &relay.Closing{Event: events[0].ID, Reason: events[0].Reason, Error: events[0].Error, At: time.Now().UTC()})
		must(err)
	}
}

// An operator finds the parked keys of a consumer, and corrects an event of one. No consumer runs here, so
// the request stays noted.
func TestParkedKeyOfAConsumerIsCorrected(t *testing.T) {
	_, e := dev(t)
	parkAsConsumer(t, e, "billing", "c1", "c2")
	b := open(t, e.Page)
	b.visit("/parked")
	b.sees("Parked by consumers")
	b.press("billing")
	b.sees("Parked by billing")
	b.becomes(`document.querySelectorAll("tr[id^=k-]").length === 2`)
	b.click(`a[href="/parked/keys/c1?consumer=billing"]`)
	b.sees("amount is missing")
	b.press("Correct it …")
	b.sees("Consumer billing handles the 2 waiting events")
	b.finds(`document.getElementById("f-document")`, `e.value = e.value.replace('"amount": 0', '"amount": 7')`)
	b.confirm("Store it and retry")
	b.sees("The corrected document is stored")
	b.sees("Noted: retry of c1")
	b.visit("/parked/keys/c1?consumer=billing")
	b.sees("retry requested")
}

// At 400 px only tables and pictures are wider than the screen; they scroll on their own.
func TestPagesFitNarrowScreens(t *testing.T) {
	_, e := dev(t)
	parkAsConsumer(t, e, "billing", "c1", "c2")
	b := open(t, e.Page)
	b.do(chromedp.EmulateViewport(400, 800))
	for _, path := range []string{"/", "/ranges", "/parked", "/parked?consumer=billing", "/parked/keys/c1?consumer=billing", "/events", "/members", "/doctor", "/try", "/acts", "/ranges/pause?lease=all"} {
		b.visit(path)
		var width int
		b.value(`document.documentElement.scrollWidth`, &width)
		if width > 400 {
			t.Errorf("%s is %d px wide", path, width)
		}
	}
}

// Without script the pages have the same content.
func TestPagesWorkWithoutScript(t *testing.T) {
	_, e := dev(t)
	b := open(t, e.Page)
	b.visit("/")
	b.do(emulation.SetScriptExecutionDisabled(true))
	for path, want := range map[string]string{"/": "no change has been committed yet", "/ranges": "healthy", "/members": "alive", "/doctor": "duplicate detection"} {
		b.visit(path)
		var text string
		b.do(chromedp.Text("main", &text, chromedp.ByQuery))
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is missing from %s", path, want, text)
		}
	}
}
