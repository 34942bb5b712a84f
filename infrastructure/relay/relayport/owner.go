package relayport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedbox/changefeed"
	"feedbox/domain/fault"
)

// The parked events belong to one processor. Two processors that share them would close, drain
// and open each other's gates, although each reads the feed at its own position: a key is then
// sent by one while it is parked for the other. So the first relay that starts records its
// processor in a marker beside the parked events, and relays of other processors refuse to start.
//
//	        Claim: none                  Adopt by an operator
//	none ───────────────▶ owned by A ───────────────────────▶ owned by B
//	                       │      ▲                            (relays of A refuse to start)
//	                       └──────┘ Claim of A
//	                       Claim of B: OwnedError
//
// Parked events from before the marker belong to the first relay that starts.
//
// The marker also has the list of the broker's shards. With another list, some keys move to other
// topics, where their events overtake those that consumers have not handled yet. So a relay with
// another list refuses to start, until an operator has followed the procedure and adopts the list.
// A marker without a list is that of a broker without shards.
//
// The marker of the first container also has the other containers that relays have read. One that is removed
// from the configuration before its events were sent would otherwise not be known any more.

// ownerID is the id of the marker. No lease has it, because the ids of leases contain a dot.
const ownerID = "$owner"

// claimTries bounds the attempts of Claim if a marker exists that a lagging replica does not return.
const claimTries = 5

// owner is the marker.
type owner struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Processor string    `json:"processor"`
	Shards    []string  `json:"shards,omitempty"`
	Others    []string  `json:"others,omitempty"` // entries of FEEDBOX_RELAY_CONTAINERS
	At        time.Time `json:"at"`
}

// OwnedError reports that the parked events belong to another processor.
type OwnedError struct{ Owner, Processor string }

// Error implements error.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("the parked events belong to the processor %q, not to %q: two processors must not share them. "+
		"Give %q parked events of its own. If it replaces %q, stop all relays of %q and run feedbox parked adopt for each container with FEEDBOX_PROCESSOR=%s",
		e.Owner, e.Processor, e.Processor, e.Owner, e.Owner, e.Processor)
}

// ShardsError reports that events were sent to other shards. An empty list means the topic alone.
type ShardsError struct{ Recorded, Configured []string }

// Error implements error.
func (e *ShardsError) Error() string {
	list := func(shards []string) string {
		if len(shards) == 0 {
			return "one topic"
		}
		return strings.Join(shards, ",")
	}
	return fmt.Sprintf("the keys were divided among %s, and the configuration has %s: events of some keys would overtake earlier ones on another topic. "+
		"Restore the configuration, or follow Changing shards in the package documentation of feedbox/infrastructure/broker/servicebus, which ends with feedbox parked adopt for each container",
		list(e.Recorded), list(e.Configured))
}

// ErrDamagedOwner reports a marker that cannot be read. Adopt replaces it.
var ErrDamagedOwner = errors.New("the marker " + ownerID + " of the parked events is damaged and names no processor: run feedbox parked adopt")

// CheckShards returns a *ShardsError if the recorded shards are others.
func (s *Store) CheckShards(ctx context.Context, shards []string) error {
	known, _, err := s.readOwner(ctx)
	if err == nil && known.Processor != "" && !slices.Equal(known.Shards, shards) {
		err = &ShardsError{Recorded: known.Shards, Configured: shards}
	}
	return err
}

// Claim makes a processor the owner of the parked events and records the shards, unless others are
// recorded: then the error is an *OwnedError or a *ShardsError. Faults: Unavailable if the store did
// not answer.
func (s *Store) Claim(ctx context.Context, processor string, shards ...string) error {
	for range claimTries {
		known, _, err := s.readOwner(ctx)
		switch {
		case err != nil:
			return err
		case s.Markers == nil:
			return nil
		case known.Processor != "" && known.Processor != processor:
			return &OwnedError{Owner: known.Processor, Processor: processor}
		case known.Processor != "" && !slices.Equal(known.Shards, shards):
			return &ShardsError{Recorded: known.Shards, Configured: shards}
		case known.Processor != "":
			return nil
		}
		if err := s.writeOwner(ctx, owner{Processor: processor, Shards: shards}, ""); !errors.Is(err, changefeed.ErrExists) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "store_unavailable", "the replicas do not agree yet who owns the parked events; try again")
}

// Adopt makes a processor the owner of the parked events, records the shards, and returns the
// previous owner, which is empty if there was none or if it cannot be read.
func (s *Store) Adopt(ctx context.Context, processor string, shards ...string) (previous string, err error) {
	if s.Markers == nil {
		return "", fmt.Errorf("the store %s records no owner of its parked events: %w", s.Name, errors.ErrUnsupported)
	}
	known, etag, err := s.readOwner(ctx)
	if damaged := errors.Is(err, ErrDamagedOwner); err != nil && !damaged || !damaged && known.Processor == processor && slices.Equal(known.Shards, shards) {
		return known.Processor, err
	}
	return known.Processor, s.writeOwner(ctx, owner{Processor: processor, Shards: shards, Others: known.Others}, etag)
}

// RecordOthers adds other containers to those that relays have read. The parked events must be claimed.
func (s *Store) RecordOthers(ctx context.Context, others []string) error {
	for range claimTries {
		known, etag, err := s.readOwner(ctx)
		added := slices.DeleteFunc(slices.Clone(others), func(o string) bool { return slices.Contains(known.Others, o) })
		if err != nil || len(added) == 0 || etag == "" {
			return err
		}
		known.Others = append(known.Others, added...)
		if err := s.writeOwner(ctx, known, etag); !errors.Is(err, changefeed.ErrETagMismatch) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "store_unavailable", "other relays write the marker of the parked events at the same time; try again")
}

// Others returns the other containers that relays have read.
func (s *Store) Others(ctx context.Context) ([]string, error) {
	known, _, err := s.readOwner(ctx)
	return known.Others, err
}

// Owner returns the processor that owns the parked events, "" if none has claimed them.
func (s *Store) Owner(ctx context.Context) (string, error) {
	known, _, err := s.readOwner(ctx)
	return known.Processor, err
}

// readOwner returns the marker, the zero owner if there is none. It returns the ETag of a damaged one too.
func (s *Store) readOwner(ctx context.Context) (o owner, etag string, err error) {
	if s.Markers == nil {
		return o, "", nil
	}
	record, err := s.Markers.Read(ctx, ownerID)
	if errors.Is(err, changefeed.ErrNotFound) {
		return o, "", nil
	}
	if err != nil {
		return o, "", ownerFault("read", err)
	}
	if err := json.Unmarshal(record.Body, &o); err != nil || o.Processor == "" {
		return owner{}, record.ETag, errors.Join(ErrDamagedOwner, err)
	}
	return o, record.ETag, nil
}

// writeOwner creates the marker, or replaces the one with an ETag.
func (s *Store) writeOwner(ctx context.Context, o owner, etag string) error {
	o.ID, o.Type, o.At = ownerID, "owner", time.Now().UTC()
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the owner of the parked events: %w", err)
	}
	record := changefeed.Record{ID: ownerID, ETag: etag, Body: body}
	if etag == "" {
		_, err = s.Markers.Create(ctx, record)
	} else {
		_, err = s.Markers.Replace(ctx, record)
	}
	return ownerFault("write", err)
}

func ownerFault(do string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, changefeed.ErrPermanent), errors.Is(err, changefeed.ErrExists), errors.Is(err, changefeed.ErrETagMismatch):
		return fmt.Errorf("%s the owner of the parked events: %w", do, err)
	}
	return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", fmt.Errorf("%s the owner of the parked events: %w", do, err))
}
