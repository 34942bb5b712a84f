package cosmos

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
)

// ParkedLot keeps parked events in a container of its own, partitioned by the key of
// the events. It implements relay.Lot, relay.DrainLot and what an operator needs.
//
//	partition "b5e2e7aa-…":  $gate          why it is closed, how many wait, what is wanted
//	                         d6a5f4b2-…     a parked event, with its place in the line
//	                         $skipped-…     the record of one that was left out
//	partition "$closed":     1f0c9a7e…      a key that may be parked
//	                         $fence         what Closed writes before it reads
//
// What belongs together changes in one transaction that begins with the gate, guarded
// by its ETag: an event comes behind a gate only while it is closed, and a gate opens
// only while nothing is behind it. A ParkedLot sees its own writes, by the session token
// of the last one of each range; another process may see them a little later, which the
// ETags make harmless.
//
// One thing no ETag guards: that a new owner of a range knows which keys its predecessor
// has parked. A query may be answered by a replica that is behind. So the closed keys are
// listed in one logical partition, whatever range they belong to:
//
//	to close   gate is absent ─▶ entry e ─▶ gate, which notes e ─▶ the owner's checkpoint
//	to open    the gate goes, under its ETag ─▶ entry e goes, if it is still e
//	to adopt   lease acquired ─▶ write $fence ─▶ read the entries at the fence's position
//
// An entry is stored before its gate, a gate before the checkpoint behind its event, and
// that before the successor has the lease: all entries that matter lie before the fence in
// the order of their partition, and a read at the fence's session token shows them.
// A process that stops between two of the writes leaves an entry too many, which costs the
// owner one look at the gate; sweep takes it away later. Each closing writes its entry
// anew, under another ETag: opening an earlier gate takes no later entry away. Splits and
// merges of the feed or of this container change nothing of it: the entries stand in one
// partition, and who reads them takes all. Session consistency or stronger is needed.
//
// That a gate is open is taken from the primary alone (Gate), since then its key is sent.
//
// It is safe for concurrent use.
type ParkedLot struct {
	container *azcosmos.ContainerClient

	mu      sync.Mutex // guards session
	session sessionToken
}

var (
	_ relay.Lot      = (*ParkedLot)(nil)
	_ relay.DrainLot = (*ParkedLot)(nil)
)

// NewParkedLot returns the lot in container, whose partition key is PartitionKeyPath and
// whose documents must not expire.
func NewParkedLot(container *azcosmos.ContainerClient) (*ParkedLot, error) {
	if container == nil {
		return nil, errors.New("cosmos: a lot for parked events needs a container")
	}
	return &ParkedLot{container: container}, nil
}

// Limits of one transaction: the service takes 100 operations and 2 MB, and the gate
// needs room too.
const (
	lotOperations = 90
	lotBytes      = 1_500_000
)

// parkTries bounds how often Park runs into changes by others.
const parkTries = 50

// Park implements relay.Lot.
func (l *ParkedLot) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) error {
	what := "park events of key " + key
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	var there map[string]bool // ids that are parked already; nil = not known
	var err error
	for range parkTries {
		var gate relay.Gate
		gate, err = l.Gate(ctx, key)
		switch {
		case fault.Is(err, fault.NotFound) && closing == nil:
			if len(events) > 0 {
				l.sweep(ctx, key, events[0].ParkedAt)
			}
			return relay.ErrGateOpen
		case fault.Is(err, fault.NotFound):
			gate = relay.Gate{Key: key, Closing: *closing}
			if gate.Listed, err = l.list(ctx, key, closing.At); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		for len(events) > 0 || gate.Version == "" {
			var taken int
			taken, gate, err = l.parkSome(ctx, what, gate, events, there)
			if err != nil {
				break
			}
			events = events[taken:]
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errParkedAlready) && there == nil:
			if there, err = l.parkedIDs(ctx, key); err != nil {
				return err
			}
		case errors.Is(err, errParkedAlready), !changedMeanwhile(err):
			return err
		}
	}
	return err
}

// errParkedAlready says that an event is there already.
var errParkedAlready = errors.New("the event is parked already")

// changedMeanwhile reports whether the gate was not as it was read.
func changedMeanwhile(err error) bool {
	return fault.Is(err, fault.PreconditionFailed) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

// parkSome parks the first of events, as many as one transaction takes, leaving out
// those in there. It returns how many are dealt with and the gate as stored.
func (l *ParkedLot) parkSome(ctx context.Context, what string, gate relay.Gate, events []relay.ParkedEvent, there map[string]bool) (int, relay.Gate, error) {
	var bodies [][]byte
	taken, size := 0, 0
	next := gate
	for _, e := range events {
		if there[e.ID] {
			taken++
			continue
		}
		e.Key, e.Position = gate.Key, next.Last+1
		body, err := newParkedDocument(&e).encode(e.Document)
		if err != nil {
			return 0, gate, err
		}
		if size += len(body); len(bodies) > 0 && (size > lotBytes || len(bodies) == lotOperations) {
			break
		}
		bodies = append(bodies, body)
		next.Last++
		next.Events++
		taken++
	}
	if len(bodies) == 0 && gate.Version != "" {
		return taken, gate, nil
	}
	b, err := l.begin(next)
	if err != nil {
		return 0, gate, err
	}
	for _, body := range bodies {
		b.CreateItem(body, nil)
	}
	stored, failed, err := l.execute(ctx, what, next, b)
	if err != nil && failed > 0 && fault.Is(err, fault.Conflict) {
		err = fmt.Errorf("%w: %w", errParkedAlready, err)
	}
	return taken, stored, err
}

// begin starts a transaction with the write of the gate: it is created if it has no
// version, else replaced.
func (l *ParkedLot) begin(gate relay.Gate) (azcosmos.TransactionalBatch, error) {
	b := l.container.NewTransactionalBatch(keyValue(gate.Key))
	body, err := encodeGate(gate)
	if err != nil {
		return b, err
	}
	if gate.Version == "" {
		b.CreateItem(body, nil)
		return b, nil
	}
	etag := azcore.ETag(gate.Version)
	b.ReplaceItem(gateID, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
	return b, nil
}

// execute runs a transaction of begin and returns the gate as stored, or which of its
// operations was refused, -1 if it was the request.
func (l *ParkedLot) execute(ctx context.Context, what string, gate relay.Gate, b azcosmos.TransactionalBatch) (relay.Gate, int, error) {
	reply, err := l.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil {
		l.saw(sessionOf(err))
		return gate, -1, asFault(what, err)
	}
	l.saw(reply.SessionToken)
	if !reply.Success {
		for i, result := range reply.OperationResults {
			if status := int(result.StatusCode); status >= 400 && status != statusFailedDependency {
				return gate, i, statusFault(fmt.Sprintf("%s: operation %d", what, i), status, reply.RawResponse, errRefused)
			}
		}
		return gate, -1, asFault(what, errRefused)
	}
	if len(reply.OperationResults) == 0 {
		return gate, -1, asFault(what, errNoResult)
	}
	gate.Version = string(reply.OperationResults[0].ETag)
	return gate, -1, nil
}

// statusFailedDependency (424) is that of operations that failed for another's sake.
const statusFailedDependency = 424

// saw notes a session token.
func (l *ParkedLot) saw(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.merge(token)
}

// sawReply is saw for the answers of the SDK, which may lack a token.
func (l *ParkedLot) sawReply(token *string) {
	if token != nil {
		l.saw(*token)
	}
}

// seen returns the session token to read with.
func (l *ParkedLot) seen() *string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session.option()
}
