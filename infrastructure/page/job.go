package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxJobs  = 200 // kept in memory; older ones are only in the log
	maxLines = 200 // kept of one job
	// maxRunning bounds the acts that run at once: each may send events or scan the store for as long as it takes.
	// One person alone may run half of them.
	maxRunning = 16
)

// jobs holds the latest acts of this process.
type jobs struct {
	mu   sync.Mutex
	next int
	all  []*job
}

// job is an act that runs or has run.
type job struct {
	done chan struct{} // closed when the act has ended

	mu    sync.Mutex // guards state
	state Job
}

// Job is the state of an act, for its template.
type Job struct {
	ID, Title         string
	Target            []Fact // the values of its order
	Who, Why          string
	Began, Ended      time.Time
	Refused           *Refusal
	Done, Total       int64
	Lines             []string
	Omitted           int // lines dropped before Lines
	NextTitle, NextTo string
}

// Running reports whether the act has not ended.
func (j Job) Running() bool { return j.Ended.IsZero() }

func (j *job) update(change func(s *Job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.state)
}

func (j *job) say(line string) {
	j.update(func(s *Job) {
		if len(s.Lines) == maxLines {
			s.Lines, s.Omitted = slices.Delete(s.Lines, 0, 1), s.Omitted+1
		}
		s.Lines = append(s.Lines, line)
	})
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

func (j *job) snapshot() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Lines = slices.Clone(s.Lines)
	return s
}

// place takes the place of a running act.
func (p *Page) place(r *http.Request) (leave func(), refused *Refusal) {
	return enter(r, p.places, "Too many acts", "running acts", "Wait until one of your acts has ended.")
}

// start runs an act in the background and logs its start and end. It calls leave when the act has ended.
func (p *Page) start(act Act, section Section, order *Order, leave func()) *job {
	j := &job{done: make(chan struct{}), state: Job{Title: act.Title, Who: order.Who, Why: order.Why, Began: time.Now(), Target: facts(order.Values)}}
	order.job = j
	p.jobs.mu.Lock()
	p.jobs.next++
	j.state.ID = strconv.Itoa(p.jobs.next)
	if len(p.jobs.all) == maxJobs {
		p.jobs.all = slices.Delete(p.jobs.all, 0, 1)
	}
	p.jobs.all = append(p.jobs.all, j)
	p.jobs.mu.Unlock()

	record := p.options.Log.With("act", section.Path+"/"+act.Path, "who", order.Who, "why", order.Why)
	for _, f := range j.state.Target {
		record = record.With("of_"+f.Name, f.Value)
	}
	p.running.Go(func() {
		defer close(j.done)
		defer leave()
		record.InfoContext(p.life, "operator act started")
		began := time.Now()
		err := safely(func() error { return act.Do(p.life, order) })
		j.update(func(s *Job) {
			s.Ended = time.Now()
			if err != nil {
				s.Refused = refusal(err)
			}
		})
		if err != nil {
			record.WarnContext(p.life, "operator act failed", "error", err)
			return
		}
		record.InfoContext(p.life, "operator act done", "took", time.Since(began))
	})
	return j
}

// safely returns a panic as an error, because one act must not end the process.
func safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bug in this program: %v", p)
		}
	}()
	return do()
}

func facts(values url.Values) []Fact {
	var all []Fact
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			all = append(all, Fact{Name: name, Value: shortened(value)})
		}
	}
	return all
}

// maxRecorded bounds a value in the log, because documents do not belong there.
const maxRecorded = 200

func shortened(text string) string {
	if len(text) > maxRecorded {
		return fmt.Sprintf("%d bytes", len(text))
	}
	return text
}

func (p *Page) jobView() http.Handler {
	return &shownView{page: p, files: p.layout, section: Section{Path: "acts"}, view: View{Title: "Act", Template: "job.html", Every: minEvery, Data: func(r *http.Request) (any, error) {
		p.jobs.mu.Lock()
		defer p.jobs.mu.Unlock()
		for _, j := range p.jobs.all {
			if s := j.snapshot(); s.ID == r.PathValue("id") {
				return s, nil
			}
		}
		return nil, &Refusal{Status: http.StatusNotFound, Title: "Unknown act", Detail: "It belongs to an earlier process, or is too old.", Next: "The log has the record of all acts."}
	}}}
}

// jobsView lists the acts of this process, the latest first.
func (p *Page) jobsView() http.Handler {
	return &shownView{page: p, files: p.layout, section: Section{Path: "acts"}, view: View{Title: "Acts", Template: "jobs.html", Every: 2 * minEvery, Data: func(*http.Request) (any, error) {
		p.jobs.mu.Lock()
		defer p.jobs.mu.Unlock()
		var all []Job
		for _, j := range slices.Backward(p.jobs.all) {
			all = append(all, j.snapshot())
		}
		return all, nil
	}}}
}
