package operations

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// told is what the metrics of some processes say together. Counters are sums.
type told struct {
	at       time.Time
	accepted float64 // events the broker accepted
	batches  float64
	sending  float64 // seconds, of all batches
	changes  float64 // by the API
	hasAPI   bool
	delivery struct{ seconds, events float64 }
	again    float64 // events sent again although they may have been accepted
	charge   float64 // request units of feed reads
	lag      map[string]rangeTold
	up       map[string]bool // dependencies; down if one process says so
	answered int             // processes that told
}

type rangeTold struct {
	transactions int64
	oldest       time.Duration
}

const (
	metricsTimeout = 2 * time.Second
	maxMetrics     = 16 << 20 // bytes of one answer
)

// scrape asks all addresses. The error is that of the first that did not tell; what the
// others told counts.
func scrape(ctx context.Context, client *http.Client, addresses []string) (told, error) {
	t := told{at: time.Now(), lag: map[string]rangeTold{}, up: map[string]bool{}}
	var failed error
	for _, address := range addresses {
		families, err := ask(ctx, client, address)
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("the metrics of %s: %w", address, err)
			}
			continue
		}
		t.answered++
		t.add(families)
	}
	return t, failed
}

func ask(ctx context.Context, client *http.Client, address string) (map[string]*dto.MetricFamily, error) {
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
	defer func() { _ = reply.Body.Close() }() // it was read
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", reply.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(reply.Body, maxMetrics))
}

func (t *told) add(families map[string]*dto.MetricFamily) {
	counter := func(name string, into *float64) {
		for _, m := range families[name].GetMetric() {
			*into += m.GetCounter().GetValue()
		}
	}
	counter("messaging_client_sent_messages_total", &t.accepted)
	counter("outbox_duplicates_suspected_total", &t.again)
	counter("azure_cosmosdb_client_operation_request_charge_total", &t.charge)
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
	for _, m := range families["outbox_lag"].GetMetric() {
		r := t.lag[label(m, "lease")]
		r.transactions = max(r.transactions, int64(m.GetGauge().GetValue()))
		t.lag[label(m, "lease")] = r
	}
	for _, m := range families["outbox_oldest_unpublished_seconds"].GetMetric() {
		if r, ok := t.lag[label(m, "lease")]; ok {
			r.oldest = max(r.oldest, time.Duration(m.GetGauge().GetValue()*float64(time.Second)))
			t.lag[label(m, "lease")] = r
		}
	}
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
