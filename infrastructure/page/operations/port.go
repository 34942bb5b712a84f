package operations

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

// Port is what the page asks of the operator's use cases.
type Port interface {
	Watcher
	Keys
	// Steer asks the owners of leases, by id, for something; none named is all.
	Steer(ctx context.Context, verb SteerVerb, leases ...string) error
	PlanReplay(ctx context.Context, from time.Time, window time.Duration, progress func(documents int)) ([]operator.Resend, error)
	Rewind(ctx context.Context, from time.Time, leases ...string) error
	Diagnose(ctx context.Context, o operator.DoctorOptions)
}

// Watcher is what the Reader reads.
type Watcher interface {
	LeaseList(ctx context.Context) (leases []changefeed.Lease, paused bool, err error)
	Hosts(ctx context.Context) ([]changefeed.Host, error)
	Lag(ctx context.Context) ([]changefeed.RangeLag, error)
	Silence(l changefeed.Lease, now time.Time) time.Duration
	Level(oldest time.Duration) relay.Level
	EventTTL() time.Duration
	GatesFor(ctx context.Context, reason string) ([]relay.Gate, error)
}

// Keys is what is asked and done about single keys.
type Keys interface {
	ParkedKey(ctx context.Context, key string, limit int) (operator.ParkedKey, error)
	Gate(ctx context.Context, key string) (relay.Gate, error)
	CompareParked(ctx context.Context, key string) (operator.ParkedComparison, error)
	FirstInLine(ctx context.Context, key, event string) error
	Note(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	NoteAll(ctx context.Context, gates []relay.Gate, intent relay.Intent, noted func(relay.Gate)) error
	Life(ctx context.Context, key string, handled time.Time) (*operator.Life, error)
	ReadMendable(ctx context.Context, key, id string) (operator.Mendable, error)
	CheckMended(key, id string, document []byte) string
	Mend(ctx context.Context, key, id string, document []byte, version string) error
	PlanKeyReplay(ctx context.Context, key string, window time.Duration) (*operator.KeyReplay, error)
	SendKey(ctx context.Context, plan *operator.KeyReplay, progress func(events int)) error
}

// SteerVerb is what owners of leases are asked for.
type SteerVerb string

// The verbs.
const (
	SteerPause   SteerVerb = "pause"
	SteerResume  SteerVerb = "resume"
	SteerRelease SteerVerb = "release"
	SteerRetry   SteerVerb = "retry"
)

// Witness tells what a consumer in this process has seen; feedbox-dev has one.
type Witness interface {
	// Seen is by event id, of one key.
	Seen(key string) map[string]Seen
}

// Seen is when the broker accepted an event, and when the consumer got it.
type Seen struct{ Accepted, Received time.Time }

// Of is the Port over an operator.
func Of(o *operator.Operator) Port { return over{o} }

type over struct{ *operator.Operator }

func (o over) LeaseList(ctx context.Context) ([]changefeed.Lease, bool, error) {
	leases, err := o.Leases.Leases(ctx)
	if _, refused := errors.AsType[*changefeed.RefusedError](err); err != nil && !refused {
		return nil, false, err
	}
	paused, err := o.Leases.Paused(ctx)
	return leases, paused, err
}

func (o over) Hosts(ctx context.Context) ([]changefeed.Host, error)   { return o.Leases.Hosts(ctx) }
func (o over) Lag(ctx context.Context) ([]changefeed.RangeLag, error) { return o.Leases.Lag(ctx) }

func (o over) Gate(ctx context.Context, key string) (relay.Gate, error) { return o.Lot.Gate(ctx, key) }

func (o over) Steer(ctx context.Context, verb SteerVerb, leases ...string) error {
	all := len(leases) == 0
	switch verb {
	case SteerPause:
		if all {
			return o.Leases.Pause(ctx)
		}
		return o.Leases.PauseLeases(ctx, leases...)
	case SteerResume:
		if all {
			return errors.Join(o.Leases.Resume(ctx), o.Leases.ResumeLeases(ctx))
		}
		return o.Leases.ResumeLeases(ctx, leases...)
	case SteerRelease:
		return o.Leases.Release(ctx, leases...)
	case SteerRetry:
		return o.Leases.Retry(ctx, leases...)
	}
	return errors.New("there is no verb " + string(verb))
}
