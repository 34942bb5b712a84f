package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricsSum sums up the metrics of all processes.
type metricsSum struct {
	container string // whose ranges; "" for all
	at        time.Time
	accepted  float64 // events accepted by the broker
	batches   float64
	sending   float64 // seconds, of all batches
	changes   float64 // stored by the API
	hasAPI    bool
	consumed  consumed // counters of consumer kits
	delivery  struct{ seconds, events float64 }
	again     float64 // events sent again although the broker may have accepted them
	lag       map[string]rangeLag
	// unknown contains the leases whose lag a relay does not know; lag has the last known one then.
	unknown  map[string]bool
	up       map[string]bool // by dependency; false if any process reports it down
	answered int             // processes
	from     string          // their addresses
}

// consumed is what the handlers of consumers do: calls of theirs that succeeded and failed.
type consumed struct {
	known           bool // a process with consumers answered
	handled, failed float64
}

// stuck reports whether every call failed.
func (c consumed) stuck() bool { return c.failed > 0 && c.handled == 0 }

type rangeLag struct {
	transactions int64
	withheld     int64 // see changefeed.RangeLag
	oldest       time.Duration
	read         time.Duration // since the last reply to a read, which the others are of
}

const (
	metricsTimeout = 2 * time.Second
	maxMetrics     = 16 << 20 // bytes of one answer
)

// scrape requests all addresses. It returns the sum of those that answered, and the error
// of the first that did not.
func scrape(ctx context.Context, client *http.Client, addresses []string, container string) (metricsSum, error) {
	sum := metricsSum{container: container, at: time.Now(), lag: map[string]rangeLag{}, unknown: map[string]bool{}, up: map[string]bool{}}
	var failed error
	for _, address := range addresses {
		families, err := fetchMetrics(ctx, client, address)
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("metrics of %s: %w", place(address), cause(err))
			}
			continue
		}
		sum.answered++
		sum.from += address + " "
		sum.add(families)
	}
	return sum, failed
}

// place returns host and path of an address. The rest may hold credentials, which readers of the page
// must not see.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is not a URL"
	}
	return u.Host + u.Path
}

// cause returns the error of a request without the address, which net/http adds.
func cause(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

func fetchMetrics(ctx context.Context, client *http.Client, address string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }() // nothing depends on its error
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", reply.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(reply.Body, maxMetrics))
}

func (t *metricsSum) add(families map[string]*dto.MetricFamily) {
	counter := func(name string, into *float64) {
		for _, m := range families[name].GetMetric() {
			*into += m.GetCounter().GetValue()
		}
	}
	counter("messaging_client_sent_messages_total", &t.accepted)
	counter("outbox_duplicates_suspected_total", &t.again)
	counter("outbox_consumer_handled_total", &t.consumed.handled)
	counter("outbox_consumer_failed_total", &t.consumed.failed)
	t.consumed.known = t.consumed.known || families["outbox_consumer_handled_total"] != nil
	for _, m := range families["messaging_client_operation_duration_seconds"].GetMetric() {
		t.batches += float64(m.GetHistogram().GetSampleCount())
		t.sending += m.GetHistogram().GetSampleSum()
	}
	for _, m := range families["outbox_delivery_duration_seconds"].GetMetric() {
		t.delivery.events += float64(m.GetHistogram().GetSampleCount())
		t.delivery.seconds += m.GetHistogram().GetSampleSum()
	}
	requests := families["http_server_request_duration_seconds"]
	t.hasAPI = t.hasAPI || requests != nil
	for _, m := range requests.GetMetric() {
		if label(m, "http_request_method") != http.MethodGet && strings.HasPrefix(label(m, "http_response_status_code"), "2") {
			t.changes += float64(m.GetHistogram().GetSampleCount())
		}
	}
	for _, m := range families["outbox_dependency_up"].GetMetric() {
		name := label(m, "dependency")
		up, known := t.up[name]
		t.up[name] = m.GetGauge().GetValue() > 0 && (up || !known)
	}
	for _, m := range t.ranges(families["outbox_lag_unknown"]) {
		t.unknown[label(m, "lease")] = true
	}
	for _, m := range t.ranges(families["outbox_lag"]) {
		r := t.lag[label(m, "lease")]
		r.transactions = max(r.transactions, int64(m.GetGauge().GetValue()))
		t.lag[label(m, "lease")] = r
	}
	for _, m := range t.ranges(families["outbox_lag_withheld"]) {
		if r, ok := t.lag[label(m, "lease")]; ok {
			r.withheld = max(r.withheld, int64(m.GetGauge().GetValue()))
			t.lag[label(m, "lease")] = r
		}
	}
	for _, m := range t.ranges(families["outbox_oldest_unpublished_seconds"]) {
		if r, ok := t.lag[label(m, "lease")]; ok {
			r.oldest = max(r.oldest, time.Duration(m.GetGauge().GetValue()*float64(time.Second)))
			t.lag[label(m, "lease")] = r
		}
	}
	for _, m := range t.ranges(families["outbox_range_read_age_seconds"]) {
		if r, ok := t.lag[label(m, "lease")]; ok {
			r.read = max(r.read, time.Duration(m.GetGauge().GetValue()*float64(time.Second)))
			t.lag[label(m, "lease")] = r
		}
	}
}

