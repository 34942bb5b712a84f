package operations_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
	"feedbox/infrastructure/page/operations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs the page over a port and returns a function that gets an address.
func serve(t *testing.T, port operations.Port) func(path string) string {
	t.Helper()
	return serveWith(t, operations.Options{Port: port, TraceURL: "http://tempo/trace/{traceId}?from=1h"})
}

// serveWith is serve with other options.
func serveWith(t *testing.T, options operations.Options) func(path string) string {
	t.Helper()
	o := operations.New(options)
	p, err := page.New(&page.Options{Sections: o.Sections(), Actions: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	})
	return func(path string) string {
		t.Helper()
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if reply.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, reply.Code, reply.Body)
		}
		return reply.Body.String()
	}
}

// With thousands of ranges and keys, views stay short and exact, and memory stays bounded.
func TestViewsOfManyRangesAndKeysAreShortAndExact(t *testing.T) {
	const ranges, keys = 4000, 20000
	get := serve(t, crowd(ranges, keys))
	// A view waits only 1.5 s for the first read, which a busy machine may exceed.
	for path, want := range map[string]string{"/parked": "20,000", "/ranges": "4,000"} {
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && !strings.Contains(get(path), want); {
			t.Log(path, "has no data yet")
		}
	}
	for path, wants := range map[string][]string{
		"/":                            {"20,000", "60,000 events", "4,000 of 4,000 owned, by 20 relays", "8,000"},
		"/ranges":                      {"1 to 50 of 4,000", "4,000 healthy"},
		"/ranges?page=80":              {"3,951 to 4,000 of 4,000"},
		"/ranges?find=relay-7":         {"1 to 50 of 200"},
		"/ranges?show=stopped":         {"No range matches"},
		"/parked":                      {"1 to 50 of 20,000", "10,000", "30,000"},
		"/parked?page=400":             {"19,951 to 20,000 of 20,000"},
		"/parked?reason=too_large":     {"1 to 50 of 10,000"},
		"/parked?find=key-0001":        {"1 to 10 of 10"},
		"/members?page=9999":           {"3,951 to 4,000 of 4,000", "relay-19"},
		"/parked/retry-all?reason=all": {"No key is parked for this reason"},
	} {
		began := time.Now()
		body := get(path)
		t.Logf("%s: %d bytes in %s", path, len(body), time.Since(began))
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing", path, want)
			}
		}
		if len(body) > 200<<10 {
			t.Errorf("%s: %d bytes", path, len(body))
		}
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	t.Logf("heap: %d MB", memory.HeapAlloc>>20)
	if memory.HeapAlloc > 200<<20 {
		t.Errorf("the heap has %d MB", memory.HeapAlloc>>20)
	}
}

// A relay that owns no range is known by its host record only.
func TestMembersWithoutARangeAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(1, 0)
		now := time.Now()
		port.hosts = []changefeed.Host{
			{Name: "relay-0", Timestamp: now, Draining: true, Expiry: time.Minute},
			{Name: "new", Timestamp: now, Expiry: time.Minute},
			{Name: "extra", Timestamp: now, Spare: true, Expiry: time.Minute},
			{Name: "killed", Timestamp: now.Add(-time.Hour), Expiry: time.Minute},
		}
		body := serve(t, port)("/members")
		for name, want := range map[string]string{"relay-0": "draining", "new": "waiting for ranges", "extra": "spare: no range left for it", "killed": "gone"} {
			row := regexp.MustCompile(`(?s)<tr id="m-` + name + `">.*?</tr>`).FindString(body)
			if !strings.Contains(row, ">"+want+"<") {
				t.Errorf("%s is not %s: %q", name, want, row)
			}
		}
	})
}

