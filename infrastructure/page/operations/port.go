package operations

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
)

// Port has the operator use cases that the page needs.
type Port interface {
	Watcher
	Keys
	Letters
	// CommandLeases notes a command for the owners of leases, by lease id; no id means all.
	CommandLeases(ctx context.Context, command LeaseCommand, leases ...string) error
	PlanReplay(ctx context.Context, from time.Time, window time.Duration, progress func(documents int)) ([]operator.Resend, error)
	Rewind(ctx context.Context, from time.Time, leases ...string) error
	Diagnose(ctx context.Context, o operator.DoctorOptions)
	// Consumer returns a Port to the parked keys of a consumer.
	Consumer(name string) (Port, error)
}

// Watcher has the reads of the Reader.
type Watcher interface {
	LeaseList(ctx context.Context) (leases []changefeed.Lease, paused bool, err error)
	Hosts(ctx context.Context) ([]changefeed.Host, error)
	Lag(ctx context.Context) ([]changefeed.RangeLag, error)
	NewSnapshot(at time.Time, leases []changefeed.Lease, paused bool, lags map[string]changefeed.RangeLag) operator.Snapshot
	EventTTL() time.Duration
	GatesFor(ctx context.Context, reason string) ([]relay.Gate, error)
	ConsumerKeys(ctx context.Context) ([]operator.ConsumerKeys, error)
}

// Keys has the use cases of single keys.
type Keys interface {
	ParkedKey(ctx context.Context, key string, limit int) (operator.ParkedKey, error)
	Gate(ctx context.Context, key string) (relay.Gate, error)
	CompareParked(ctx context.Context, key string) (operator.ParkedComparison, error)
	FirstInLine(ctx context.Context, key, event string) error
	Note(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	NoteAll(ctx context.Context, gates []relay.Gate, intent relay.Intent, noted func(relay.Gate)) error
	Timeline(ctx context.Context, key string, s operator.Snapshot) (*operator.Timeline, error)
	Events(ctx context.Context, s operator.Snapshot, f operator.EventFilter) (operator.EventPage, error)
	ReadEditable(ctx context.Context, key, id string) (operator.EditableEvent, error)
	CheckEdit(key, id string, document []byte) string
	ReplaceEvent(ctx context.Context, key, id string, document []byte, version string) error
	ReplaceParked(ctx context.Context, key, id string, document []byte, version string, intent relay.Intent) (relay.Gate, error)
	PlanKeyReplay(ctx context.Context, key string, window time.Duration) (*operator.KeyReplay, error)
	SendKey(ctx context.Context, plan *operator.KeyReplay, progress func(events int)) error
}

// Letters has the use cases of dead letters.
type Letters interface {
	Consumers(ctx context.Context, management string) ([]string, error)
	ReadDeadLetters(ctx context.Context, consumer string, limit int) ([]operator.DeadLetter, bool, error)
	PlanResubmission(ctx context.Context, management, consumer string, all []operator.DeadLetter, chosen func(operator.DeadLetter) bool) (*operator.Resubmission, error)
	Resubmit(ctx context.Context, p *operator.Resubmission, progress func()) ([]operator.LetterFailure, error)
	Discard(ctx context.Context, consumer string, letters []operator.DeadLetter, progress func()) ([]operator.LetterFailure, error)
}

// LeaseCommand is a command to the owners of leases.
type LeaseCommand string

// The commands.
const (
	CommandPause   LeaseCommand = "pause"
	CommandResume  LeaseCommand = "resume"
	CommandRelease LeaseCommand = "release"
	CommandRetry   LeaseCommand = "retry"
	CommandRestart LeaseCommand = "restart"
)

// Receipts knows the events that a consumer in this process received; feedbox-dev has one.
type Receipts interface {
	// OfKey returns the receipts of one key by event id.
	OfKey(key string) map[string]Receipt
}

// Receipt has the times when the broker accepted an event and the consumer received it.
type Receipt struct{ Accepted, Received time.Time }

// NewPort returns the Port of an operator.
func NewPort(o *operator.Operator) Port { return operatorPort{o} }

type operatorPort struct{ *operator.Operator }

// LeaseList ignores records that are not leases, because the page must show the others.
func (o operatorPort) LeaseList(ctx context.Context) ([]changefeed.Lease, bool, error) {
	leases, err := o.Leases.Leases(ctx)
	if _, refused := errors.AsType[*changefeed.RefusedError](err); err != nil && !refused {
		return nil, false, err
	}
	paused, err := o.Leases.Paused(ctx)
	return leases, paused, err
}

func (o operatorPort) Hosts(ctx context.Context) ([]changefeed.Host, error) {
	return o.Leases.Hosts(ctx)
}

func (o operatorPort) Lag(ctx context.Context) ([]changefeed.RangeLag, error) {
	return o.Lags(ctx)
}

func (o operatorPort) Consumer(name string) (Port, error) {
	other, err := o.Operator.Consumer(name)
	return operatorPort{other}, err
}

func (o operatorPort) Gate(ctx context.Context, key string) (relay.Gate, error) {
	return o.Parked.Gate(ctx, key)
}

func (o operatorPort) CommandLeases(ctx context.Context, command LeaseCommand, leases ...string) error {
	all := len(leases) == 0
	switch command {
	case CommandPause:
		if all {
			return o.Leases.Pause(ctx)
		}
		return o.Leases.PauseLeases(ctx, leases...)
	case CommandResume:
		if all {
			return errors.Join(o.Leases.Resume(ctx), o.Leases.ResumeLeases(ctx))
		}
		return o.Leases.ResumeLeases(ctx, leases...)
	case CommandRelease:
		return o.Leases.Release(ctx, leases...)
	case CommandRetry:
		return o.Leases.Retry(ctx, leases...)
	case CommandRestart:
		return o.Leases.Restart(ctx, leases...)
	}
	return errors.New("unknown lease command " + string(command))
}
