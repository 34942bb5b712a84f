package operations_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// letterQueue is a dead-letter queue in memory. It records what was done, and refuses letter 9.
type letterQueue struct {
	operator.BrokerDoctor
	letters []relayport.DeadLetter
	next    []relayport.DeadLetter // of the reads after the first one; nil: the same
	done    []string
}

func (*letterQueue) Window(context.Context, string) operator.Window { return operator.Window{} }

func (*letterQueue) Reach(string) string { return "topic contacts" }

func (q *letterQueue) Read(_ context.Context, _ string, limit int) ([]relayport.DeadLetter, bool, error) {
	letters := q.letters
	if q.next != nil {
		q.letters, q.next = q.next, nil
	}
	return letters[:min(limit, len(letters))], len(letters) > limit, nil
}

func (q *letterQueue) Claim(context.Context, string, []string) (relayport.LetterClaim, error) {
	return q, nil
}

func (q *letterQueue) Resubmit(_ context.Context, id string, r relayport.Resubmission) error {
	if id == "9" {
		return errors.New("no room")
	}
	q.done = append(q.done, "sent "+id+string(r.Body))
	return nil
}

func (q *letterQueue) Remove(_ context.Context, id string) error {
	q.done = append(q.done, "removed "+id)
	q.letters = slices.DeleteFunc(slices.Clone(q.letters), func(l relayport.DeadLetter) bool { return l.ID == id })
	return nil
}

func (*letterQueue) Release(context.Context) {}

// deadPort has the use cases of dead letters of a real operator.
type deadPort struct {
	*fake
	operations.Letters
}

func newDeadPort() (deadPort, *letterQueue) {
	q := &letterQueue{}
	for _, l := range []struct{ id, key, reason string }{{"1", "a", "unknown_schema"}, {"2", "a", "unknown_schema"}, {"3", "b", "other"}, {"9", "c", "unknown_schema"}, {"10", "c", "unknown_schema"}, {"11", "d", "unknown_schema"}} {
		q.letters = append(q.letters, relayport.DeadLetter{
			ID: l.id, Event: "event-" + l.id, Key: l.key, Reason: l.reason, Description: "no decoder", Body: []byte(`{"a":"<script>"}`), Headers: map[string]string{"sequence": "7"},
		})
	}
	o := operator.New(&config.Relay{Broker: config.Broker{Consumers: []string{"billing", "audit"}}}, operator.Store{}, &operator.Broker{DeadLetters: q, Doctor: q})
	return deadPort{crowd(1, 0), o}, q
}

