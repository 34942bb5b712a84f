package parked

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Store implements relay.ParkedStore, relay.DrainStore and the commands of an operator in a
// container of parked events. It is safe for concurrent use.
type Store struct {
	container *azcosmos.ContainerClient
	prefix    string // of partitions; "" for the relay
	scope     string // suffix of the types of documents; "" for the relay

	mu      sync.Mutex // guards the fields below
	session store.Session
	ahead   map[string]lagging // by the kind and the key of reads
}

// lagging is the time in which no replica has reached the session, from the first to the last read.
type lagging struct{ since, last time.Time }

// NewStore returns the store in container. The partition key must be /partitionKey, and documents
// must not expire.
func NewStore(container *azcosmos.ContainerClient) (*Store, error) {
	if container == nil {
		return nil, errors.New("parked: a store of parked events needs a container")
	}
	return &Store{container: container, ahead: map[string]lagging{}}, nil
}

// Of returns the parked events of a consumer in the container of s, for the option Park of a consumer kit.
// Relays and other consumers may share the container: the documents of each have other types, and other
// partitions unless the key of an event begins with "consumer/".
func (s *Store) Of(consumer string) (*Store, error) {
	if consumer == "" || strings.Contains(consumer, "/") {
		return nil, errors.New("parked events of a consumer: its name must not be empty or contain a slash")
	}
	return &Store{container: s.container, ahead: map[string]lagging{}, prefix: "consumer/" + consumer + "/", scope: ":" + consumer}, nil
}

func (s *Store) partition(key string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(s.prefix + key)
}

// key is the inverse of partition.
func (s *Store) key(partition string) string { return strings.TrimPrefix(partition, s.prefix) }

// kind returns the type of a document.
func (s *Store) kind(of string) string { return of + s.scope }

func (s *Store) parkedDocument(e *relay.ParkedEvent) parkedDocument {
	d := newParkedDocument(e)
	d.PartitionKey, d.Type = s.prefix+e.Key, s.kind(d.Type)
	return d
}

// Limits of one transaction. The service allows 100 operations and 2 MB, including the gate.
const (
	maxOperations = 90
	maxBytes      = 1_500_000
)

// parkTries is the maximum number of attempts of Park if the gate changes in the meantime.
const parkTries = 50

// Park implements relay.ParkedStore.
func (s *Store) Park(ctx context.Context, key string, events []relay.ParkedEvent, closing *relay.Closing) (relay.ParkResult, error) {
	what := "park events of key " + key
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	var done relay.ParkResult
	var there map[string]relay.ParkedEvent // those of events that are parked; nil = not known
	var err error
	for range parkTries {
		var gate relay.Gate
		gate, err = s.Gate(ctx, key)
		switch {
		case fault.Is(err, fault.NotFound) && closing == nil:
			if len(events) > 0 {
				s.sweep(ctx, key, events[0].ParkedAt)
			}
			return done, relay.ErrGateOpen
		case fault.Is(err, fault.NotFound):
			gate = relay.NewGate(key, *closing)
			if gate.Listed, err = s.list(ctx, key, closing.At); err != nil {
				return done, err
			}
		case err != nil:
			return done, err
		}
		for len(events) > 0 || gate.Version == "" {
			var taken int
			taken, gate, err = s.parkSome(ctx, what, gate, events, there, &done)
			if err != nil {
				break
			}
			events = events[taken:]
		}
		switch {
		case err == nil:
			return done, nil
		case errors.Is(err, errParkedAlready) && there == nil:
			if there, err = s.parkedAmong(ctx, key, events); err != nil {
				return done, err
			}
		case errors.Is(err, errParkedAlready), !changedMeanwhile(err):
			return done, err
		}
	}
	return done, err
}

var errParkedAlready = errors.New("the event is parked already")

