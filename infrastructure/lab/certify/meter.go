package certify

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Meter sends requests to Cosmos DB and records what each operation costs and how long it takes. It is
// safe for concurrent use.
type Meter struct {
	next policy.Transporter

	mu         sync.Mutex // guards the fields below
	operations map[string]*Operation
	versions   map[string]string
}

// NewMeter returns a meter of requests that next sends.
func NewMeter(next policy.Transporter) *Meter {
	return &Meter{next: next, operations: map[string]*Operation{}, versions: map[string]string{}}
}

// Do implements policy.Transporter.
func (m *Meter) Do(req *http.Request) (*http.Response, error) {
	began := time.Now()
	reply, err := m.next.Do(req)
	took := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	name := operationOf(req)
	if m.operations[name] == nil {
		m.operations[name] = &Operation{Name: name}
	}
	o := m.operations[name]
	o.latencies = append(o.latencies, took)
	switch {
	case err != nil || reply.StatusCode >= http.StatusInternalServerError:
		o.Failed++
	case reply.StatusCode == http.StatusTooManyRequests:
		o.Throttled++
	}
	if err != nil {
		return nil, err
	}
	if charge, err := strconv.ParseFloat(reply.Header.Get("x-ms-request-charge"), 64); err == nil {
		o.charges = append(o.charges, charge)
	}
	for name, header := range map[string]string{"Cosmos DB service": "x-ms-serviceversion", "Cosmos DB gateway": "x-ms-gatewayversion"} {
		if version := reply.Header.Get(header); version != "" {
			m.versions[name] = version
		}
	}
	return reply, nil
}

// operationOf names the operation of a request.
func operationOf(req *http.Request) string {
	is := func(header string) bool { return strings.EqualFold(req.Header.Get(header), "true") }
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	kind := cmp.Or(parts[len(parts)-1-(len(parts)+1)%2], "account") // dbs, colls, docs, pkranges or another
	switch {
	case is("x-ms-cosmos-is-batch-request"):
		return "batch"
	case is("x-ms-cosmos-is-query-plan-request"):
		return "query plan"
	case is("x-ms-documentdb-query") || is("x-ms-documentdb-isquery"):
		return "query " + kind
	case req.Header.Get("A-IM") != "":
		return "read change feed"
	case is("x-ms-documentdb-is-upsert"):
		return "upsert " + kind
	}
	return strings.ToLower(req.Method) + " " + kind
}

// Operation is the cost and the time of one kind of request.
type Operation struct {
	By        string  `json:"by"` // scripts or contacts API
	Name      string  `json:"name"`
	Requests  int     `json:"requests"`
	Throttled int     `json:"throttled"`
	Failed    int     `json:"failed"` // 5xx and broken connections
	RU        float64 `json:"ru"`     // of all requests
	MedianRU  float64 `json:"medianRU"`
	MaxRU     float64 `json:"maxRU"`
	Latency   Latency `json:"latency"`

	charges   []float64
	latencies []time.Duration
}

// report returns all operations, by name, and adds the versions of the service.
func (m *Meter) report(by string, versions map[string]string) []Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(versions, m.versions)
	var all []Operation
	for _, name := range slices.Sorted(maps.Keys(m.operations)) {
		o := *m.operations[name]
		o.By, o.Requests, o.Latency = by, len(o.latencies), latencyOf(name, o.latencies)
		charges := slices.Sorted(slices.Values(o.charges))
		for _, charge := range charges {
			o.RU += charge
		}
		if n := len(charges); n > 0 {
			o.MedianRU, o.MaxRU = charges[n/2], charges[n-1]
		}
		all = append(all, o)
	}
	return all
}
