package operations

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

func TestHistoryBridgesShortGapsOnly(t *testing.T) {
	h := newHistory()
	at := time.Unix(1_800_000_000, 0)
	note := func(v float64) { h.add(at, [seriesCount]float64{seriesCommitted: v}) }
	note(1)
	at = at.Add(3 * pointEvery)
	note(4) // the points between get the later measurement
	at = at.Add(20 * pointEvery)
	note(9) // after a gap
	curve := h.curve(seriesCommitted, at)
	last := func(ago int) float64 { return curve[len(curve)-1-ago] }
	if last(0) != 9 || !math.IsNaN(last(10)) || last(20) != 4 || last(21) != 4 || last(23) != 1 || !math.IsNaN(last(24)) {
		t.Errorf("%v", curve)
	}
	if later := h.curve(seriesCommitted, at.Add(time.Hour)); !math.IsNaN(later[points-1]) || !math.IsNaN(later[0]) {
		t.Errorf("after an hour: %v", later)
	}
}

func TestMovesAreChangesOfOwnership(t *testing.T) {
	lease := func(id, owner string, epoch int64) operator.Range {
		return operator.Range{Lease: changefeed.Lease{ID: id, Owner: owner, Epoch: epoch}}
	}
	before := []operator.Range{lease("a", "x", 1), lease("b", "x", 1)}
	after := []operator.Range{lease("a", "y", 2), lease("b", "x", 1), lease("c", "y", 1)}
	found := moves(nil, before, after, time.Unix(1, 0))
	if len(found) != 2 || found[0].From != "x" || found[0].To != "y" || !strings.Contains(found[1].From, "new") {
		t.Errorf("%+v", found)
	}
	if len(moves(found, nil, after, time.Unix(2, 0))) != 2 {
		t.Error("the first read reported takeovers")
	}
}

const metricsText = `# TYPE messaging_client_sent_messages_total counter
messaging_client_sent_messages_total{messaging_system="servicebus"} 40
# TYPE http_server_request_duration_seconds histogram
http_server_request_duration_seconds_bucket{http_request_method="POST",http_response_status_code="201",le="+Inf"} 5
http_server_request_duration_seconds_sum{http_request_method="POST",http_response_status_code="201"} 1
http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="201"} 5
http_server_request_duration_seconds_bucket{http_request_method="GET",http_response_status_code="200",le="+Inf"} 9
http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200"} 9
# TYPE outbox_lag gauge
outbox_lag{lease="4b4a4b00"} 3
outbox_lag{lease="b7581d7f"} 4
# TYPE outbox_oldest_unpublished_seconds gauge
outbox_oldest_unpublished_seconds{lease="4b4a4b00"} 60
# TYPE outbox_dependency_up gauge
outbox_dependency_up{dependency="cosmos"} 1
outbox_dependency_up{dependency="serviceBus"} 0
# TYPE outbox_consumer_handled_total counter
outbox_consumer_handled_total{messaging_system="servicebus"} 30
# TYPE outbox_consumer_failed_total counter
outbox_consumer_failed_total{messaging_system="servicebus"} 2
`

func TestScrapeSumsUpProcesses(t *testing.T) {
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(metricsText))
	}))
	defer relays.Close()
	found, err := scrape(t.Context(), relays.Client(), []string{relays.URL + "/a", relays.URL + "/away", relays.URL + "/b"}, "")
	if err == nil || !strings.Contains(err.Error(), "/away: status 503") {
		t.Errorf("unavailable process: %v", err)
	}
	behind := found.behind()
	if found.answered != 2 || found.accepted != 80 || found.changes != 10 || !found.hasAPI || behind != (totalLag{7, time.Minute, true}) {
		t.Errorf("%+v, behind %+v", found, behind)
	}
	if found.consumed != (consumed{known: true, handled: 60, failed: 4}) {
		t.Errorf("consumers: %+v", found.consumed)
	}
	if !found.up["cosmos"] || found.up["serviceBus"] || len(found.up) != 2 {
		t.Errorf("dependencies: %v", found.up)
	}
}

