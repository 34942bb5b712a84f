package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/process/console"
)

// closeTimeout bounds closing a client of the broker.
const closeTimeout = 5 * time.Second

// demoSubscriber is a consumer of the topic that prints its messages.
type demoSubscriber struct {
	processor interface {
		Run(ctx context.Context) error
	}
	close func() error // after Run
}

// printer prints events and keeps them for the page.
type printer struct {
	style console.Style
	seen  *seenEvents

	mu  sync.Mutex // guards out
	out io.Writer
}

func (d *demoSubscriber) run(ctx context.Context, started func()) error {
	started()
	return errors.Join(d.processor.Run(ctx), d.close())
}

// event prints an event: a summary, and the body as it was stored.
func (p *printer) event(_ context.Context, e *consumer.Event) error {
	if !json.Valid(e.Body) {
		return consumer.DeadLetter("not_json", fmt.Errorf("event %s has a body that is not JSON", e.ID))
	}
	p.seen.add(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "event %s  contact %s  sequence %d  version %d\n  %s\n",
		p.style.Good(console.Clean(e.Action)), console.Clean(e.Key), e.Sequence, e.AggregateVersion, p.style.Faint(console.Plain(string(e.Body))))
	return err
}