// The number of reads does not depend on the number of tabs. Without tabs there are none.
func TestTabsShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(4, 2)
		o := operations.New(operations.Options{Port: port})
		p, err := page.New(&page.Options{Sections: o.Sections()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		time.Sleep(time.Hour)
		if n := port.reads.Load() + port.parked.Load(); n != 0 {
			t.Errorf("%d reads before the first tab was opened", n)
		}
		tabs, closeTabs := context.WithCancel(t.Context())
		const open = 100
		closed := make(chan bool, open)
		for range open {
			go func() {
				r := httptest.NewRequestWithContext(tabs, http.MethodGet, "http://localhost/parked", nil)
				r.Header.Set("Accept", "text/event-stream")
				p.ServeHTTP(httptest.NewRecorder(), r)
				closed <- true
			}()
		}
		time.Sleep(20 * time.Second)
		if n := port.reads.Load(); n < 9 || n > 13 {
			t.Errorf("leases were read %d times in 20 s, want some 10", n)
		}
		if n := port.parked.Load(); n < 6 || n > 9 {
			t.Errorf("parked keys were read %d times in 20 s, want some 7", n)
		}
		closeTabs()
		for range open {
			<-closed
		}
		time.Sleep(15 * time.Second) // a request keeps the reads going for 10 s
		before := port.reads.Load() + port.parked.Load()
		time.Sleep(time.Hour)
		if n := port.reads.Load() + port.parked.Load(); n != before {
			t.Errorf("%d reads after the last tab was closed", n-before)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	})
}

// green finds what says that all is well.
var green = regexp.MustCompile(`class="(state|cell) good"|every key flows|Every key flows|No consumer has parked|no backlog|No relay yet|no relay has started|0 of 0|>0 <span class="unit">(transactions|keys)|>0 ms<`)

// What was never read, or is not read now, is shown as unknown with the age of the last known
// value, never as zero, empty or well.
func TestPageIsNeverGreenOnAnError(t *testing.T) {
	paths := []string{"/", "/ranges", "/ranges/none", "/parked", "/members", "/life/key-1", "/doctor"}
	synctest.Test(t, func(t *testing.T) {
		port := crowd(2, 0)
		name := changefeed.LeaseName(port.leases[0].ID)
		paths[2] = "/ranges/" + name
		port.outage.Store(true)
		get := serve(t, port)
		for _, path := range paths {
			if path == "/ranges/"+name || path == "/life/key-1" || path == "/doctor" {
				continue // the range is not known, and the others do not show what the Reader reads
			}
			if body := get(path); green.MatchString(body) || !strings.Contains(body, errOutage.Error()) {
				t.Errorf("%s, never read: %q in\n%s", path, green.FindString(body), body)
			}
		}
		port.outage.Store(false)
		time.Sleep(3 * time.Second) // the next reads
		for _, path := range paths {
			if body := get(path); !green.MatchString(body) || path != "/doctor" && strings.Contains(body, "as of") {
				t.Errorf("%s while all is well: %s", path, body)
			}
		}
		port.outage.Store(true)
		for end := time.Now().Add(16 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			get("/")
		}
		for _, path := range paths {
			if path == "/doctor" {
				time.Sleep(time.Minute) // its findings are current for a minute
			}
			body := get(path)
			if green.MatchString(body) {
				t.Errorf("%s during the outage: %q in\n%s", path, green.FindString(body), body)
			}
			if path != "/life/key-1" && path != "/doctor" && !regexp.MustCompile(`as of 1\d s ago`).MatchString(body) {
				t.Errorf("%s has no age of the last known value:\n%s", path, body)
			}
		}
	})
}

// The first view after a pause waits for a read, so that a relay that died in between is not shown
// as it was.
func TestFirstViewAfterAPauseShowsTheStateOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(2, 0)
		get := serve(t, port)
		get("/ranges")
		time.Sleep(16 * time.Second)
		synctest.Wait()
		for i := range port.leases {
			port.leases[i].Health = changefeed.Stopped
		}
		if body := get("/ranges"); green.MatchString(body) || !strings.Contains(body, "2 stopped") {
			t.Errorf("16 s later: %s", body)
		}
		time.Sleep(16 * time.Second)
		port.outage.Store(true)
		if body := get("/members"); green.MatchString(body) {
			t.Errorf("during an outage: %s", body)
		}
	})
}

func TestConditionOfOneRangeIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(3, 0)
		port.leases[1].Health = changefeed.Stopped
		get := serve(t, port)
		get("/ranges") // waits for the first read
		if body := get("/"); !strings.Contains(body, ">1 stopped<") || !strings.Contains(body, ">2 healthy<") {
			t.Errorf("conditions are missing in\n%s", body)
		}
	})
}

