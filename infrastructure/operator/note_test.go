package operator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
)

// intents stores any intent.
type intents struct{ relayport.Parked }

func (intents) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	return relay.Gate{Key: key, Intent: &intent}, nil
}

// A skipped event and the intent share one transaction, so the note must leave room for the event.
func TestLongNoteIsRefused(t *testing.T) {
	o := Operator{Parked: intents{}}
	intent := relay.Intent{Verb: relay.VerbSkip, Event: "e1", By: "ann", Note: strings.Repeat("n", maxNote-3)}
	if g, err := o.Note(t.Context(), "k", intent); err != nil || g.Intent.Note != intent.Note {
		t.Errorf("a note of %d bytes: %v", len(intent.Note), err)
	}
	intent.Note += "n"
	if _, err := o.Note(t.Context(), "k", intent); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "shorten") {
		t.Errorf("a note that is too long by one byte: %v", err)
	}
}

// replayer is a publisher that fails, and records the state of the context that it is closed with.
type replayer struct {
	relayport.Publisher
	fail   error
	closed []error
}

func (p *replayer) Publish(context.Context, []relay.Group) error { return p.fail }

func (p *replayer) Close(ctx context.Context) error {
	p.closed = append(p.closed, ctx.Err())
	return nil
}

// A page replays keys as long as it runs, so a publisher that stays open would keep its link.
func TestReplayOfAKeyClosesItsPublisher(t *testing.T) {
	for _, fail := range []error{nil, errors.New("cut")} {
		p := &replayer{fail: fail}
		o := Operator{broker: &Broker{Broker: relayport.Broker{Open: func(*slog.Logger, func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return p, nil
		}}}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as after an interrupt
		err := o.SendKey(ctx, &KeyReplay{Key: "k", Messages: []relay.Message{{ID: "e"}}}, func(int) {})
		if !errors.Is(err, fail) || len(p.closed) != 1 || p.closed[0] != nil {
			t.Errorf("%v: got %v, closed with %v; want one close, which has time left", fail, err, p.closed)
		}
	}
}
