package cosmosfeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var _ changefeed.LeaseStore = (*LeaseStore)(nil)

// LeaseStore keeps lease records in a Cosmos DB container whose partition key is
// /id, or /partitionKey as .NET's processor allows. It needs no time to live and
// no index beyond the default. It is safe for concurrent use.
type LeaseStore struct {
	container *azcosmos.ContainerClient

	mu   sync.Mutex        // guards what follows
	path string            // the partition key path, once read
	keys map[string]string // id to partition key, where they differ
}

// NewLeaseStore returns the store. It does no I/O.
func NewLeaseStore(client *azcosmos.Client, database, container string) (*LeaseStore, error) {
	coll, err := client.NewContainer(database, container)
	if err != nil {
		return nil, fmt.Errorf("cosmosfeed: lease container %q: %w", container, err)
	}
	return &LeaseStore{container: coll, keys: map[string]string{}}, nil
}

// List implements changefeed.LeaseStore: one query over all partitions.
func (s *LeaseStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	if _, err := s.keyPath(ctx); err != nil {
		return nil, err
	}
	pager := s.container.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@prefix", Value: prefix}}})
	var records []changefeed.Record
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", s.container.ID(), absent(translate(err)))
		}
		for _, raw := range page.Items {
			record, err := s.record(raw)
			if err != nil {
				return nil, err
			}
			records = append(records, record)
		}
	}
	return records, nil
}

// record reads id and ETag out of a stored document.
func (s *LeaseStore) record(raw []byte) (changefeed.Record, error) {
	var head struct {
		ID           string `json:"id"`
		ETag         string `json:"_etag"`
		PartitionKey string `json:"partitionKey"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return changefeed.Record{}, fmt.Errorf("decode a record of %s: %w", s.container.ID(), err)
	}
	if head.PartitionKey != "" && head.PartitionKey != head.ID {
		s.mu.Lock()
		s.keys[head.ID] = head.PartitionKey
		s.mu.Unlock()
	}
	return changefeed.Record{ID: head.ID, ETag: head.ETag, Body: raw}, nil
}

// named is a record as errors call it: a lease by its short name, as people do.
func named(id string) string {
	if strings.Contains(id, "..") { // of leases alone, see package changefeed
		return "lease " + changefeed.LeaseName(id)
	}
	return id
}

// Read implements changefeed.LeaseStore.
func (s *LeaseStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	key, err := s.key(ctx, id)
	if err != nil {
		return changefeed.Record{}, err
	}
	resp, err := s.container.ReadItem(ctx, key, id, nil)
	if err != nil {
		return changefeed.Record{}, fmt.Errorf("read %s: %w", named(id), translate(err))
	}
	return changefeed.Record{ID: id, ETag: string(resp.ETag), Body: resp.Value}, nil
}

// Create implements changefeed.LeaseStore.
func (s *LeaseStore) Create(ctx context.Context, record changefeed.Record) (string, error) {
	key, body, err := s.item(ctx, record)
	if err != nil {
		return "", err
	}
	resp, err := s.container.CreateItem(ctx, key, body, nil)
	if err != nil {
		return "", fmt.Errorf("create %s: %w", named(record.ID), translate(err))
	}
	return string(resp.ETag), nil
}

// Replace implements changefeed.LeaseStore.
func (s *LeaseStore) Replace(ctx context.Context, record changefeed.Record) (string, error) {
	if record.ETag == "" {
		return "", fmt.Errorf("replace %s: %w: no ETag given", named(record.ID), changefeed.ErrETagMismatch)
	}
	key, body, err := s.item(ctx, record)
	if err != nil {
		return "", err
	}
	etag := azcore.ETag(record.ETag)
	resp, err := s.container.ReplaceItem(ctx, key, record.ID, body, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if err != nil {
		return "", fmt.Errorf("replace %s: %w", named(record.ID), translate(err))
	}
	return string(resp.ETag), nil
}

// Delete implements changefeed.LeaseStore.
func (s *LeaseStore) Delete(ctx context.Context, id, etag string) error {
	if etag == "" {
		return fmt.Errorf("delete %s: %w: no ETag given", named(id), changefeed.ErrETagMismatch)
	}
	key, err := s.key(ctx, id)
	if err != nil {
		return err
	}
	match := azcore.ETag(etag)
	if _, err := s.container.DeleteItem(ctx, key, id, &azcosmos.ItemOptions{IfMatchEtag: &match}); err != nil {
		return fmt.Errorf("delete %s: %w", named(id), translate(err))
	}
	return nil
}

// Partition key paths a lease container may have.
const (
	pathID           = "/id"
	pathPartitionKey = "/partitionKey"
)

// keyPath reads the container's partition key path, the first time only.
func (s *LeaseStore) keyPath(ctx context.Context) (string, error) {
	s.mu.Lock()
	path := s.path
	s.mu.Unlock()
	if path != "" {
		return path, nil
	}
	resp, err := s.container.Read(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("read lease container %s: %w", s.container.ID(), absent(translate(err)))
	}
	paths := resp.ContainerProperties.PartitionKeyDefinition.Paths
	if len(paths) != 1 || (paths[0] != pathID && paths[0] != pathPartitionKey) {
		return "", fmt.Errorf("lease container %s has the partition key %v; create it with %s: %w", s.container.ID(), paths, pathID, changefeed.ErrPermanent)
	}
	s.mu.Lock()
	s.path = paths[0]
	s.mu.Unlock()
	return paths[0], nil
}

// key is the partition key of a record: its id, unless .NET chose another.
func (s *LeaseStore) key(ctx context.Context, id string) (azcosmos.PartitionKey, error) {
	path, err := s.keyPath(ctx)
	if err != nil {
		return azcosmos.PartitionKey{}, err
	}
	value := id
	if path == pathPartitionKey {
		s.mu.Lock()
		if known := s.keys[id]; known != "" {
			value = known
		}
		s.mu.Unlock()
	}
	return azcosmos.NewPartitionKeyString(value), nil
}

// item is the key and the body of a record; a container keyed by /partitionKey needs
// that member.
func (s *LeaseStore) item(ctx context.Context, record changefeed.Record) (azcosmos.PartitionKey, []byte, error) {
	key, err := s.key(ctx, record.ID)
	if err != nil {
		return key, nil, err
	}
	if path, err := s.keyPath(ctx); err != nil || path == pathID || jsonscan.Member(record.Body, pathPartitionKey[1:]) != nil {
		return key, record.Body, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(record.Body, &members); err != nil || members == nil {
		return key, nil, errors.Join(fmt.Errorf("record %s is not a JSON object", record.ID), err)
	}
	id, err := json.Marshal(record.ID)
	if err != nil {
		return key, nil, fmt.Errorf("record %s: %w", record.ID, err)
	}
	members[pathPartitionKey[1:]] = id
	body, err := json.Marshal(members)
	return key, body, err
}
