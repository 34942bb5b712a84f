package cosmosemu

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These benchmarks call the handler without a network, to measure the emulator's own share of an
// operation. tests/bench/cosmos measures whole operations.

// discard is a response writer that keeps only the status and the size.
type discard struct {
	header http.Header
	status int
	size   int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(s int)   { d.status = s }
func (d *discard) Write(p []byte) (int, error) {
	d.size += len(p)
	return len(p), nil
}

type benchmark struct {
	*testing.B
	srv *Server
}

func newBenchmark(b *testing.B) *benchmark {
	b.Helper()
	srv := StartT(b)
	if err := srv.CreateContainer("db", ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return &benchmark{b, srv}
}

// request builds a signed request; call sends it.
func (b *benchmark) request(method, kind, link, path string, body []byte, headers ...string) *http.Request {
	const date = "Thu, 27 Apr 2017 00:51:12 GMT"
	mac := hmac.New(sha256.New, b.srv.key)
	mac.Write([]byte(strings.ToLower(method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"))
	r, err := http.NewRequestWithContext(b.Context(), method, "http://localhost/"+path, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-Ms-Date", date)
	r.Header.Set("X-Ms-Activity-Id", "11111111-1111-1111-1111-111111111111")
	r.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// timed runs fn b.N times and reports the CPU time of the process per operation, because elapsed
// time varies more on a shared machine.
func (b *benchmark) timed(fn func(i int)) {
	b.ResetTimer()
	before := cpu(b.B)
	for i := range b.N {
		fn(i)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpu(b.B)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func (b *benchmark) call(r *http.Request, want int) int {
	w := &discard{header: make(http.Header, 8)}
	gateway{b.srv, defaultGateway, 0}.ServeHTTP(w, r)
	if w.status != want {
		b.Fatalf("%s %s: %d, want %d", r.Method, r.URL.Path, w.status, want)
	}
	return w.size
}

func benchItem(id, pk string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"contact","data":{"name":"John Doe","n":12345,"list":[1,2,3],"text":"%s"}}`, id, pk, strings.Repeat("x", 900))
}

const benchFeed = "dbs/db/colls/c"

func (b *benchmark) create(i int) *http.Request {
	id := fmt.Sprint("id", i)
	return b.request(http.MethodPost, "docs", benchFeed, benchFeed+"/docs", benchItem(id, id), "X-Ms-Documentdb-Partitionkey", fmt.Sprintf("[%q]", id), "Prefer", "return=minimal")
}

func BenchmarkCreate(b *testing.B) {
	m := newBenchmark(b)
	requests := make([]*http.Request, b.N)
	for i := range requests {
		requests[i] = m.create(i)
	}
	m.timed(func(i int) { m.call(requests[i], http.StatusCreated) })
}

func BenchmarkRead(b *testing.B) {
	m := newBenchmark(b)
	requests := make([]*http.Request, 1000)
	for i := range requests {
		m.call(m.create(i), http.StatusCreated)
		id := fmt.Sprint("id", i)
		requests[i] = m.request(http.MethodGet, "docs", benchFeed+"/docs/"+id, benchFeed+"/docs/"+id, nil, "X-Ms-Documentdb-Partitionkey", fmt.Sprintf("[%q]", id))
	}
	m.timed(func(i int) { m.call(requests[i%len(requests)], http.StatusOK) })
}

func BenchmarkBatchOfFive(b *testing.B) {
	m := newBenchmark(b)
	requests := make([]*http.Request, b.N)
	for i := range requests {
		pk := fmt.Sprint("b", i)
		var body bytes.Buffer
		for j := range 5 {
			fmt.Fprintf(&body, `,{"operationType":"Create","resourceBody":%s}`, benchItem(fmt.Sprint(j), pk))
		}
		text := body.Bytes()
		text[0] = '['
		requests[i] = m.request(http.MethodPost, "docs", benchFeed, benchFeed+"/docs", append(text, ']'), "X-Ms-Documentdb-Partitionkey", fmt.Sprintf("[%q]", pk),
			"Prefer", "return=minimal", "X-Ms-Cosmos-Is-Batch-Request", "True", "X-Ms-Cosmos-Batch-Atomic", "True")
	}
	m.timed(func(i int) { m.call(requests[i], http.StatusOK) })
}

// BenchmarkFeedPage reads pages of 100 changes from 10,000.
func BenchmarkFeedPage(b *testing.B) {
	m := newBenchmark(b)
	for i := range 10_000 {
		m.call(m.create(i), http.StatusCreated)
	}
	m.timed(func(i int) {
		r := m.request(http.MethodGet, "docs", benchFeed, benchFeed+"/docs", nil, "A-IM", "Incremental Feed",
			"X-Ms-Documentdb-Partitionkeyrangeid", "0", "X-Ms-Max-Item-Count", "100", "If-None-Match", fmt.Sprintf(`"%d"`, i%99*100))
		m.call(r, http.StatusOK)
	})
}

func BenchmarkPointQuery(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := newBenchmark(b)
			for i := range size {
				m.call(m.create(i), http.StatusCreated)
			}
			time.Sleep(2 * time.Second) // until the store has compacted its tables
			m.timed(func(i int) {
				body := fmt.Appendf(nil, `{"query":"SELECT * FROM c WHERE c.id = @id","parameters":[{"name":"@id","value":"id%d"}]}`, i*7919%size)
				m.call(m.request(http.MethodPost, "docs", benchFeed, benchFeed+"/docs", body, "Content-Type", "application/query+json",
					"X-Ms-Documentdb-Query", "True", "X-Ms-Documentdb-Query-Enablecrosspartition", "True"), http.StatusOK)
			})
		})
	}
}
