package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Relay publishes the events of change feed pages.
type Relay struct {
	decoder   Decoder
	publisher Publisher
	hooks     Hooks
	pages     sync.Pool // of *page
}

// Options are the choices of New. The zero value is usable.
type Options struct {
	Hooks Hooks // default: none
}

// Hooks are called by the relay. Each may be nil; each must be quick and safe for
// concurrent use.
type Hooks struct {
	// Handled is called at the end of every Handle.
	Handled func(ctx context.Context, s Summary)
}

// Summary counts what became of the changes of one Handle call.
type Summary struct {
	Changes  int // documents given
	Skipped  int // documents that are no events
	Accepted int // events that the broker accepted
	Failed   int // events that it did not, and those held back by them
	Keys     int // partition keys with something to send
}

// New returns a relay. decoder and publisher are required.
func New(decoder Decoder, publisher Publisher, opts *Options) (*Relay, error) {
	var errs []error
	if decoder == nil {
		errs = append(errs, errors.New("decoder is nil"))
	}
	if publisher == nil {
		errs = append(errs, errors.New("publisher is nil"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("new relay: %w", errors.Join(errs...))
	}
	r := &Relay{decoder: decoder, publisher: publisher}
	if opts != nil {
		r.hooks = opts.Hooks
	}
	r.pages.New = func() any { return new(page) }
	return r, nil
}

// Handle publishes the events among changes, which are in the order of the feed. It
// returns nil once the broker has accepted all of them; the caller may then move its
// checkpoint past changes.
//
// Otherwise it returns a *BatchError naming the events that were not accepted. All
// others were. Handling the same changes again sends the accepted ones again with the
// same message ids, which the broker's duplicate detection drops.
//
// ctx must end before the caller's claim to the feed range does: nothing is sent
// after that. The documents must not be changed until Handle returns.
func (r *Relay) Handle(ctx context.Context, changes []Change) error {
	p := r.pages.Get().(*page)
	defer func() {
		p.reset()
		r.pages.Put(p)
	}()
	p.decode(r.decoder, changes)
	groups := p.arrange()

	var err error
	if len(groups) > 0 {
		err = r.publisher.Publish(ctx, groups)
	}
	failures := p.failures(failedKeys(err, groups))

	if r.hooks.Handled != nil {
		r.hooks.Handled(ctx, Summary{
			Changes: len(changes), Skipped: p.skipped, Keys: len(groups), Failed: len(failures),
			Accepted: len(p.events) + len(p.keyless) - len(failures),
		})
	}
	if len(failures) > 0 {
		return &BatchError{Failures: failures}
	}
	return nil
}

// failedKeys returns what err says about each of groups.
func failedKeys(err error, groups []Group) []KeyError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*PublishError](err); ok {
		return e.Keys
	}
	keys := make([]KeyError, len(groups))
	for i := range groups {
		keys[i] = KeyError{Group: i, Err: err}
	}
	return keys
}