func TestDeadLettersAreShownWithTheirReason(t *testing.T) {
	port, _ := newDeadPort()
	get := serve(t, port)
	for path, wants := range map[string][]string{
		"/dead":                                      {"unknown_schema", "no decoder", "event-3", "audit", "1 to 6 of 6", "Discard …"},
		"/dead?consumer=billing&reason=other":        {"1 to 1 of 1", "event-3"},
		"/dead/letters/2?consumer=billing":           {"event-2", "&lt;script&gt;", "sequence", "Correct it …"},
		"/dead/resubmit?consumer=billing&key=a":      {"2 dead letters of 1 keys go to billing again", "topic contacts", "the inbox of the consumer drops it", "Type <b>2</b>"},
		"/dead/resubmit?consumer=billing&letter=2":   {"No letter can be sent again", "Left out"},
		"/dead/discard?consumer=billing&reason=none": {"No dead letter matches"},
		"/dead/discard?consumer=billing&reason=":     {"No dead letter matches"},
		"/dead/resubmit?consumer=billing&key=":       {"No letter can be sent again"},
	} {
		body := get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
}

// A key stops at its first failure, and the next key continues.
func TestActsOnDeadLettersKeepTheOrderOfKeys(t *testing.T) {
	for _, c := range []struct {
		path, sees string
		done       []string
	}{
		{"/dead/resubmit?consumer=billing&key=a", "Sent again: 2 of 2", []string{"sent 1", "removed 1", "sent 2", "removed 2"}},
		{"/dead/resubmit?consumer=billing&reason=unknown_schema", "Key c stopped at letter 9, 2 letters remain: no room", []string{"sent 1", "removed 1", "sent 2", "removed 2", "sent 11", "removed 11"}},
		{"/dead/edit?consumer=billing&letter=3&body=%7B%22b%22:1%7D", "Sent again: 1 of 1", []string{`sent 3{"b":1}`, "removed 3"}},
		{"/dead/discard?consumer=billing&letter=3", "Discarded: 1 of 1", []string{"removed 3"}},
	} {
		port, q := newDeadPort()
		if body := act(t, port, c.path, 0, c.sees); !strings.Contains(body, c.sees) || !slices.Equal(q.done, c.done) {
			t.Errorf("%s: %q, want %q; the page:\n%s", c.path, q.done, c.done, body)
		}
	}
}

// A letter may arrive or leave between a preview and its act, even if the preview is confirmed at once.
func TestActOnDeadLettersStopsIfOthersMatchThanInItsPreview(t *testing.T) {
	for _, path := range []string{"/dead/discard?consumer=billing&key=a", "/dead/resubmit?consumer=billing&key=a", "/dead/edit?consumer=billing&letter=1&body=%7B%7D"} {
		for what, from := range map[string]int{"arrives": 0, "leaves": 1} {
			port, q := newDeadPort()
			q.next = slices.Insert(slices.Clone(q.letters), 0, relayport.DeadLetter{ID: "0", Key: "a", Reason: "other"})
			if from > 0 {
				q.next = q.letters[from:]
			}
			const want = "<b>The dead letters have changed.</b> Other letters match now than in the preview. Nothing was done.</p><p>Go back to the list and repeat the act.</p>"
			if body := act(t, port, path, 0, want); !strings.Contains(body, want) || len(q.done) > 0 {
				t.Errorf("%s, a letter %s: %q; the page:\n%s", path, what, q.done, body)
			}
		}
	}
}

func TestAnotherOrderOfDeadLettersDoesNotStopAnAct(t *testing.T) {
	for _, path := range []string{"/dead/discard?consumer=billing&key=a", "/dead/resubmit?consumer=billing&reason=unknown_schema"} {
		port, q := newDeadPort()
		q.next = slices.Clone(q.letters)
		slices.Reverse(q.next)
		if body := act(t, port, path, 0, "dead letters"); len(q.done) == 0 {
			t.Errorf("%s: nothing was done; the page:\n%s", path, body)
		}
	}
}

func TestReadersSeeDeadLettersWithoutActs(t *testing.T) {
	port, _ := newDeadPort()
	p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: port}).Sections()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for path, want := range map[string]int{"/dead": http.StatusOK, "/dead/letters/1": http.StatusOK, "/dead/discard?letter=1": http.StatusForbidden} {
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if body := reply.Body.String(); reply.Code != want || strings.Contains(body, "Discard") || strings.Contains(body, "again …") {
			t.Errorf("%s: %d %s", path, reply.Code, body)
		}
	}
}

// editing is a port with one event of a parked key. The event changes after each read if changes is set.
type editing struct {
	*acting
	document string
	reads    int
	changes  bool
	gone     []string
	replaced []string // versions
}

func (e *editing) ReadEditable(context.Context, string, string) (operator.EditableEvent, error) {
	if e.changes {
		e.reads++
	}
	return operator.EditableEvent{Document: []byte(e.document), Version: fmt.Sprint("v", e.reads/3)}, nil
}

func (*editing) CheckEdit(string, string, []byte) string { return "" }

func (e *editing) ReplaceEvent(_ context.Context, _, _ string, _ []byte, version string) error {
	e.replaced = append(e.replaced, version)
	return nil
}

func (e *editing) CompareParked(context.Context, string) (operator.ParkedComparison, error) {
	return operator.ParkedComparison{Events: 3, Gone: e.gone}, nil
}

func newEditing(document string) *editing {
	return &editing{acting: &acting{fake: crowd(1, 1), after: make([]relay.Gate, 2)}, document: document}
}

// A form with a part of a document would lose the rest.
func TestDocumentTooLargeForTheFormIsNotEdited(t *testing.T) {
	for size, tooLarge := range map[int]bool{1 << 10: false, 32 << 10: true} {
		body := serve(t, newEditing(`{"text":"`+strings.Repeat("x", size)+`"}`))("/parked/mend?key=k&event=e1")
		if got := strings.Contains(body, "use feedbox parked edit"); got != tooLarge || strings.Contains(body, `name="why"`) == tooLarge {
			t.Errorf("%d bytes: refused: %t in\n%s", size, got, body)
		}
	}
}