// ranges returns the series of the ranges of the container. A relay names it if it has several.
func (t *metricsSum) ranges(family *dto.MetricFamily) (own []*dto.Metric) {
	for _, m := range family.GetMetric() {
		if of := label(m, "container"); of == "" || t.container == "" || of == t.container {
			own = append(own, m)
		}
	}
	return own
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// readMetrics scrapes all processes and adds a point to the history.
func (r *Reader) readMetrics(ctx context.Context) {
	began := time.Now()
	t, err := scrape(ctx, r.client, r.metrics, r.container)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.overview
	before := p.metrics
	p.MetricsRead.note(began, err)
	p.rates = unknownRates()
	p.metrics = t
	seconds := t.at.Sub(before.at).Seconds()
	same := before.from == t.from && t.answered > 0 && seconds > 0
	per := func(now, then float64) float64 {
		if !same || now < then { // a process has restarted, so its counters started from zero
			return math.NaN()
		}
		return (now - then) / seconds
	}
	p.rates[seriesAccepted] = per(t.accepted, before.accepted)
	p.rates[seriesBatches] = per(t.batches, before.batches)
	p.consumed = consumed{known: t.consumed.known, handled: per(t.consumed.handled, before.consumed.handled), failed: per(t.consumed.failed, before.consumed.failed)}
	behind := t.behind()
	if behind.known = behind.known && err == nil; behind.known { // the others may have ranges, too
		p.rates[seriesBehind], p.rates[seriesOldest] = behind.transactions, behind.oldest.Seconds()
	} else if p.Ranges.Current() && p.Snapshot.Unknown == 0 { // measured on the feed
		p.rates[seriesBehind], p.rates[seriesOldest] = float64(p.Snapshot.Behind), p.Snapshot.Oldest.Seconds()
	}
	if p.Keys.Current() {
		p.rates[seriesParked] = float64(len(p.Gates))
	}
	if t.hasAPI {
		p.rates[seriesCommitted] = per(t.changes, before.changes)
	} else if was := before.behind(); same && behind.known && was.known {
		p.rates[seriesCommitted] = max(0, p.rates[seriesAccepted]+(behind.transactions-was.transactions)/seconds)
	}
	if n := t.batches - before.batches; same && n > 0 {
		p.sendTook = time.Duration((t.sending - before.sending) / n * float64(time.Second))
	}
	if n := t.delivery.events - before.delivery.events; same && n > 0 {
		p.delivery = time.Duration((t.delivery.seconds - before.delivery.seconds) / n * float64(time.Second))
	}
	if len(r.metrics) > 0 || p.Ranges.Known() {
		r.history.add(t.at, p.rates)
	}
}

// totalLag is the lag of all ranges. It is known if a relay reports a lag, and none a range without.
type totalLag struct {
	transactions float64
	oldest       time.Duration
	known        bool
}

func (t *metricsSum) behind() totalLag {
	total := totalLag{known: len(t.lag) > 0 && len(t.unknown) == 0}
	for _, r := range t.lag {
		total.transactions += float64(r.transactions)
		total.oldest = max(total.oldest, r.oldest)
	}
	return total
}
