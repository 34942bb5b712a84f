package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxJobs  = 200 // remembered
	maxLines = 200 // of one job
)

// jobs are the acts of this process, the oldest forgotten first.
type jobs struct {
	mu   sync.Mutex
	next int
	all  []*job
}

// job is an act that runs or has run.
type job struct {
	id, title, section string
	what               []Fact
	who, why           string
	began              time.Time
	done               chan struct{}

	mu       sync.Mutex
	ended    time.Time
	err      error
	at, of   int64
	lines    []string
	omitted  int
	nextName string
	nextTo   string
}

// Job is how an act stands, for its template.
type Job struct {
	ID, Title, Section string
	What               []Fact
	Who, Why           string
	Began, Ended       time.Time
	Running            bool
	Refused            *Refusal
	Done, Total        int64
	Lines              []string
	Omitted            int
	NextTitle, NextTo  string
}

func (j *job) progress(done, total int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at, j.of = done, total
}

func (j *job) say(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == maxLines {
		j.lines, j.omitted = slices.Delete(j.lines, 0, 1), j.omitted+1
	}
	j.lines = append(j.lines, line)
}

func (j *job) leads(title, to string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nextName, j.nextTo = title, to
}

func (j *job) wait(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (j *job) state() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Job{
		ID: j.id, Title: j.title, Section: j.section, What: j.what, Who: j.who, Why: j.why, Began: j.began, Ended: j.ended,
		Running: j.ended.IsZero(), Done: j.at, Total: j.of, Lines: slices.Clone(j.lines), Omitted: j.omitted, NextTitle: j.nextName, NextTo: j.nextTo,
	}
	if j.err != nil {
		s.Refused = refusal(j.err)
	}
	return s
}

// start runs an act in the background and writes its record.
func (p *Page) start(act Act, section Section, order *Order) *job {
	j := &job{title: act.Title, section: section.Title, who: order.Who, why: order.Why, began: time.Now(), done: make(chan struct{}), what: facts(order.Values)}
	order.job = j
	p.jobs.mu.Lock()
	p.jobs.next++
	j.id = strconv.Itoa(p.jobs.next)
	if len(p.jobs.all) == maxJobs {
		p.jobs.all = slices.Delete(p.jobs.all, 0, 1)
	}
	p.jobs.all = append(p.jobs.all, j)
	p.jobs.mu.Unlock()

	record := p.options.Log.With("act", section.Path+"/"+act.Path, "who", order.Who, "why", order.Why)
	for _, f := range j.what {
		record = record.With("of_"+f.Name, shortened(f.Value))
	}
	p.running.Go(func() {
		defer close(j.done)
		record.InfoContext(p.life, "an operator acts")
		err := safely(func() error { return act.Do(p.life, order) })
		j.mu.Lock()
		j.ended, j.err = time.Now(), err
		j.mu.Unlock()
		if err != nil {
			record.WarnContext(p.life, "an operator's act failed", "error", err)
			return
		}
		record.InfoContext(p.life, "an operator's act is done", "took", j.ended.Sub(j.began))
	})
	return j
}

// safely turns a panic into an error: one act must not end the process.
func safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a fault of this program: %v", p)
		}
	}()
	return do()
}

func facts(values url.Values) []Fact {
	var all []Fact
	for _, name := range slices.Sorted(keys(values)) {
		for _, value := range values[name] {
			all = append(all, Fact{Name: name, Value: shortened(value)})
		}
	}
	return all
}

// maxRecorded bounds a value in the record. Documents do not belong there.
const maxRecorded = 200

func shortened(text string) string {
	if len(text) > maxRecorded {
		return fmt.Sprintf("%d bytes", len(text))
	}
	return text
}

// jobView shows one act.
func (p *Page) jobView() http.Handler {
	return &shownView{page: p, files: p.layout, section: Section{Path: "acts"}, view: View{Title: "Act", Template: "job.html", Every: minEvery, Data: func(r *http.Request) (any, error) {
		p.jobs.mu.Lock()
		defer p.jobs.mu.Unlock()
		for _, j := range p.jobs.all {
			if j.id == r.PathValue("id") {
				return j.state(), nil
			}
		}
		return nil, &Refusal{Status: http.StatusNotFound, Title: "That act is not known", Detail: "It was done by an earlier process, or long ago.", Next: "The log has the record of all acts."}
	}}}
}

// jobsView lists the acts of this process, the last one first.
func (p *Page) jobsView() http.Handler {
	return &shownView{page: p, files: p.layout, section: Section{Path: "acts"}, view: View{Title: "Acts", Template: "jobs.html", Every: 2 * minEvery, Data: func(*http.Request) (any, error) {
		p.jobs.mu.Lock()
		defer p.jobs.mu.Unlock()
		var all []Job
		for _, j := range slices.Backward(p.jobs.all) {
			all = append(all, j.state())
		}
		return all, nil
	}}}
}