// A range without an owner counts among the ranges, and not among the owned ones.
func TestOwnedRangesAndTheirOwnersAreCounted(t *testing.T) {
	for want, owners := range map[string][]string{
		"2 of 3 owned, by 2 relays": {"a", "", "b"}, "2 of 3 owned, by 1 relay": {"a", "a", ""}, "0 of 3 owned, by 0 relays": {"", "", ""}, "3 of 3 owned, by 2 relays": {"a", "b", "a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			port := crowd(3, 0)
			for i, owner := range owners {
				port.leases[i].Owner, port.leases[i].State = owner, changefeed.LeaseLive
			}
			if body := serve(t, port)("/"); !strings.Contains(body, "<dt>Ranges</dt><dd>"+want+"</dd>") {
				t.Errorf("%q: %q is missing in\n%s", owners, want, body)
			}
		})
	}
}

// receipts are those of the key k.
type receipts map[string]operations.Receipt

func (r receipts) OfKey(key string) map[string]operations.Receipt {
	if key != "k" {
		return nil
	}
	return r
}

// The consumer of this process proves that it received an event before a checkpoint does.
func TestTimelineShowsTheReceiptsOfTheConsumer(t *testing.T) {
	at := time.Date(2026, 1, 31, 8, 0, 3, 0, time.UTC)
	port := crowd(1, 0)
	for _, id := range []string{"e1", "e2"} {
		port.entries = append(port.entries, operator.Entry{Message: relay.Message{ID: id, CreatedAt: "2026-01-31T08:00:03.100Z"}, CommittedAt: at, Status: operator.StatusWaiting})
	}
	get := serveWith(t, operations.Options{Port: port, Receipts: receipts{"e1": {Accepted: at.Add(250 * time.Millisecond), Received: at.Add(400 * time.Millisecond)}}})
	const received, waiting = `<span class="state good">received</span><span class="soft">300 ms from creation to reception</span>`, `<span class="state busy">waiting</span>`
	for path, wants := range map[string][2][]string{
		"/life/k":     {{received, "<dt>accepted</dt><dd>2026-01-31 08:00:03.250Z</dd>", "<dt>received</dt><dd>2026-01-31 08:00:03.400Z</dd>"}, {waiting}},
		"/life/other": {{waiting}, {waiting}},
	} {
		body := get(path)
		for i, want := range wants {
			entry := regexp.MustCompile(fmt.Sprintf(`(?s)<li id="e-e%d".*?</details></li>`, i+1)).FindString(body)
			for _, part := range want {
				if !strings.Contains(entry, part) {
					t.Errorf("%s, event %d: %q is missing in\n%s", path, i+1, part, entry)
				}
			}
			if waits := want[0] == waiting; waits == strings.Contains(entry, "<dt>received</dt>") || waits == strings.Contains(entry, "<dt>accepted</dt>") {
				t.Errorf("%s, event %d has other receipts than its own:\n%s", path, i+1, entry)
			}
		}
	}
}

// A key without stored events has no state.
func TestUnknownKeyDoesNotFlow(t *testing.T) {
	port := crowd(1, 0)
	port.entries = []operator.Entry{}
	if body := serve(t, port)("/life/nope"); green.MatchString(body) || !strings.Contains(body, "No event of this key is stored") {
		t.Errorf("%q in\n%s", green.FindString(body), body)
	}
}

// Browsers remove the segments "." and ".." of a path, so these keys are in the query.
func TestKeysOfDotsHaveAnAddress(t *testing.T) {
	port := crowd(1, 1)
	e := operator.ListedEvent{}
	e.Key = ".."
	port.listed, port.gates[0].Key = operator.EventPage{Events: []operator.ListedEvent{e}}, "."
	get := serve(t, port)
	for path, want := range map[string]string{
		"/events": `href="/life?key=.."`, "/life?key=..": `<h1><span class="mono">..</span></h1>`, "/parked": `href="/parked/keys?key=."`, "/parked/keys?key=.": `href="/life?key=."`,
	} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %q is missing in\n%s", path, want, body)
		}
	}
	if key, err := page.KeyOf(httptest.NewRequest(http.MethodGet, "/life", nil)); err == nil {
		t.Errorf("an address without a key has the key %q", key)
	}
}