// The event may change between the check of the confirmation and the write.
func TestEditReplacesTheVersionOfItsPreviewOnly(t *testing.T) {
	port := newEditing(`{}`)
	port.changes = true // the third read would be one of the act
	body := act(t, port, "/parked/mend?key=k&event=e1&document=%7B%7D", 0, "is stored")
	if !slices.Equal(port.replaced, []string{"v0"}) {
		t.Errorf("versions %q were replaced, want v0:\n%s", port.replaced, body)
	}
}

// A view within the second in which tabs share a read must not show the state before the act.
func TestTimelineAfterARetryIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := relay.Gate{Key: "k", Events: 3, Version: "1"}
		port := &acting{fake: &fake{}, after: []relay.Gate{gate, gate}} // of the preview and the confirmation
		p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: port}).Sections(), Actions: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		request := func(r *http.Request) *httptest.ResponseRecorder {
			reply := httptest.NewRecorder()
			p.ServeHTTP(reply, r)
			return reply
		}
		view := func(path string) string {
			return request(httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)).Body.String()
		}
		entries := func(action string) []operator.Entry {
			return []operator.Entry{{Message: relay.Message{ID: "e1", Key: "k", Action: action}, Status: operator.StatusWaiting}}
		}
		port.entries = entries("Former")
		if body := view("/life/k"); !strings.Contains(body, "Former") {
			t.Fatalf("the timeline is %s", body)
		}
		port.entries = entries("Later")
		if body := view("/life/k"); !strings.Contains(body, "Former") {
			t.Fatalf("two views at a time do not share a read: %s", body)
		}
		const retry = "/parked/retry?key=k"
		if confirmed := request(confirmation(retry, view(retry))); confirmed.Code != http.StatusSeeOther {
			t.Fatalf("%d %s", confirmed.Code, confirmed.Body)
		}
		if body := view("/life/k"); !strings.Contains(body, "Later") {
			t.Error("the timeline shows the state before the retry")
		}
	})
}

// A relay refuses such a retry.
func TestRetryFromTheStoreNeedsAllEventsInTheStore(t *testing.T) {
	for _, gone := range [][]string{nil, {"e2"}} {
		port := newEditing("")
		port.gone = gone
		body := serve(t, port)("/parked/retry?key=k&store=yes")
		if refused := strings.Contains(body, "Events are no longer stored: they have expired"); refused != (gone != nil) || strings.Contains(body, `name="why"`) == refused {
			t.Errorf("gone %q, refused: %t in\n%s", gone, refused, body)
		}
	}
}

// The owners of no range carry out nothing. A pause is also for ranges of the future.
func TestActOnAllOfNoRangesIsRefused(t *testing.T) {
	get := serve(t, crowd(0, 0))
	get("/ranges")
	for command, refused := range map[string]bool{"release": true, "retry": true, "restart": true, "pause": false, "resume": false} {
		body := get("/ranges/" + command + "?lease=all")
		if got := strings.Contains(body, "no relay has started"); got != refused || strings.Contains(body, `name="why"`) == refused {
			t.Errorf("%s refused: %t in\n%s", command, got, body)
		}
	}
}

// factsOf returns the facts of a preview.
func factsOf(body string) string {
	var facts []string
	for _, m := range regexp.MustCompile(`<dt>([^<]*)</dt><dd>([^<]*)</dd>`).FindAllStringSubmatch(body, -1) {
		facts = append(facts, m[1]+": "+m[2])
	}
	return strings.Join(facts, ", ")
}

// fieldsOf returns the labels and hints of the fields of a preview, without those of every preview.
func fieldsOf(body string) string {
	var fields []string
	for _, m := range regexp.MustCompile(`(?s)<label for="f-(\w+)">([^<]*)</label>.*?<span class="hint" id="h-\w+">([^<]*)</span>`).FindAllStringSubmatch(body, -1) {
		fields = append(fields, m[1]+": "+m[2]+" ("+m[3]+")")
	}
	return strings.Join(fields, ", ")
}

