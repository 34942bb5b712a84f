package operations

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/operator"
)

// doctor keeps the findings of the last examination. One runs at a time, for all tabs.
type doctor struct {
	mu       sync.Mutex
	began    time.Time
	ended    time.Time
	running  bool
	findings []operator.Finding
	done     chan struct{}
}

type doctorView struct {
	Ended    time.Time
	Running  bool
	Findings []findingRow
	Counts   []findingCount
}

type findingRow struct {
	operator.Finding
	State string
}

type findingCount struct {
	State, Words string
	Count        int
}

const (
	// Older findings than findingsMaxAge start another examination. A person may request
	// one after findingsMinAge.
	findingsMaxAge = time.Minute
	findingsMinAge = 3 * time.Second
	checkTimeout   = 15 * time.Second // of one check
)

func (s *Operations) examine(r *http.Request) (any, error) {
	d := &s.doctor
	d.mu.Lock()
	age := time.Since(d.began)
	again := age > findingsMaxAge || r.URL.Query().Has("again") && age > findingsMinAge
	if !d.running && again && (d.done == nil || !streamed(r)) {
		d.running, d.began, d.findings, d.done = true, time.Now(), nil, make(chan struct{})
		go s.diagnose(context.WithoutCancel(r.Context()), d.done)
	}
	done := d.done
	d.mu.Unlock()
	select {
	case <-done:
	case <-time.After(firstReadWait):
	case <-r.Context().Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v := doctorView{Ended: d.ended, Running: d.running}
	count := map[operator.FindingStatus]int{}
	for _, f := range d.findings {
		v.Findings = append(v.Findings, findingRow{f, d.state(f.Status)})
		count[f.Status]++
	}
	slices.SortStableFunc(v.Findings, func(a, b findingRow) int { return severity(a.Status) - severity(b.Status) })
	for _, status := range bySeverity {
		if count[status] > 0 {
			v.Counts = append(v.Counts, findingCount{d.state(status), string(status), count[status]})
		}
	}
	return v, nil
}

// streamed reports whether r is the update stream of an open tab, which must not start
// another examination.
func streamed(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }

// diagnose runs without a stop signal because it is bounded: the number of checks, the time
// of each, and the time of all.
func (s *Operations) diagnose(ctx context.Context, done chan<- struct{}) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	d := &s.doctor
	s.o.Port.Diagnose(ctx, operator.DoctorOptions{Management: s.o.Management, Each: checkTimeout, Found: func(f operator.Finding) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.findings = append(d.findings, f)
	}})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running, d.ended = false, time.Now()
	close(done)
}

// bySeverity lists the statuses from the worst to the best.
var bySeverity = []operator.FindingStatus{operator.FindingFailed, operator.FindingWarning, operator.FindingUnknown, operator.FindingOK}

func severity(s operator.FindingStatus) int { return slices.Index(bySeverity, s) }

// state returns the CSS class of a finding. An old one shows nothing good.
func (d *doctor) state(s operator.FindingStatus) string {
	if s == operator.FindingOK && !d.running && time.Since(d.ended) > findingsMaxAge {
		return ""
	}
	return findingState(s)
}

func findingState(s operator.FindingStatus) string {
	switch s {
	case operator.FindingFailed:
		return "bad"
	case operator.FindingWarning:
		return "warn"
	case operator.FindingOK:
		return "good"
	case operator.FindingUnknown:
	}
	return ""
}
