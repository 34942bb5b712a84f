package playground

import (
	"context"
	"net/http"
	"time"

	"feedbox/infrastructure/lab/recorder"
	"feedbox/infrastructure/lab/workload"
)

// requestTimeout bounds a request of the load; then its outcome is unknown. It is shorter
// than doubtful.
const requestTimeout = 10 * time.Second

// contactsOf is how many contacts a round has: each changes about twice a second.
func contactsOf(rate float64) int { return min(64, max(4, int(rate/2))) }

// makeLoad makes rounds until ctx ends.
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
				e.judge.told(r, o, now)
				if o.Outcome == workload.Acked {
					e.meter.ack(now)
				}
			},
		}
		err := load.Run(ctx)
		e.judge.end(r, time.Now())
		e.mu.Lock()
		e.turnedAway += load.Refused()
		e.mu.Unlock()
		if err != nil {
			e.note(true, "the load: %v", err)
			wait(ctx, time.Second)
		}
	}
}

// saw takes a message from the witness.
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