// The view of a key lists its events in order, and marks the refused one.
func TestParkedKeyListsEventsInOrder(t *testing.T) {
	port := crowd(1, 2)
	port.line = []relay.ParkedEvent{
		{ID: "e1", Sequence: 7, Reason: "too_large", Error: "bigger than the broker takes", Attempts: 5, Document: []byte(`{"a":"<script>"}`)},
		{ID: "e2", Sequence: 8, Action: "Renamed", Reason: "held"},
		{ID: "e3", Sequence: 9, Reason: "held"},
	}
	port.gates[1].Arrivals = 1
	body := serve(t, port)("/parked/keys/key-00001")
	last := 0
	for _, want := range []string{"3 events wait", "Retry in order", `done">1–6</span>`, "bigger than the broker takes", "&lt;script&gt;", "Skip it", "Renamed", "failed retries", "<dd>1 event</dd>"} {
		at := strings.Index(body[last:], want)
		if at < 0 {
			t.Fatalf("%q is missing or out of order", want)
		}
		last += at
	}
}

// The address sets how many events of a key are shown, within bounds, and each page offers five times as many.
func TestParkedKeyShowsAsManyEventsAsItsAddressSays(t *testing.T) {
	port := crowd(1, 1)
	for n := range 600 {
		port.line = append(port.line, relay.ParkedEvent{ID: fmt.Sprint(n), Sequence: int64(n + 1), Reason: "held"})
	}
	port.gates[0].Events = 600
	get := serve(t, port)
	for limit, want := range map[string][2]int{"": {20, 100}, "5": {5, 25}, "100": {100, 500}, "499": {499, 500}, "500": {500, 0}, "501": {20, 100}, "0": {20, 100}, "-1": {20, 100}, "all": {20, 100}} {
		body := get("/parked/keys/key-00000?events=" + limit)
		more := regexp.MustCompile(`and (\d+) more are waiting(?: <a class="button" href="/parked/keys/key-00000\?events=(\d+)">Show more</a>)?</p>`).FindStringSubmatch(body)
		next := 0
		if len(more) > 2 && more[2] != "" {
			next, _ = strconv.Atoi(more[2])
		}
		if shown := strings.Count(body, `<li id="e-`); shown != want[0] || next != want[1] || more == nil || more[1] != strconv.Itoa(600-want[0]) {
			t.Errorf("events=%s: %d shown, %q, want %d shown and then %d", limit, shown, more, want[0], want[1])
		}
	}
}

// A range shows the commands that its owner has not carried out.
func TestRangeShowsThePendingCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := crowd(1, 0)
		get := serve(t, port)
		for _, c := range []struct {
			request changefeed.Request
			want    []string
		}{
			{changefeed.Request{}, nil},
			{changefeed.Request{Paused: true, Release: true, Retry: true, History: "h"}, []string{"pause", "release", "retry", "restart"}},
			{changefeed.Request{Rewind: &changefeed.RangeToken{}}, []string{"rewind"}},
			{changefeed.Request{Release: true}, []string{"release"}},
		} {
			time.Sleep(20 * time.Second) // after which a view waits for a read
			synctest.Wait()
			port.leases[0].Request = c.request
			for _, path := range []string{"/ranges", "/ranges/" + changefeed.LeaseName(port.leases[0].ID)} {
				var got []string
				for _, m := range regexp.MustCompile(`<span class="state busy">(\w+) requested</span>`).FindAllStringSubmatch(get(path), -1) {
					got = append(got, m[1])
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s with %+v: pending %q, want %q", path, c.request, got, c.want)
				}
			}
		}
	})
}

// A trace has a link. An id that another program has stored cannot change where the link leads.
func TestTimelineLinksToTheTrace(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	port := crowd(1, 0)
	for _, traceparent := range []string{"00-" + id + "-b7ad6b7169203331-01", "00-../?x-1-01", ""} {
		port.entries = append(port.entries, operator.Entry{Message: relay.Message{ID: "e", Action: "Renamed", Traceparent: traceparent}})
	}
	body := serve(t, port)("/life/k")
	for _, want := range []string{`href="http://tempo/trace/` + id + `?from=1h">` + id, `href="http://tempo/trace/..%2F%3Fx?from=1h"`} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%q is missing from %s", want, body)
		}
	}
	if n := strings.Count(body, "tempo"); n != 2 {
		t.Errorf("%d links", n)
	}
}