// A process that does not reach the store is not hidden by one that does.
func TestDependencyIsDownIfAnyProcessReportsIt(t *testing.T) {
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := map[string]int{"/a": 1, "/b": 0}[r.URL.Path]
		_, _ = fmt.Fprintf(w, "# TYPE outbox_dependency_up gauge\noutbox_dependency_up{dependency=\"cosmos\"} %d\noutbox_dependency_up{dependency=\"serviceBus\"} 1\n", up)
	}))
	defer relays.Close()
	for _, order := range [][]string{{"/a", "/b"}, {"/b", "/a"}} {
		found, err := scrape(t.Context(), relays.Client(), []string{relays.URL + order[0], relays.URL + order[1]}, "")
		if err != nil || found.up["cosmos"] || !found.up["serviceBus"] {
			t.Errorf("%v: %v, %v; want the store down", order, found.up, err)
		}
	}
}

// The counters of one process say nothing about those of another, and the lag of one not the lag of all.
func TestFiguresOfSomeProcessesAreNotThoseOfAll(t *testing.T) {
	var away atomic.Value
	away.Store("/b")
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		n := map[string]int{"/a": 10, "/b": 1000}[r.URL.Path]
		_, _ = fmt.Fprintf(w, "# TYPE messaging_client_sent_messages_total counter\nmessaging_client_sent_messages_total %d\n# TYPE outbox_lag gauge\noutbox_lag{lease=%q} %d\n", n, r.URL.Path, n)
	}))
	defer relays.Close()
	o := New(Options{Metrics: []string{relays.URL + "/a", relays.URL + "/b"}, Client: relays.Client()})
	read := func(now string) [seriesCount]float64 {
		away.Store(now)
		o.reader.readMetrics(t.Context())
		return o.reader.overview.rates
	}
	for _, now := range []string{"/b", "/a"} {
		if rates := read(now); !math.IsNaN(rates[seriesAccepted]) || !math.IsNaN(rates[seriesBehind]) {
			t.Errorf("without %s: %v events/s, %v behind, want unknown ones", now, rates[seriesAccepted], rates[seriesBehind])
		}
	}
	read("")
	if rates := read(""); rates[seriesAccepted] != 0 || rates[seriesBehind] != 1010 {
		t.Errorf("with both: %v", rates)
	}
}

// Ranges of several containers have the same names. A page is of one container.
func TestLagOfAnotherContainerIsNotShown(t *testing.T) {
	lease := changefeed.Lease{ID: "p..-FF", State: changefeed.LeaseLive}
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		name := changefeed.LeaseName(lease.ID)
		_, _ = fmt.Fprintf(w, "# TYPE outbox_lag gauge\noutbox_lag{lease=%q,container=\"data\"} 1\noutbox_lag{lease=%q,container=\"orders\"} 9\n", name, name)
		_, _ = fmt.Fprintf(w, "# TYPE outbox_lag_unknown gauge\noutbox_lag_unknown{lease=\"ffffffff\",container=\"orders\",reason=\"failed\"} 1\n")
	}))
	defer relays.Close()
	o := New(Options{Metrics: []string{relays.URL}, Client: relays.Client(), Container: "data"})
	o.reader.readMetrics(t.Context())
	lags, _, err := o.reader.lags(t.Context(), []changefeed.Lease{lease})
	if got := lags[lease.ID].Transactions; err != nil || got != 1 {
		t.Errorf("lag %d, %v; want that of the container data", got, err)
	}
	if len(o.reader.overview.metrics.unknown) > 0 {
		t.Error("the lag of another container is unknown")
	}
}

// Readers of the page must not see the credentials of the metrics.
func TestFailedMetricsAreNamedWithoutTheirCredentials(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	address := strings.Replace(closed.URL, "://", "://hunter2:hunter2@", 1) + "/metrics?token=hunter2"
	_, err := scrape(t.Context(), closed.Client(), []string{address}, "")
	if err == nil || !strings.Contains(err.Error(), "metrics of 127.0.0.1:") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if _, err = scrape(t.Context(), closed.Client(), []string{"http://hunter2:%zz@relay/metrics"}, ""); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed address: %v", err)
	}
}