// changedMeanwhile reports whether the gate was changed after it was read.
func changedMeanwhile(err error) bool {
	return fault.Is(err, fault.PreconditionFailed) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

// parkSome parks the first of events, as many as one transaction allows, without those in there
// and those that the gate does not admit. It returns the number of processed events and the stored
// gate, and adds the results to done.
func (s *Store) parkSome(ctx context.Context, what string, gate relay.Gate, events []relay.ParkedEvent, there map[string]relay.ParkedEvent, done *relay.ParkResult) (int, relay.Gate, error) {
	var bodies [][]byte
	var parked, before []relay.ParkedEvent
	taken, size := 0, 0
	next := gate
	for _, e := range events {
		with := next
		e.Key = gate.Key
		if !with.Admit(&e) {
			taken++
			continue
		}
		if have, known := there[e.ID]; known {
			before = append(before, have)
			taken++
			continue
		}
		body, err := s.parkedDocument(&e).encode(e.Document)
		if err != nil {
			return 0, gate, err
		}
		if size += len(body); len(bodies) > 0 && (size > maxBytes || len(bodies) == maxOperations) {
			break
		}
		next, bodies, parked = with, append(bodies, body), append(parked, e)
		taken++
	}
	if len(bodies) > 0 || gate.Version == "" {
		b, err := s.begin(next)
		if err != nil {
			return 0, gate, err
		}
		for _, body := range bodies {
			b.CreateItem(body, nil)
		}
		var failed int
		if gate, failed, err = s.execute(ctx, what, next, b); err != nil {
			switch {
			case failed > 0 && fault.Is(err, fault.Conflict):
				err = fmt.Errorf("%w: %w", errParkedAlready, err)
			case len(parked) > 0 && fault.Is(err, fault.TooLarge): // only of another writer than our outbox
				err = fmt.Errorf("event %s (%d bytes) does not fit into one transaction with its gate: replace its document by a shorter one or delete it, and restart the relay: %w", parked[0].ID, len(parked[0].Document), err)
			}
			return 0, gate, err
		}
	}
	done.Parked, done.Existing = append(done.Parked, parked...), append(done.Existing, before...)
	return taken, gate, nil
}

// begin starts a transaction with the write of the gate, which is created if it has no version.
func (s *Store) begin(gate relay.Gate) (azcosmos.TransactionalBatch, error) {
	b := s.container.NewTransactionalBatch(s.partition(gate.Key))
	body, err := s.encodeGate(gate)
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

// execute runs a transaction of begin. It returns the stored gate, or the index of the refused
// operation, -1 if the request failed.
func (s *Store) execute(ctx context.Context, what string, gate relay.Gate, b azcosmos.TransactionalBatch) (relay.Gate, int, error) {
	reply, err := s.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil {
		s.mergeSession(store.SessionOf(err))
		return gate, -1, store.AsFault(what, err)
	}
	s.mergeSession(reply.SessionToken)
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

func (s *Store) mergeSession(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Merge(token)
}

// mergeReply is mergeSession for replies of the SDK, which may lack a token.
func (s *Store) mergeReply(token *string) {
	if token != nil {
		s.mergeSession(*token)
	}
}

const (
	// sessionPatience is far longer than a replica lags.
	sessionPatience = time.Minute
	// maxAhead bounds the memory for reads that are not repeated.
	maxAhead = 1000
)

// noteRead forgets the session token if no replica reaches it. An unplanned failover may lose the
// writes that the token names, and then reads would fail until there are as many new ones. It may lose
// those of one partition, so the success of another read proves nothing.
// Without a token the Store is in the state of a new process, see the package documentation.
func (s *Store) noteRead(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	lag, failing := s.ahead[what]
	if now.Sub(lag.last) > 10*sessionPatience {
		// The read was not repeated, so nothing is known of the time in between.
		lag.since = now
	}
	lag.last = now
	switch {
	case !store.SessionNotAvailable(err):
		delete(s.ahead, what)
	case now.Sub(lag.since) > sessionPatience:
		s.session = store.Session{}
		clear(s.ahead)
	case failing || len(s.ahead) < maxAhead:
		s.ahead[what] = lag
	}
}

// sessionToken returns the session token for reads.
func (s *Store) sessionToken() *string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session.Option()
}
