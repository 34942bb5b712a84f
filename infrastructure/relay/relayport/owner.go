package relayport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ownerID is the id of the marker. No lease has it, because the ids of leases contain a dot.
const ownerID = "$owner"

// claimTries bounds the attempts of Claim if a marker exists that a lagging replica does not return.
const claimTries = 5

// owner is the marker.
type owner struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Processor string    `json:"processor"`
	At        time.Time `json:"at"`
}

// OwnedError reports that the parked events belong to another processor.
type OwnedError struct{ Owner, Processor string }

// Error implements error.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("the parked events belong to the processor %q, not to %q: two processors must not share them. "+
		"Give %q parked events of its own. If it replaces %q, stop all relays of %q and run feedbox parked adopt with FEEDBOX_PROCESSOR=%s",
		e.Owner, e.Processor, e.Processor, e.Owner, e.Owner, e.Processor)
}

// Claim makes a processor the owner of the parked events, unless another is: then the error is an
// *OwnedError. Faults: Unavailable if the store did not answer.
func (s *Store) Claim(ctx context.Context, processor string) error {
	for range claimTries {
		known, _, err := s.readOwner(ctx)
		switch {
		case err != nil:
			return err
		case known == processor || s.Markers == nil:
			return nil
		case known != "":
			return &OwnedError{Owner: known, Processor: processor}
		}
		if err := s.writeOwner(ctx, processor, ""); !errors.Is(err, changefeed.ErrExists) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "store_unavailable", "the replicas do not agree yet who owns the parked events; try again")
}

// Adopt makes a processor the owner of the parked events and returns the previous one, which is
// empty if there was none.
func (s *Store) Adopt(ctx context.Context, processor string) (previous string, err error) {
	if s.Markers == nil {
		return "", fmt.Errorf("the store %s records no owner of its parked events: %w", s.Name, errors.ErrUnsupported)
	}
	previous, etag, err := s.readOwner(ctx)
	if err != nil || previous == processor {
		return previous, err
	}
	return previous, s.writeOwner(ctx, processor, etag)
}

// Owner returns the processor that owns the parked events, "" if none has claimed them.
func (s *Store) Owner(ctx context.Context) (string, error) {
	known, _, err := s.readOwner(ctx)
	return known, err
}

func (s *Store) readOwner(ctx context.Context) (processor, etag string, err error) {
	if s.Markers == nil {
		return "", "", nil
	}
	record, err := s.Markers.Read(ctx, ownerID)
	if errors.Is(err, changefeed.ErrNotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", ownerFault("read", err)
	}
	var o owner
	if err := json.Unmarshal(record.Body, &o); err != nil || o.Processor == "" {
		return "", "", fmt.Errorf("the marker %s of the parked events names no processor (%w): run feedbox parked adopt", ownerID, errors.Join(err, errors.New("damaged")))
	}
	return o.Processor, record.ETag, nil
}

// writeOwner creates the marker, or replaces the one with an ETag.
func (s *Store) writeOwner(ctx context.Context, processor, etag string) error {
	body, err := json.Marshal(owner{ID: ownerID, Type: "owner", Processor: processor, At: time.Now().UTC()})
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
