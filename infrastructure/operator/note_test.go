package operator

import (
	"context"
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