// The metrics of the relays contain what the store holds back.
func TestHeldRangeIsShownFromMetrics(t *testing.T) {
	lease := changefeed.Lease{ID: "p..-FF", State: changefeed.LeaseLive, Owner: "a"}
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]int{"outbox_lag": 3, "outbox_lag_withheld": 2, "outbox_oldest_unpublished_seconds": 60, "outbox_range_read_age_seconds": 5} {
			_, _ = fmt.Fprintf(w, "# TYPE %s gauge\n%s{lease=%q} %d\n", name, name, changefeed.LeaseName(lease.ID), value)
		}
	}))
	defer relays.Close()
	r := newReader(nil, []string{relays.URL}, relays.Client())
	r.readMetrics(t.Context())
	lags, _, err := r.lags(t.Context(), []changefeed.Lease{lease})
	if c, lasted := (operator.Range{Lease: lease, Lag: lags[lease.ID]}).Condition(time.Now()); err != nil || c != operator.Held || lasted != time.Minute {
		t.Errorf("%s for %s, %v; want held for a minute", c, lasted, err)
	}
	if read := r.overview.metrics.at.Add(-5 * time.Second); !lags[lease.ID].Read.Equal(read) {
		t.Errorf("the lag is that of %s, want that of the last read, %s", lags[lease.ID].Read, read)
	}
	// After the relays have stopped, their last metrics are not the lag of now.
	r.port = measured{lag: changefeed.RangeLag{Lease: lease, Transactions: 1336, Known: true}}
	r.overview.metrics.at = time.Now().Add(-time.Minute)
	lags, at, err := r.lags(t.Context(), []changefeed.Lease{lease})
	if got := lags[lease.ID]; err != nil || got.Transactions != 1336 || time.Since(at) > 30*time.Second {
		t.Errorf("lag %+v of %s, %v; want that of the feed", got, at, err)
	}
}

// A relay reports the last lag that it knew, growing older, also while it does not know the lag of the range.
func TestLastKnownLagOfARelayIsNotTheLagOfNow(t *testing.T) {
	lease := changefeed.Lease{ID: "p..-FF", State: changefeed.LeaseLive, Owner: "a"}
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		name := changefeed.LeaseName(lease.ID)
		_, _ = fmt.Fprintf(w, "# TYPE outbox_lag gauge\noutbox_lag{lease=%q} 3\n# TYPE outbox_lag_unknown gauge\noutbox_lag_unknown{lease=%q,reason=\"unread\"} 1\n", name, name)
	}))
	defer relays.Close()
	r := newReader(measured{lag: changefeed.RangeLag{Lease: lease}}, []string{relays.URL}, relays.Client())
	r.readMetrics(t.Context())
	lags, _, err := r.lags(t.Context(), []changefeed.Lease{lease})
	if got := lags[lease.ID]; err != nil || got.Known || got.Transactions != 0 {
		t.Errorf("lag %+v, %v; want that of the feed, which is unknown", got, err)
	}
}

// measured is a Watcher that measures a lag on the feed.
type measured struct {
	Watcher
	lag changefeed.RangeLag
}

func (m measured) Lag(context.Context) ([]changefeed.RangeLag, error) {
	return []changefeed.RangeLag{m.lag}, nil
}

// The counters of a process that did not answer before are no rate.
func TestProcessThatAnswersAgainIsNoPeak(t *testing.T) {
	away := true
	relays := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away && r.URL.Path == "/b" {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(metricsText))
	}))
	defer relays.Close()
	r := newReader(nil, []string{relays.URL + "/a", relays.URL + "/b"}, relays.Client())
	for _, step := range []struct {
		away bool
		rate float64 // -1: unknown
	}{{true, -1}, {true, 0}, {false, -1}, {false, 0}} {
		away = step.away
		r.readMetrics(t.Context())
		if rate := r.overview.rates[seriesAccepted]; rate != step.rate && !(math.IsNaN(rate) && step.rate < 0) {
			t.Errorf("%+v: %f events/s", step, rate)
		}
	}
}

