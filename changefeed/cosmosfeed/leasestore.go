package cosmosfeed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var _ changefeed.LeaseStore = (*LeaseStore)(nil)

// LeaseStore keeps lease records in a Cosmos DB container whose partition key is /id, or
// /partitionKey as .NET's processor allows. The container needs neither a time to live nor
// an index beyond the default. It is safe for concurrent use.
type LeaseStore struct {
	container *azcosmos.ContainerClient
	path      atomic.Pointer[string] // of the partition key, once read
	keys      sync.Map               // partition key by id, of the listed records whose key is another one
}

// NewLeaseStore returns the store. It does no I/O.
func NewLeaseStore(client *azcosmos.Client, database, container string) (*LeaseStore, error) {
	coll, err := client.NewContainer(database, container)
	if err != nil {
		return nil, fmt.Errorf("cosmosfeed: lease container %q: %w", container, err)
	}
	return &LeaseStore{container: coll}, nil
}

// List implements changefeed.LeaseStore: one query over all partitions. Of records with one
// id, which a container keyed by /partitionKey allows, it returns the one that choose keeps.
func (s *LeaseStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	path, err := s.keyPath(ctx)
	if err != nil {
		return nil, err
	}
	pager := s.container.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@prefix", Value: prefix}}})
	var records []changefeed.Record
	kept := map[string]stored{}
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", s.container.ID(), absent(translate(err)))
		}
		for _, raw := range page.Items {
			next := stored{raw: raw}
			if err := json.Unmarshal(raw, &next); err != nil {
				return nil, fmt.Errorf("decode a record of %s: %w", s.container.ID(), err)
			}
			if twin, there := kept[next.ID]; there {
				next = choose(twin, next)
			}
			kept[next.ID] = next
		}
	}
	s.keys.Range(func(id, _ any) bool { // a record that is gone may be created again, with its id as the key
		if _, there := kept[id.(string)]; !there && strings.HasPrefix(id.(string), prefix) {
			s.keys.Delete(id)
		}
		return true
	})
	for id, r := range kept {
		if path == pathPartitionKey && cmp.Or(r.PartitionKey, id) != id {
			s.keys.Store(id, r.PartitionKey)
		} else {
			s.keys.Delete(id)
		}
		records = append(records, changefeed.Record{ID: id, ETag: r.ETag, Body: r.raw, Doubt: r.doubt})
	}
	return records, nil
}

// stored is a document of the container.
type stored struct {
	ID           string `json:"id"`
	ETag         string `json:"_etag"`
	PartitionKey string `json:"partitionKey"`
	Continuation string `json:"ContinuationToken"`
	Properties   struct {
		Signed string `json:"signed"` // package changefeed has written it
	} `json:"properties"`

	raw   []byte
	doubt error
}

// choose returns one of two records with one id. .NET's processor leaves them behind when two
// of its hosts initialize the container at once, each with a partition key of its own. Then
// both positions are those of delivered changes, and the lower one skips nothing.
//
// The choice must not change while the processor runs on one of them, so a record that this
// package has written is preferred, and among those the partition key alone decides. The other
// record is never written, and becomes harmless once it is deleted.
func choose(a, b stored) stored {
	rank := func(a, b stored) int {
		mine := func(r stored) int { return min(1, len(r.Properties.Signed)) }
		own := func(r stored) int {
			if r.PartitionKey == r.ID {
				return 1
			}
			return 0
		}
		lower := 0
		if mine(a)+mine(b) == 0 { // longer numbers are higher
			lower = cmp.Or(cmp.Compare(len(a.Continuation), len(b.Continuation)), cmp.Compare(a.Continuation, b.Continuation))
		}
		return cmp.Or(cmp.Compare(mine(b), mine(a)), lower, cmp.Compare(own(b), own(a)), cmp.Compare(a.PartitionKey, b.PartitionKey))
	}
	if rank(b, a) < 0 {
		a, b = b, a
	}
	a.doubt = fmt.Errorf("two records have this id; the one with the partition key %q is used, the one with %q is not: delete that one", a.PartitionKey, b.PartitionKey)
	return a
}

// failed wraps the error of an operation on a record. A lease appears with its short name,
// because such errors reach logs and the lease itself. It returns nil for nil.
func failed(do, id string, err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(id, "..") { // only lease ids contain it, see package changefeed
		id = "lease " + changefeed.LeaseName(id)
	}
	return fmt.Errorf("%s %s: %w", do, id, translate(err))
}

