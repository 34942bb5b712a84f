package parked

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Lot is the container of parked events; the package documentation says how it is kept.
// It implements relay.ParkedStore, relay.DrainStore and what an operator needs. It is safe for
// concurrent use.
type Lot struct {
	container *azcosmos.ContainerClient

	mu      sync.Mutex // guards session
	session store.Session
}

var (
	_ relay.ParkedStore = (*Lot)(nil)
	_ relay.DrainStore  = (*Lot)(nil)
)

// New returns the lot in container, whose partition key is /partitionKey and whose
// documents must not expire.
func New(container *azcosmos.ContainerClient) (*Lot, error) {
	if container == nil {
		return nil, errors.New("parked: a lot for parked events needs a container")
	}
	return &Lot{container: container}, nil
}

// Limits of one transaction: the service takes 100 operations and 2 MB, and the gate
// needs room too.
const (
	lotOperations = 90
	lotBytes      = 1_500_000
)

// parkTries bounds how often Park runs into changes by others.
const parkTries = 50

// Park implements relay.ParkedStore.
func (l *Lot) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	what := "park events of key " + key
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	var done relay.ParkResult
	var there map[string]relay.ParkedEvent // those that are parked already; nil = not known
	var err error
	for range parkTries {
		var gate relay.Gate
		gate, err = l.Gate(ctx, key)
		switch {
		case fault.Is(err, fault.NotFound) && closing == nil:
			if len(events) > 0 {
				l.sweep(ctx, key, events[0].ParkedAt)
			}
			return done, relay.ErrGateOpen
		case fault.Is(err, fault.NotFound):
			gate = relay.NewGate(key, *closing)
			if gate.Listed, err = l.list(ctx, key, closing.At); err != nil {
				return done, err
			}
		case err != nil:
			return done, err
		}
		for len(events) > 0 || gate.Version == "" {
			var taken int
			taken, gate, err = l.parkSome(ctx, what, gate, events, there, &done)
			if err != nil {
				break
			}
			events = events[taken:]
		}
		switch {
		case err == nil:
			return done, nil
		case errors.Is(err, errParkedAlready) && there == nil:
			if there, err = l.parked(ctx, key); err != nil {
				return done, err
			}
		case errors.Is(err, errParkedAlready), !changedMeanwhile(err):
			return done, err
		}
	}
	return done, err
}

// errParkedAlready says that an event is there already.
var errParkedAlready = errors.New("the event is parked already")

// changedMeanwhile reports whether the gate was not as it was read.
func changedMeanwhile(err error) bool {
	return fault.Is(err, fault.PreconditionFailed) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

// parkSome parks the first of events, as many as one transaction takes, leaving out those
// in there and those that the key has passed. It returns how many are dealt with and the
// gate as stored, and adds to done what became of them.
func (l *Lot) parkSome(ctx context.Context, what string, gate relay.Gate, events []relay.ParkedEvent, there map[string]relay.ParkedEvent, done *relay.ParkResult) (int, relay.Gate, error) {
	var bodies [][]byte
	var parked, before []relay.ParkedEvent
	taken, size := 0, 0
	next := gate
	for _, e := range events {
		have, known := there[e.ID]
		with := next
		e.Key = gate.Key
		if known || !with.Admit(&e) {
			if known {
				before = append(before, have)
			}
			taken++
			continue
		}
		body, err := newParkedDocument(&e).encode(e.Document)
		if err != nil {
			return 0, gate, err
		}
		if size += len(body); len(bodies) > 0 && (size > lotBytes || len(bodies) == lotOperations) {
			break
		}
		next, bodies, parked = with, append(bodies, body), append(parked, e)
		taken++
	}
	if len(bodies) > 0 || gate.Version == "" {
		b, err := l.begin(next)
		if err != nil {
			return 0, gate, err
		}
		for _, body := range bodies {
			b.CreateItem(body, nil)
		}
		var failed int
		if gate, failed, err = l.execute(ctx, what, next, b); err != nil {
			if failed > 0 && fault.Is(err, fault.Conflict) {
				err = fmt.Errorf("%w: %w", errParkedAlready, err)
			}
			return 0, gate, err
		}
	}
	done.Parked, done.Existing = append(done.Parked, parked...), append(done.Existing, before...)
	return taken, gate, nil
}

// begin starts a transaction with the write of the gate: it is created if it has no
// version, else replaced.
func (l *Lot) begin(gate relay.Gate) (azcosmos.TransactionalBatch, error) {
	b := l.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(gate.Key))
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
func (l *Lot) execute(ctx context.Context, what string, gate relay.Gate, b azcosmos.TransactionalBatch) (relay.Gate, int, error) {
	reply, err := l.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil {
		l.saw(store.SessionOf(err))
		return gate, -1, store.AsFault(what, err)
	}
	l.saw(reply.SessionToken)
	if !reply.Success {
		for i, result := range reply.OperationResults {
			if status := int(result.StatusCode); status >= 400 && status != http.StatusFailedDependency {
				return gate, i, store.StatusFault(fmt.Sprintf("%s: operation %d", what, i), status, reply.RawResponse, store.ErrRefused)
			}
		}
		return gate, -1, store.AsFault(what, store.ErrRefused)
	}
	if len(reply.OperationResults) == 0 {
		return gate, -1, store.AsFault(what, store.ErrNoResult)
	}
	gate.Version = string(reply.OperationResults[0].ETag)
	return gate, -1, nil
}

// saw notes a session token.
func (l *Lot) saw(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.Merge(token)
}

// sawReply is saw for the answers of the SDK, which may lack a token.
func (l *Lot) sawReply(token *string) {
	if token != nil {
		l.saw(*token)
	}
}

// seen returns the session token to read with.
func (l *Lot) seen() *string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session.Option()
}