// A relay renews its leases one by one. It is silent only if it renewed none of them.
func TestRelayIsAliveAfterItsLatestRenewal(t *testing.T) {
	s := New(Options{})
	now := time.Now()
	s.reader.asked = now
	s.reader.overview.Ranges = Source{At: now, Tried: now}
	lease := func(id, owner string, ago, silent time.Duration) operator.Range {
		return operator.Range{Lease: changefeed.Lease{ID: id, Owner: owner, Timestamp: now.Add(-ago)}, Silent: silent}
	}
	s.reader.overview.Snapshot = operator.Snapshot{At: now, Ranges: []operator.Range{
		lease("1", "a", 30*time.Second, 30*time.Second), lease("2", "a", time.Second, 0), lease("3", "a", 40*time.Second, 40*time.Second),
		lease("4", "b", 30*time.Second, 30*time.Second),
	}}
	v, err := s.members(httptest.NewRequest(http.MethodGet, "/members", nil))
	if err != nil {
		t.Fatal(err)
	}
	if m := v.(membersView).Members; len(m) != 2 || m[0].Words != "alive" || m[0].Leases != 3 || m[1].Words != "silent" {
		t.Errorf("%+v", m)
	}
}

// replying answers each request with the metrics of one process.
type replying struct{ text string }

func (r *replying) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(r.text))}, nil
}

// Rates are the differences of two readings. Mean times are those of the events sent in between, and remain while nothing
// is sent. Without an API the rate of commits is derived, and is never negative.
func TestRatesAreThoseBetweenTwoReadings(t *testing.T) {
	type reading struct {
		accepted, batches, sending, delivered, delivering, waiting, oldest, handled, failed float64
		changes                                                                             float64 // -1: there is no API
	}
	for _, step := range [][]struct {
		read              reading
		rates             string // committed, accepted, batches, behind, oldest, parked
		sending, delivery time.Duration
		consumed          string
	}{
		{
			{reading{100, 10, 1, 100, 5, 30, 60, 50, 2, -1}, "NaN NaN NaN 30 60 NaN", 0, 0, "{true NaN NaN}"},
			{reading{150, 11, 1.5, 101, 5.25, 10, 70, 60, 3, -1}, "3 5 0.1 10 70 NaN", 500 * time.Millisecond, 250 * time.Millisecond, "{true 1 0.1}"},
			{reading{150, 11, 1.5, 101, 5.25, 10, 80, 60, 3, -1}, "0 0 0 10 80 NaN", 500 * time.Millisecond, 250 * time.Millisecond, "{true 0 0}"},
			{reading{150, 11, 1.5, 101, 5.25, 0, 0, 60, 3, -1}, "0 0 0 0 0 NaN", 500 * time.Millisecond, 250 * time.Millisecond, "{true 0 0}"},
			{reading{10, 1, 1, 10, 1, 0, 0, 5, 0, -1}, "NaN NaN NaN 0 0 NaN", 500 * time.Millisecond, 250 * time.Millisecond, "{true NaN NaN}"}, // another process
		},
		{
			{reading{100, 10, 1, 100, 5, 30, 60, 50, 2, 40}, "NaN NaN NaN 30 60 NaN", 0, 0, "{true NaN NaN}"},
			{reading{150, 20, 2, 150, 10, 10, 70, 60, 2, 41}, "0.1 5 1 10 70 NaN", 100 * time.Millisecond, 100 * time.Millisecond, "{true 1 0}"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			process := &replying{}
			r := newReader(nil, []string{"http://relay/metrics"}, &http.Client{Transport: process})
			for i, c := range step {
				var text strings.Builder
				write := func(name, kind string, value float64) {
					fmt.Fprintf(&text, "# TYPE %s %s\n%s %g\n", name, kind, name, value)
				}
				histogram := func(name, labels string, count, sum float64) {
					fmt.Fprintf(&text, "# TYPE %s histogram\n%s_bucket{%sle=\"+Inf\"} %g\n%s_sum{%s} %g\n%s_count{%s} %g\n", name, name, labels, count, name, labels, sum, name, labels, count)
				}
				write("messaging_client_sent_messages_total", "counter", c.read.accepted)
				histogram("messaging_client_operation_duration_seconds", "", c.read.batches, c.read.sending)
				histogram("outbox_delivery_duration_seconds", "", c.read.delivered, c.read.delivering)
				write("outbox_lag", "gauge", c.read.waiting)
				write("outbox_oldest_unpublished_seconds", "gauge", c.read.oldest)
				write("outbox_consumer_handled_total", "counter", c.read.handled)
				write("outbox_consumer_failed_total", "counter", c.read.failed)
				if c.read.changes >= 0 {
					histogram("http_server_request_duration_seconds", `http_request_method="POST",http_response_status_code="201",`, c.read.changes, 1)
				}
				process.text = text.String()
				r.readMetrics(t.Context())
				p := r.overview
				rates := strings.Trim(fmt.Sprint(p.rates), "[]")
				if p.MetricsRead.Err != "" || rates != c.rates || p.sendTook != c.sending || p.delivery != c.delivery || fmt.Sprint(p.consumed) != c.consumed {
					t.Errorf("reading %d: rates %s, a batch %s, a delivery %s, consumers %v, %s; want %+v", i+1, rates, p.sendTook, p.delivery, p.consumed, p.MetricsRead.Err, c)
				}
				time.Sleep(10 * time.Second)
			}
		})
	}
}