// Read implements changefeed.LeaseStore.
func (s *LeaseStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	key, err := s.key(ctx, id)
	if err != nil {
		return changefeed.Record{}, err
	}
	resp, err := s.container.ReadItem(ctx, key, id, nil)
	return changefeed.Record{ID: id, ETag: string(resp.ETag), Body: resp.Value}, failed("read", id, err)
}

// Create implements changefeed.LeaseStore.
func (s *LeaseStore) Create(ctx context.Context, record changefeed.Record) (string, error) {
	key, body, err := s.item(ctx, record)
	if err != nil {
		return "", err
	}
	resp, err := s.container.CreateItem(ctx, key, body, nil)
	return string(resp.ETag), failed("create", record.ID, err)
}

// Replace implements changefeed.LeaseStore.
func (s *LeaseStore) Replace(ctx context.Context, record changefeed.Record) (string, error) {
	match, err := ifMatch(record.ETag)
	if err != nil {
		return "", failed("replace", record.ID, err)
	}
	key, body, err := s.item(ctx, record)
	if err != nil {
		return "", err
	}
	resp, err := s.container.ReplaceItem(ctx, key, record.ID, body, match)
	return string(resp.ETag), failed("replace", record.ID, err)
}

// Delete implements changefeed.LeaseStore.
func (s *LeaseStore) Delete(ctx context.Context, id, etag string) error {
	match, err := ifMatch(etag)
	if err != nil {
		return failed("delete", id, err)
	}
	key, err := s.key(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.container.DeleteItem(ctx, key, id, match)
	return failed("delete", id, err)
}

// ifMatch returns options for a write that requires an ETag. It refuses an empty one,
// because the write would then be unconditional.
func ifMatch(etag string) (*azcosmos.ItemOptions, error) {
	if etag == "" {
		return nil, wrap(changefeed.ErrETagMismatch, errors.New("no ETag given"))
	}
	return &azcosmos.ItemOptions{IfMatchEtag: (*azcore.ETag)(&etag)}, nil
}

// Partition key paths a lease container may have.
const pathID, pathPartitionKey = "/id", "/partitionKey"

// keyPath returns the container's partition key path. It reads it the first time only.
func (s *LeaseStore) keyPath(ctx context.Context) (string, error) {
	if path := s.path.Load(); path != nil {
		return *path, nil
	}
	resp, err := s.container.Read(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("read lease container %s: %w", s.container.ID(), absent(translate(err)))
	}
	paths := resp.ContainerProperties.PartitionKeyDefinition.Paths
	if len(paths) != 1 || (paths[0] != pathID && paths[0] != pathPartitionKey) {
		return "", fmt.Errorf("lease container %s has the partition key %v; create it with %s: %w", s.container.ID(), paths, pathID, changefeed.ErrPermanent)
	}
	s.path.Store(&paths[0])
	return paths[0], nil
}

// key returns the partition key of a record: its id, unless .NET chose another value.
func (s *LeaseStore) key(ctx context.Context, id string) (azcosmos.PartitionKey, error) {
	_, err := s.keyPath(ctx)
	value := id
	if known, listed := s.keys.Load(id); listed {
		value = known.(string)
	}
	return azcosmos.NewPartitionKeyString(value), err
}

// item returns the key and the body of a record. A container keyed by /partitionKey needs
// that member in the body.
func (s *LeaseStore) item(ctx context.Context, record changefeed.Record) (azcosmos.PartitionKey, []byte, error) {
	key, err := s.key(ctx, record.ID)
	if err != nil || *s.path.Load() == pathID {
		return key, record.Body, err
	}
	if member := jsonscan.Member(record.Body, pathPartitionKey[1:]); member != nil {
		var value string // the record's own key, also if the last listing lacks the record
		if json.Unmarshal(member, &value) == nil {
			key = azcosmos.NewPartitionKeyString(value)
		}
		return key, record.Body, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(record.Body, &members); err != nil || members == nil {
		return key, nil, errors.Join(fmt.Errorf("record %s is not a JSON object", record.ID), err)
	}
	if members[pathPartitionKey[1:]], err = json.Marshal(record.ID); err != nil {
		return key, nil, fmt.Errorf("record %s: %w", record.ID, err)
	}
	body, err := json.Marshal(members)
	return key, body, err
}