// The list escapes what a writer has stored, and its links keep the filter.
func TestListOfEventsKeepsItsFilter(t *testing.T) {
	port := crowd(1, 0)
	e := operator.ListedEvent{Status: operator.StatusUnknown}
	e.ID, e.Key, e.Action, e.StoredAt, e.Trouble = "<b>", "a/b?c", "<script>", time.Date(2026, 11, 27, 16, 58, 0, 0, time.UTC), "no <id>"
	port.listed = operator.EventPage{Events: []operator.ListedEvent{e}, Continuation: "a+b", Examined: 1234, Back: e.StoredAt}
	get := serve(t, port)
	body := get("/events?key=a%2Fb&action=%3Cscript%3E&state=sent&from=2h&until=2026-11-27+16:58")
	for _, want := range []string{
		`href="/life/a%2Fb%3Fc"`, `not known yet`, `&lt;script&gt;<br><span class="mono small soft">&lt;b&gt;</span>`, `no &lt;id&gt;`, "1,234 events examined, back to 2026-11-27 16:58:00Z", `<option selected>sent</option>`,
		`href="/events?action=%3Cscript%3E&amp;after=a%2Bb&amp;from=2h&amp;key=a%2Fb&amp;state=sent&amp;until=2026-11-27&#43;16%3A58" rel="next"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing from %s", want, body)
		}
	}
	f := port.filter
	if f.Key != "a/b" || f.State != operator.StatusSent || !f.Until.Equal(e.StoredAt) || time.Since(f.From).Round(time.Hour) != 2*time.Hour {
		t.Errorf("filter %+v", f)
	}
	get("/events?after=a%2Bb")
	if port.filter.Continuation != "a+b" {
		t.Errorf("filter %+v", port.filter)
	}
}

func TestDeadEventLeadsToItsLetter(t *testing.T) {
	port := crowd(1, 0)
	port.listed = operator.EventPage{Events: []operator.ListedEvent{{Status: operator.StatusDead, Consumer: "a&b", Letter: "4/2"}}, Omitted: []string{"a&b"}, Cut: []string{"k&1"}}
	body := serve(t, port)("/events?state=dead")
	for _, want := range []string{`href="/dead/letters/4%2F2?consumer=a%26b"`, `<td class="fit">–</td>`, "Consumer a&amp;b has more dead letters", "k&amp;1</a> has more parked events"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing from %s", want, body)
		}
	}
}

// A filter that cannot be used keeps the form. None is read as an empty list.
func TestListOfEventsRefusesHostileFilters(t *testing.T) {
	port := crowd(1, 0)
	get := serve(t, port)
	for _, text := range []string{"x", "-1h", "9999-01-01", "0001-01-01", "2000000h", "1e3", "<script>", "%00", "2026-11-27T10:00:00Z'"} {
		if body := get("/events?from=" + url.QueryEscape(text)); !strings.Contains(body, "A time is an age") || strings.Contains(body, "No event") || strings.Contains(body, "<script>alert") {
			t.Errorf("%q: %s", text, body)
		}
	}
	port.listErr = fault.New(fault.Invalid, "", "there is no state")
	if body := get("/events?state=all"); !strings.Contains(body, "there is no state") || strings.Contains(body, "No event") {
		t.Error(body)
	}
}

// scoped grants the scopes in a header.
type scoped struct{ auth.Open }

func (scoped) Authenticate(_ context.Context, r *http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "ann", Scopes: r.Header["Scopes"]}, nil
}

func TestListOfEventsNeedsTheRightToRead(t *testing.T) {
	port := crowd(1, 0)
	port.listed.Events = make([]operator.ListedEvent, 1)
	port.listed.Events[0].Key = "secret"
	p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: port}).Sections(), Auth: scoped{}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for scope, want := range map[string]int{"contacts.read": http.StatusForbidden, "operations.read": http.StatusOK} {
		for _, path := range []string{"/events", "/events?key=secret"} {
			port.filter = operator.EventFilter{}
			r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
			r.Header["Scopes"] = []string{scope}
			reply := httptest.NewRecorder()
			p.ServeHTTP(reply, r)
			if read := port.filter.Limit > 0; reply.Code != want || read != (want == http.StatusOK) || strings.Contains(reply.Body.String(), "secret") && !read {
				t.Errorf("%s with %s: %d, read: %v", path, scope, reply.Code, read)
			}
		}
	}
}

// act opens the preview of an act, confirms it after a pause, and returns the page of its result
// when that contains want, or after a minute.
func act(t *testing.T, port operations.Port, path string, pause time.Duration, want string) (body string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
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
		preview := request(httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		time.Sleep(pause)
		confirmed := request(confirmation(path, preview.Body.String()))
		if confirmed.Code != http.StatusSeeOther {
			t.Fatalf("%d %s", confirmed.Code, confirmed.Body)
		}
		for range 60 {
			if body = request(httptest.NewRequest(http.MethodGet, "http://localhost"+confirmed.Header().Get("Location"), nil)).Body.String(); strings.Contains(body, want) {
				return
			}
			time.Sleep(time.Second)
		}
	})
	return body
}

// confirmation returns the request that confirms the preview of an act. Its areas have the texts in the query of path.
func confirmation(path, preview string) *http.Request {
	form := url.Values{"why": {"because"}, "who": {"me"}}
	for _, field := range regexp.MustCompile(`name="(\w+)" value="([^"]+)"`).FindAllStringSubmatch(preview, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	if typed := regexp.MustCompile(`Type <b>([^<]+)</b>`).FindStringSubmatch(preview); typed != nil {
		form.Set("typed", typed[1])
	}
	address, query, _ := strings.Cut(path, "?")
	q, _ := url.ParseQuery(query)
	for _, area := range []string{"body", "document"} {
		if q.Has(area) {
			form.Set(area, q.Get(area))
		}
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+address, strings.NewReader(form.Encode()))
	for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"} {
		r.Header.Set(name, value)
	}
	return r
}