// A person decides by the facts of a preview.
func TestPreviewsShowTheFactsOfTheirTarget(t *testing.T) {
	port, _ := newDeadPort()
	editing := newEditing(`{}`)
	editing.gone = []string{"e2"}
	editing.after = slices.Repeat([]relay.Gate{{Key: "k", Events: 3, Attempts: 4, Closing: relay.Closing{Reason: "too_large"}}}, 9)
	const store = "store: Send each event as currently stored (after a correction in the store)"
	for _, c := range []struct {
		port                operations.Port
		path, facts, fields string
	}{
		{editing, "/parked/retry?key=k", "key: k, waiting events: 3, parked for: too_large, attempts so far: 4", store},
		{editing, "/parked/mend?key=k&event=e1", "key: k, event: e1", "document: The event&#39;s document (Must be JSON. Keep the id and key.)"},
		{editing, "/parked/retry?key=k&store=yes", "key: k, waiting events: 3, parked for: too_large, attempts so far: 4, compared with the store: the first 3, differ: none, no longer stored: 1: e2", ""},
		{editing, "/parked/skip?key=k&event=e1", "key: k, event: e1, action: , sequence: 0, error: ", ""},
		{editing, "/ranges/replay?lease=all&ago=10m", "events sent again: 1, dropped by the topic: 0, committed within its duplicate window of 10m0s, consumers may see twice: 1, ranges not rewound: 0", ""},
		{crowd(1, 3), "/parked/retry-all?reason=too_large", "keys: 2, events: 6", store},
		{port, "/dead/resubmit?consumer=billing&key=a", "letters: 2, keys: 1, dropped as repeats: 0", ""},
		{port, "/dead/edit?consumer=billing&letter=3", "event: event-3, key: b, reason: other", "body: The body (The stored event stays as it is.)"},
		{port, "/dead/discard?consumer=billing&letter=3", "", ""},
	} {
		body := serve(t, c.port)(c.path)
		if facts, fields := factsOf(body), fieldsOf(body); facts != c.facts || fields != c.fields {
			t.Errorf("%s: facts %q, fields %q, want %q and %q in\n%s", c.path, facts, fields, c.facts, c.fields, body)
		}
	}
}

// A preview shows the ranges, their owner and their backlog, and that a backlog is not known.
func TestPreviewsOfLeaseCommandsShowTheRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(2, 0)
		get := serve(t, port)
		get("/ranges") // waits for the first read
		for query, want := range map[string]string{
			"all":                                   "ranges: 2, waiting now: 4",
			changefeed.LeaseName(port.leases[1].ID): "range: 00000001-00000002, owner: relay-1, condition: healthy, behind: 2",
		} {
			for _, command := range []string{"pause", "resume", "release", "retry", "restart"} {
				if got := factsOf(get("/ranges/" + command + "?lease=" + query)); got != want {
					t.Errorf("%s of %s: %q, want %q", command, query, got, want)
				}
			}
		}
	})
}

// A range that is resumed by name sends nothing while all ranges are paused.
func TestPreviewOfAResumeNamesThePauseOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stamps := map[string]bool{}
		for _, paused := range []bool{false, true} {
			port := crowd(1, 0)
			port.paused = paused
			get := serve(t, port)
			get("/ranges") // waits for the first read
			for _, command := range []string{"resume", "retry"} {
				body := get("/ranges/" + command + "?lease=" + changefeed.LeaseName(port.leases[0].ID))
				if named := strings.Contains(body, "All ranges are paused: nothing is sent until all are resumed."); named != (paused && command == "resume") {
					t.Errorf("%s, paused: %t, named: %t in\n%s", command, paused, named, body)
				}
				stamps[command+" "+stampOf(t, body)] = true
			}
		}
		if len(stamps) != 4 {
			t.Errorf("a pause after the preview is not noticed: %v", stamps)
		}
	})
}

// stampOf returns the stamp of a preview.
func stampOf(t *testing.T, preview string) string {
	t.Helper()
	found := regexp.MustCompile(`name="stamp" value="([^"]+)"`).FindStringSubmatch(preview)
	if found == nil {
		t.Fatal("the preview has no stamp")
	}
	return found[1]
}