// A person who reloads a slow view cancels its read, and the next request waits for the same value.
func TestCanceledReadIsRepeatedForTheNextTab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[int]()
		left := make(chan error, 1)
		go func() {
			_, err := c.get("key", func() (int, error) {
				time.Sleep(time.Second)
				return 0, fmt.Errorf("read the key: %w", context.Canceled)
			})
			left <- err
		}()
		time.Sleep(500 * time.Millisecond)
		reads := 0
		read := func() (int, error) { reads++; return 7, nil }
		if err := <-left; err == nil {
			t.Error("the canceled read succeeded")
		}
		for range 3 {
			if got, err := c.get("key", read); got != 7 || err != nil {
				t.Errorf("after a canceled read: %d, %v", got, err)
			}
		}
		if reads != 1 {
			t.Errorf("%d reads, want 1", reads)
		}
	})
}

// Reads of a slow store take at most a fifth of the time.
func TestSlowReadsHaveLongPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReader(nil, nil, nil)
		r.asked = time.Now().Add(time.Hour) // views are open all the time
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var reads atomic.Int64
		go func() {
			ended <- r.loop(ctx, r.wake[1], rangesEvery, 0, func(context.Context) {
				reads.Add(1)
				time.Sleep(10 * time.Second)
			})
		}()
		time.Sleep(10*time.Minute - time.Second)
		if n := reads.Load(); n != 12 {
			t.Errorf("%d reads of 10 s in ten minutes, want 12", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The store has whole seconds and all others have milliseconds. The times of an event are shown in an order
// that can be true: created, committed, accepted.
func TestTimelineShowsTimesInAPossibleOrder(t *testing.T) {
	second := time.Date(2026, 1, 31, 8, 0, 3, 0, time.UTC)
	at := func(ms int) time.Time { return second.Add(time.Duration(ms) * time.Millisecond) }
	for _, tc := range []struct {
		created  string
		accepted time.Time
		want     string
	}{
		{"2026-01-31T08:00:03.412345Z", at(430), "2026-01-31 08:00:03.412Z to 08:00:03.430Z"},
		{"2026-01-31T08:00:03.412Z", time.Time{}, "2026-01-31 08:00:03.412Z to 08:00:03.999Z"},
		{"2026-01-31T08:00:02.990Z", at(1100), "2026-01-31 08:00:03.000Z to 08:00:03.999Z"},
		{"2026-01-31T08:00:03.990Z", at(430), "2026-01-31 08:00:03.990Z to 08:00:03.999Z"}, // the clocks of writer and broker differ
		{"2026-01-31T08:00:04.100Z", at(1130), "2026-01-31 08:00:03.000Z to 08:00:03.999Z, by the clock of the store, which is behind that of the writer"},
		{"", at(430), "2026-01-31 08:00:03.000Z to 08:00:03.430Z"},
	} {
		entry := newTimelineEntry(operator.Entry{Message: relay.Message{CreatedAt: tc.created}, CommittedAt: second}, Receipt{Accepted: tc.accepted})
		if entry.Committed != tc.want {
			t.Errorf("created %s, accepted %s: committed %s, want %s", tc.created, tc.accepted, entry.Committed, tc.want)
		}
	}
	if got := newTimelineEntry(operator.Entry{}, Receipt{}).Committed; got != "–" {
		t.Errorf("unknown time of the commit: %s", got)
	}
}

// A page links to its neighbours, and the links keep the filter. A number that is no page shows the nearest one.
func TestPageLinksToItsNeighbours(t *testing.T) {
	const filter = "find=a%26b&show=stopped"
	link := func(n int) string { return fmt.Sprint("/ranges?find=a%26b&page=", n, "&show=stopped") }
	for _, c := range []struct {
		page  string
		total int
		want  pageOf
	}{
		{"", 0, pageOf{}},
		{"7", 0, pageOf{}},
		{"", 50, pageOf{From: 1, To: 50, Total: 50}},
		{"1", 51, pageOf{From: 1, To: 50, Total: 51, After: link(2)}},
		{"2", 51, pageOf{From: 51, To: 51, Total: 51, Before: link(1)}},
		{"2", 120, pageOf{From: 51, To: 100, Total: 120, Before: link(1), After: link(3)}},
		{"3", 120, pageOf{From: 101, To: 120, Total: 120, Before: link(2)}},
		{"9999", 120, pageOf{From: 101, To: 120, Total: 120, Before: link(2)}},
		{"-1", 120, pageOf{From: 1, To: 50, Total: 120, After: link(2)}},
		{"two", 120, pageOf{From: 1, To: 50, Total: 120, After: link(2)}},
	} {
		q, err := url.ParseQuery(filter + "&page=" + c.page)
		if err != nil {
			t.Fatal(err)
		}
		var got pageOf
		if from, to := paged(q, c.total, "/ranges", &got); got != c.want || from != max(0, c.want.From-1) || to != c.want.To {
			t.Errorf("page %q of %d: %d to %d, %+v; want %+v", c.page, c.total, from, to, got, c.want)
		}
	}
}

// The parts of a bar follow each other and fill it. Times that contradict each other make none.
func TestBarOfAnEventDividesItsTime(t *testing.T) {
	second := time.Date(2026, 1, 31, 8, 0, 3, 0, time.UTC)
	at := func(ms int) time.Time { return second.Add(time.Duration(ms) * time.Millisecond) }
	for _, tc := range []struct {
		created            string
		accepted, received time.Time
		want               string
	}{
		{"2026-01-31T08:00:03.4125Z", at(430), at(441), "18ms commit, feed and send 0+62, 11ms broker to consumer 62+38, "},
		{"2026-01-31T08:00:02.990Z", at(1090), time.Time{}, "10ms before the commit 0+1, 999ms commit, feed and send 1+91, 91ms feed and send 92+8, "},
		{"2026-01-31T08:00:03.412Z", time.Time{}, time.Time{}, ""},
		{"2026-01-31T08:00:03.412Z", at(400), at(450), ""},
		{"2026-01-31T08:00:03.412Z", at(430), at(420), ""},
		{"2026-01-31T08:00:03.412Z", at(412), at(412), ""},
		{"", at(430), at(441), ""},
	} {
		got := ""
		for _, p := range newTimelineEntry(operator.Entry{Message: relay.Message{CreatedAt: tc.created}, CommittedAt: second}, Receipt{Accepted: tc.accepted, Received: tc.received}).Parts {
			got += fmt.Sprintf("%s %s %.0f+%.0f, ", p.Took, p.Words, p.From, p.Width)
		}
		if got != tc.want {
			t.Errorf("created %s, accepted %s, received %s: %s, want %s", tc.created, tc.accepted, tc.received, got, tc.want)
		}
	}
}
