package playground

import (
	"context"
	"net/http"
	"time"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/workload"
)

// requestTimeout bounds a request of the load. After it the outcome is unknown. It must be
// shorter than unknownFor.
const requestTimeout = 10 * time.Second

// contactsOf returns the number of contacts of a round, so that each changes about twice a
// second.
func contactsOf(rate float64) int { return min(64, max(4, int(rate/2))) }

// makeLoad runs rounds of load until ctx ends.
func (e *Engine) makeLoad(ctx context.Context) {
	contacts := contactsOf(e.o.Rate)
	writers := min(contacts, 16)
	transport := &http.Transport{MaxIdleConnsPerHost: writers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: requestTimeout}
	for n := 0; ctx.Err() == nil; n++ {
		r := e.judge.begin()
		load := &workload.Load{
			Base: e.o.API, Client: client, Contacts: contacts, Writers: writers, Rate: e.o.Rate,
			Changes: max(contacts, int(e.o.Rate*e.o.Round.Seconds())), Seed: int64(e.o.Seed) + int64(n),
			Record: func(o workload.Outcome) {
				now := time.Now()
				e.judge.record(r, o, now)
				if o.Outcome == workload.Acked {
					e.meter.ack(now)
				}
			},
		}
		err := load.Run(ctx)
		e.judge.end(r, time.Now())
		e.mu.Lock()
		e.rejected += load.Refused()
		e.mu.Unlock()
		if err != nil {
			e.note(true, "load failed: %v", err)
			wait(ctx, time.Second)
		}
	}
}

// saw passes a message of the recorder to judge and meter.
func (e *Engine) saw(a recorder.Arrival) {
	taken := []recorder.Arrival{a}
	if e.o.Tamper != nil {
		taken = e.o.Tamper(a)
	}
	now := time.Now()
	for i := range taken {
		e.judge.saw(&taken[i])
		e.meter.arrive(taken[i].Created, now)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