// The keys of a preview are those that are retried, also if others of the same number are parked meanwhile. Keys
// that were parked at the same time are listed in any order.
func TestPreviewOfManyKeysBelongsToTheseKeys(t *testing.T) {
	stamp := func(keys ...string) string {
		port := &fake{}
		for _, key := range keys {
			port.gates = append(port.gates, relay.Gate{Key: key, Events: 2, Closing: relay.Closing{Reason: "too_large"}})
		}
		return stampOf(t, serve(t, port)("/parked/retry-all"))
	}
	shown := stamp("a", "b")
	if other := stamp("a", "c"); other == shown {
		t.Error("the preview of a and b is confirmed for a and c")
	}
	if again := stamp("b", "a"); again != shown {
		t.Errorf("the preview of a and b is stale for b and a: %s, then %s", shown, again)
	}
}

// An act on several keys must not be confirmed by accident.
func TestRetryOfSeveralKeysIsConfirmedByTheirNumber(t *testing.T) {
	for keys, want := range map[int]string{0: "", 1: "", 2: "2", 3: "3"} {
		body := serve(t, crowd(1, keys))("/parked/retry-all")
		typed := regexp.MustCompile(`Type <b>([^<]*)</b>`).FindStringSubmatch(body)
		if got := strings.Join(typed, ""); want == "" && got != "" || want != "" && got != "Type <b>"+want+"</b>"+want || strings.Contains(body, `name="why"`) != (keys > 0) {
			t.Errorf("%d keys: %q, want %q in\n%s", keys, typed, want, body)
		}
	}
	const want = `<a class="button main" href="/parked?reason=too_large">See the remaining keys</a>`
	if body := act(t, &acting{fake: crowd(1, 4)}, "/parked/retry-all?reason=too_large", 0, want); !strings.Contains(body, want) || !strings.Contains(body, "Noted: retry of 2 keys.") || !strings.Contains(body, "2 of 2") {
		t.Errorf("%q is missing:\n%s", want, body)
	}
}

// A call may fail after others have succeeded. Then a view shows the failure and not a part, and an act has failed.
func TestFailureOfAnyCallIsShown(t *testing.T) {
	views := []string{"/parked/keys/k", "/parked/keys/k?consumer=billing", "/events", "/dead", "/dead/letters/3", "/life/k"}
	acts := []string{
		"/parked/retry?key=k", "/parked/retry?key=k&store=yes", "/parked/retry?key=k&consumer=billing", "/parked/retry-all", "/parked/retry-all?consumer=billing",
		"/parked/skip?key=k&event=e1", "/parked/skip?key=k&event=e1&consumer=billing", "/parked/mend?key=k&event=e1&document=%7B%7D", "/parked/mend?key=k&event=e1&document=%7B%7D&consumer=billing",
		"/dead/resubmit?letter=3", "/dead/edit?letter=3&body=%7B%7D", "/dead/discard?letter=3", "/life/replay?key=k", "/ranges/replay?lease=all&ago=10m", "/ranges/release?lease=all",
	}
	synctest.Test(t, func(t *testing.T) {
		port := newBreaking(0)
		p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: port}).Sections(), Actions: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, path := range slices.Concat(views, acts) {
			// request reports whether the reply has the status want. The only other one is that of the outage.
			request := func(r *http.Request, want int) (body, location string, ok bool) {
				reply := httptest.NewRecorder()
				p.ServeHTTP(reply, r)
				if body = reply.Body.String(); reply.Code != want && (reply.Code != http.StatusBadGateway || !strings.Contains(body, errOutage.Error())) {
					t.Errorf("%s: %d %s", path, reply.Code, body)
				}
				return body, reply.Header().Get("Location"), reply.Code == want
			}
			calls, done := 0, false
			for ; !done && calls < 20; calls++ {
				time.Sleep(2 * time.Minute) // longer than the caches last and than an act waits
				*port = *newBreaking(calls)
				body, _, shown := request(httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil), http.StatusOK)
				if shown && port.left < 0 {
					t.Errorf("%s is shown after %d calls, although a further one failed:\n%s", path, calls, body)
					continue
				}
				if done = shown; shown && slices.Contains(acts, path) {
					_, result, started := request(confirmation(path, body), http.StatusSeeOther)
					if !started {
						done = false
						continue
					}
					time.Sleep(2 * time.Minute)
					body, _, _ = request(httptest.NewRequest(http.MethodGet, "http://localhost"+result, nil), http.StatusOK)
					done = strings.Contains(body, `<span class="state good">done</span>`)
					if failed := strings.Contains(body, `<span class="state bad">failed</span>`) && strings.Contains(body, errOutage.Error()); failed == done {
						t.Errorf("%s after %d calls:\n%s", path, calls, body)
					}
				}
				if shown && done != (port.left >= 0) {
					t.Errorf("%s is done after %d calls: %t, with a further one that failed: %t\n%s", path, calls, done, port.left < 0, body)
				}
			}
			if calls < 2 || !done {
				t.Errorf("%s after %d calls: done: %t", path, calls, done)
			}
		}
	})
}

