package parked

import (
	"context"
	"errors"
	"slices"
	"strings"

	"feedbox/application/relay"
)

// Records keeps gates and parked events. Errors are faults, except ErrChanged. It is safe for
// concurrent use.
type Records interface {
	// Find returns the gate of key and its events with these ids, or the zero Gate. The events
	// must not be read before the gate.
	Find(ctx context.Context, key string, ids []string) (Gate, []relay.ParkedEvent, error)
	// Gates returns all gates, or only those that were stored as wanted.
	Gates(ctx context.Context, wanted bool) ([]Gate, error)
	// First is that of relay.DrainStore.
	First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error)
	// Skipped returns the skipped events of key, in the order of their positions.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
	// SkippedAmong returns those of the events that were skipped.
	SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error)
	// Commit stores a change, everything or nothing, and returns the new version of the gate.
	// If the stored gate has another version, the error wraps ErrChanged.
	Commit(ctx context.Context, c *Change) (version string, err error)
}

// ErrChanged reports that a gate was changed after it was read.
var ErrChanged = errors.New("the gate was changed after it was read")

// Gate is a stored gate.
type Gate struct {
	Key     string
	Version string // "": there is none
	Data    []byte // JSON
}

// Change is the change of a gate and its events by one commit.
type Change struct {
	// Gate replaces the stored gate with its version, or creates one if Version is empty.
	Gate   Gate
	Wanted bool // Records.Gates returns the gate as wanted
	Open   bool // the gate is removed instead
	// Put are new events of the gate.
	Put []relay.ParkedEvent
	// Remove are the ids of events that leave the gate.
	Remove []string
	// Replace has the new document of one of the events; nil: none.
	Replace *relay.ParkedEvent
	// Skipped is the record of one of the removed events; nil: none.
	Skipped *relay.Skipped
}

// OfConsumer returns the parked events of a consumer, in records that no relay uses. Several consumers
// may share them: the name is part of each stored key.
func OfConsumer(name string, r Records) (Store, error) {
	if name == "" || strings.Contains(name, "/") {
		return Store{}, errors.New("parked events of a consumer: its name must not be empty or contain a slash")
	}
	return Store{Records: scoped{r, consumerPrefix + name + "/"}}, nil
}

// consumerPrefix begins the keys of the records of consumers.
const consumerPrefix = "consumer/"

// Consumers returns the names of the consumers with parked keys in the records of OfConsumer, sorted.
func Consumers(ctx context.Context, r Records) (names []string, err error) {
	gates, err := r.Gates(ctx, false)
	for _, g := range gates {
		if rest, ok := strings.CutPrefix(g.Key, consumerPrefix); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// scoped are the records whose keys have a prefix, which its callers do not see.
type scoped struct {
	records Records
	prefix  string
}

func (s scoped) of(events []relay.ParkedEvent) []relay.ParkedEvent {
	for i := range events {
		events[i].Key = strings.TrimPrefix(events[i].Key, s.prefix)
	}
	return events
}

// Find implements Records.
func (s scoped) Find(ctx context.Context, key string, ids []string) (Gate, []relay.ParkedEvent, error) {
	g, events, err := s.records.Find(ctx, s.prefix+key, ids)
	g.Key = strings.TrimPrefix(g.Key, s.prefix)
	return g, s.of(events), err
}

// Gates implements Records.
func (s scoped) Gates(ctx context.Context, wanted bool) (own []Gate, err error) {
	all, err := s.records.Gates(ctx, wanted)
	for _, g := range all {
		if key, ok := strings.CutPrefix(g.Key, s.prefix); ok {
			g.Key = key
			own = append(own, g)
		}
	}
	return own, err
}

// First implements Records.
func (s scoped) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	events, err := s.records.First(ctx, s.prefix+key, limit, maxBytes)
	return s.of(events), err
}

// Skipped implements Records.
func (s scoped) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	skipped, err := s.records.Skipped(ctx, s.prefix+key)
	for i := range skipped {
		skipped[i].Event.Key = key
	}
	return skipped, err
}

// SkippedAmong implements Records.
func (s scoped) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	stored := slices.Clone(events)
	for i := range stored {
		stored[i].Key = s.prefix + stored[i].Key
	}
	skipped, err := s.records.SkippedAmong(ctx, stored)
	own := make(map[relay.EventRef]bool, len(skipped))
	for e := range skipped {
		own[relay.EventRef{Key: strings.TrimPrefix(e.Key, s.prefix), ID: e.ID}] = true
	}
	return own, err
}

// Commit implements Records.
func (s scoped) Commit(ctx context.Context, c *Change) (string, error) {
	stored := *c
	stored.Gate.Key = s.prefix + c.Gate.Key
	stored.Put = slices.Clone(c.Put)
	for i := range stored.Put {
		stored.Put[i].Key = s.prefix + stored.Put[i].Key
	}
	if c.Replace != nil {
		replace := *c.Replace
		replace.Key = s.prefix + replace.Key
		stored.Replace = &replace
	}
	if c.Skipped != nil {
		skipped := *c.Skipped
		skipped.Event.Key = s.prefix + skipped.Event.Key
		stored.Skipped = &skipped
	}
	return s.records.Commit(ctx, &stored)
}