// The time of a rewind is that of its preview, however long the operator reads it.
func TestRewindUsesTheTimeOfItsPreview(t *testing.T) {
	port := &acting{fake: crowd(1, 1)}
	body := act(t, port, "/ranges/replay?lease=all&ago=10m", 5*time.Minute, "ranges rewind")
	if len(port.rewound) != 1 || !port.rewound[0].Equal(port.planned[0]) {
		t.Errorf("the preview has %v, the rewind %v:\n%s", port.planned, port.rewound, body)
	}
}

// A rewind to the present or to the future would send nothing, and would look as if it had.
func TestRewindNeedsATimeInThePast(t *testing.T) {
	p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: &acting{fake: crowd(1, 1)}}).Sections(), Actions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, ago := range []string{"0s", "-10m", "soon", ""} {
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost/ranges/replay?lease=all&ago="+url.QueryEscape(ago), nil))
		if reply.Code != http.StatusBadRequest || !strings.Contains(reply.Body.String(), "is not a duration") {
			t.Errorf("%q: %d\n%s", ago, reply.Code, reply.Body)
		}
	}
}

// The parked keys of consumers are shown by consumer, and acts on them go to that consumer.
func TestParkedKeysOfConsumersAreShown(t *testing.T) {
	of := crowd(0, 3)
	for i := range of.gates {
		of.gates[i].Closing.At = of.gates[i].Closing.At.Add(time.Duration(i-120) * time.Minute) // the first is the oldest
	}
	billing := &acting{fake: of}
	port := crowd(1, 0)
	port.consumers, port.consumer = []operator.ConsumerKeys{{Consumer: "billing", Gates: of.gates}}, of
	of.line = []relay.ParkedEvent{{ID: "e1", Key: "key-00001", Sequence: 4, Attempts: 1, Reason: "too_large", Document: []byte(`{"id":"e1"}`)}}
	get := serve(t, port)
	for path, wants := range map[string][]string{
		"/":                        {"3 keys are parked by consumers; all others flow.", "3 by consumers"},
		"/parked":                  {`<a href="/parked?consumer=billing">billing</a></td><td class="n">3</td><td class="n">9</td><td class="n">2 h</td>`, "too_large (2), invalid_event (1)", "No key is parked by a relay."},
		"/parked?consumer=billing": {"Parked by billing", "1 to 3 of 3", `href="/parked/keys/key-00001?consumer=billing"`, `href="/parked/retry-all?consumer=billing&amp;reason=too_large"`},
		"/parked?consumer=billing&reason=invalid_event":           {"1 to 1 of 1"},
		"/parked/keys/key-00001?consumer=billing":                 {"by billing", `href="/parked/retry?consumer=billing&amp;key=key-00001"`, `href="/parked/skip?consumer=billing&amp;event=e1&amp;key=key-00001"`, ">handled<"},
		"/parked/retry?consumer=billing&key=key-00001":            {"Consumer billing handles the 3 waiting events"},
		"/parked/retry-all?consumer=billing&reason=invalid_event": {"1 keys with 3 events. Consumer billing handles them"},
	} {
		body := get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing in\n%s", path, want, body)
			}
		}
		if strings.Contains(path, "consumer=") && strings.Contains(body, "currently stored") {
			t.Errorf("%s offers the events of the store", path)
		}
	}
	port.consumer = billing
	const want = "were handled in order"
	for _, path := range []string{"/parked/retry?consumer=billing&key=k", "/parked/skip?consumer=billing&key=k&event=e1"} {
		billing.after = []relay.Gate{{Key: "k", Events: 2, Attempts: 2}, {Key: "k", Events: 2, Attempts: 2}}
		if body := act(t, port, path, 0, want); !strings.Contains(body, want) {
			t.Errorf("%s: %q is missing in\n%s", path, want, body)
		}
	}
}