// A command is for one lease, or for all. A pause of all is also for ranges of the future, and ends with a resume of
// all, as a pause of one lease does.
func TestCommandsAreNotedForTheirLeases(t *testing.T) {
	leases := memstore.New(nil)
	for i, bounds := range [][2]string{{"", "1F"}, {"1F", "FF"}} {
		id := fmt.Sprintf("feedboxmemory_db_coll..%s-%s", bounds[0], bounds[1])
		body := fmt.Appendf(nil, `{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":"relay-%d","ContinuationToken":"\"0\"","properties":{}}`, id, bounds[0], bounds[1], bounds[0], bounds[1], i)
		if _, err := leases.Create(t.Context(), changefeed.Record{ID: id, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	port := operations.NewPort(operator.New(&config.Relay{Processor: "feedbox"}, operator.Store{Store: relayport.Store{Feed: memfeed.New(nil), Leases: leases}}, nil))
	const left, right = "feedboxmemory_db_coll..-1F", "feedboxmemory_db_coll..1F-FF"
	for _, c := range []struct {
		command operations.LeaseCommand
		ids     []string
		want    string
	}{
		{operations.CommandPause, []string{right}, "paused: false, left: , right: pause "},
		{operations.CommandPause, nil, "paused: true, left: , right: pause "},
		{operations.CommandResume, nil, "paused: false, left: , right: "},
		{operations.CommandPause, []string{left, right}, "paused: false, left: pause , right: pause "},
		{operations.CommandResume, []string{left}, "paused: false, left: , right: pause "},
		{operations.CommandResume, []string{right}, "paused: false, left: , right: "},
		{operations.CommandRetry, []string{left}, "paused: false, left: retry , right: "},
		{operations.CommandRetry, nil, "paused: false, left: retry , right: retry "},
		{operations.CommandRelease, []string{right}, "paused: false, left: retry , right: release retry "},
		{operations.CommandRelease, nil, "paused: false, left: release retry , right: release retry "},
		{operations.CommandRestart, []string{left}, "paused: false, left: release retry restart , right: release retry "},
		{operations.CommandRestart, nil, "paused: false, left: release retry restart , right: release retry restart "},
	} {
		if err := port.CommandLeases(t.Context(), c.command, c.ids...); err != nil {
			t.Fatalf("%s of %q: %v", c.command, c.ids, err)
		}
		found, paused, err := port.LeaseList(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("%+v, %v", found, err)
		}
		got := fmt.Sprintf("paused: %t", paused)
		for i, name := range []string{"left", "right"} {
			got += ", " + name + ": "
			r := found[i].Request
			for _, one := range []struct {
				noted bool
				word  string
			}{{r.Paused, "pause"}, {r.Release, "release"}, {r.Retry, "retry"}, {r.History != "", "restart"}} {
				if one.noted {
					got += one.word + " "
				}
			}
		}
		if got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.command, c.ids, got, c.want)
		}
	}
	if err := port.CommandLeases(t.Context(), "delete"); err == nil {
		t.Error("an unknown command was noted")
	}
}

// The request was carried out, whatever happened to the key after it.
func TestKeyThatIsParkedAgainIsNotWaitedFor(t *testing.T) {
	again := relay.Gate{Key: "k", Events: 1, Closing: relay.Closing{Event: "e9", Reason: "too_large", Error: "e9 has 2 MB", At: time.Now().Add(time.Hour)}}
	port := &acting{fake: crowd(1, 1), after: slices.Repeat([]relay.Gate{again}, 300)}
	const want = "parked again"
	if body := act(t, port, "/parked/retry?key=k", 0, want); !strings.Contains(body, want) || !strings.Contains(body, "e9 has 2 MB") {
		t.Errorf("%q is missing:\n%s", want, body)
	}
}

// replaying is a port that sends the events of a key again.
type replaying struct {
	*fake
	plan operator.KeyReplay
	sent []string
}

func (r *replaying) PlanKeyReplay(_ context.Context, key string, window time.Duration) (*operator.KeyReplay, error) {
	plan := r.plan
	plan.Key = key + " within " + window.String()
	return &plan, nil
}

func (r *replaying) SendKey(_ context.Context, plan *operator.KeyReplay, progress func(n int)) error {
	for _, m := range plan.Messages {
		r.sent = append(r.sent, plan.Key+": "+m.ID)
		progress(1)
	}
	return nil
}

// The events of a key are sent again in order, and not at all if some are missing.
func TestReplayOfAKeyNeedsAllItsEvents(t *testing.T) {
	port := &replaying{fake: crowd(1, 0)}
	port.plan.Events, port.plan.Covered = 3, 1
	for n := range 3 {
		port.plan.Messages = append(port.plan.Messages, relay.Message{ID: fmt.Sprint("e", n+1), Sequence: int64(n + 1)})
	}
	holes := make([]int64, 12)
	for n := range holes {
		holes[n] = int64(n + 21)
	}
	for _, c := range []struct {
		plan  operator.KeyReplay
		wants []string
		may   bool
	}{
		{port.plan, []string{"sends the 3 stored events of the key again", "<dt>key</dt><dd>k</dd>", ">1, committed within its duplicate window of 10m0s<", "<dt>consumers may see twice</dt><dd>2</dd>"}, true},
		{operator.KeyReplay{}, []string{"The key has no stored events: there is no such aggregate, or they have expired."}, false},
		{operator.KeyReplay{Resend: port.plan.Resend, Missing: holes[:2]}, []string{"The sequences [21 22] are missing, so the events cannot be sent in order."}, false},
		{operator.KeyReplay{Resend: port.plan.Resend, Missing: holes}, []string{"The sequences [21 22 23 24 25 26 27 28 29 30] are missing, so the events cannot be sent in order."}, false},
	} {
		body := serve(t, &replaying{fake: port.fake, plan: c.plan})("/life/replay?key=k")
		for _, want := range c.wants {
			if !strings.Contains(body, want) {
				t.Errorf("%q is missing in\n%s", want, body)
			}
		}
		if strings.Contains(body, `name="why"`) != c.may {
			t.Errorf("%+v, may be sent: %t in\n%s", c.plan, !c.may, body)
		}
	}
	const want = "Sent: 3 events."
	body := act(t, port, "/life/replay?key=k", 0, want)
	if sent := []string{"k within 10m0s: e1", "k within 10m0s: e2", "k within 10m0s: e3"}; !strings.Contains(body, want) || !strings.Contains(body, "3 of 3") || !strings.Contains(body, `href="/life/k">See the timeline of the key</a>`) || !slices.Equal(port.sent, sent) {
		t.Errorf("sent %q, want %q; the page:\n%s", port.sent, sent, body)
	}
}

// refused returns title, detail and advice of a refusal.
func refused(body string) string {
	found := regexp.MustCompile(`(?s)<section class="card refused">\s*<h1>(.*?)</h1>\s*<p>(.*?)</p>\s*<p class="next">(.*?)</p>\s*</section>`).FindStringSubmatch(body)
	if found == nil {
		return ""
	}
	return strings.Join(found[1:], "; ")
}

// A key may have been sent since the list of parked keys was shown.
func TestActOnAKeyThatIsNotParkedIsRefused(t *testing.T) {
	of := crowd(1, 0)
	of.consumer = of
	p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: of}).Sections(), Actions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, path := range []string{"/parked/retry?key=k", "/parked/retry?key=k&consumer=billing", "/parked/mend?key=k&event=e1", "/parked/keys/k", "/parked/keys/k?consumer=billing"} {
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if reply.Code != http.StatusNotFound || refused(reply.Body.String()) != "The key is not parked; The events of k flow, or the key does not exist.; See its timeline, or the list of parked keys." {
			t.Errorf("%s: %d %s", path, reply.Code, reply.Body)
		}
	}
}