// If only the read of consumers fails, their keys are not known, and those of the relay are.
func TestUnknownKeysOfConsumersAreNotShownAsNone(t *testing.T) {
	port := crowd(1, 0)
	port.consumersErr = errors.New("permission denied for table consumer_gates")
	body := serve(t, port)("/parked")
	for _, want := range []string{"Every key flows", "Not known: permission denied for table consumer_gates", "The parked keys of consumers are not known yet."} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if strings.Contains(body, "No consumer has parked") {
		t.Errorf("unknown keys are shown as none:\n%s", body)
	}
}

// drained is a port whose key was sent, or moved on, after the event was found first.
type drained struct {
	*acting
	line []relay.ParkedEvent
}

func (d drained) ParkedKey(context.Context, string, int) (operator.ParkedKey, error) {
	return operator.ParkedKey{Gate: relay.Gate{Key: "k", Version: "2"}, Line: d.line}, nil
}

// parkedAs is a port whose key k is parked with a version of its gate.
type parkedAs struct {
	*acting
	version string
}

func (p parkedAs) ParkedKey(context.Context, string, int) (operator.ParkedKey, error) {
	return operator.ParkedKey{Gate: relay.Gate{Key: "k", Version: p.version, Events: 1}, Line: []relay.ParkedEvent{{ID: "e1"}}}, nil
}

// Another person may have acted on the key since the preview was read.
func TestPreviewOfASkipBelongsToAVersionOfItsGate(t *testing.T) {
	stamps := map[string]bool{}
	for _, version := range []string{"1", "2", "2"} {
		stamps[stampOf(t, serve(t, parkedAs{&acting{fake: crowd(1, 1)}, version})("/parked/skip?key=k&event=e1"))] = true
	}
	if len(stamps) != 2 {
		t.Errorf("stamps of two versions: %v", stamps)
	}
}

// The preview of a skip shows no other event than the one that is skipped.
func TestSkipOfAnEventThatHasJustLeftIsRefused(t *testing.T) {
	for _, line := range [][]relay.ParkedEvent{nil, {{ID: "e2"}}} {
		p, err := page.New(&page.Options{Sections: operations.New(operations.Options{Port: drained{&acting{fake: crowd(1, 1)}, line}}).Sections(), Actions: true})
		if err != nil {
			t.Fatal(err)
		}
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "http://localhost/parked/skip?key=k&event=e1", nil))
		if reply.Code != http.StatusConflict || refused(reply.Body.String()) != "The event has left; Event e1 is not the first in line of key k any more.; See the key." {
			t.Errorf("line %v: %d %s", line, reply.Code, reply.Body)
		}
		p.Close()
	}
}

// A skip that is done may leave later events for a while. Another attempt that failed is reported.
func TestSkipIsFollowedToItsEnd(t *testing.T) {
	for want, after := range map[string][]relay.Gate{
		"the key flows again": {{Events: 2, Attempts: 2}, {Events: 1, Attempts: 2}},
		"stays parked":        {{Events: 2, Attempts: 2}, {Events: 2, Attempts: 3, Error: "too large"}},
	} {
		if body := act(t, &acting{fake: crowd(1, 1), after: after}, "/parked/skip?key=k&event=e1", 0, want); !strings.Contains(body, want) {
			t.Errorf("%q is missing:\n%s", want, body)
		}
	}
}
