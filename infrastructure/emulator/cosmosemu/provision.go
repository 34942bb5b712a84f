package cosmosemu

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// CreateDatabase creates a database unless it exists.
func (s *Server) CreateDatabase(id string) error {
	if err := s.calls.begin(); err != nil {
		return fmt.Errorf("cosmosemu: create database %s: %w", id, err)
	}
	defer s.calls.Done()
	if _, err := s.store.Database(id); err == nil {
		return nil
	}
	if _, err := s.createDatabase(id); err != nil && asWire(err).Status != http.StatusConflict {
		return fmt.Errorf("cosmosemu: create database %s: %w", id, err)
	}
	return nil
}

// ContainerProps describe a container for CreateContainer. ID and PartitionKey are
// required.
type ContainerProps struct {
	ID string
	// PartitionKey has one path per level, such as "/tenant", "/user".
	PartitionKey []string
	// DefaultTTL is in seconds; 0 disables time to live, -1 enables it without a default.
	DefaultTTL int
	// IndexingPolicy is the JSON text of the policy; empty: all properties are indexed, without
	// composite indexes.
	IndexingPolicy string
	// Partitions is the number of physical partitions, default Options.Partitions.
	Partitions int
}

// CreateContainer creates a container and its database unless they exist.
func (s *Server) CreateContainer(database string, props ContainerProps) error {
	fail := func(err error) error {
		return fmt.Errorf("cosmosemu: create container %s in %s: %w", props.ID, database, err)
	}
	if props.Partitions < 0 || props.Partitions > maxPartitions {
		return fail(fmt.Errorf("option Partitions is %d, it must be from 0 to %d", props.Partitions, maxPartitions))
	}
	if err := s.CreateDatabase(database); err != nil {
		return err
	}
	if err := s.calls.begin(); err != nil {
		return fail(err)
	}
	defer s.calls.Done()
	kind := "Hash"
	if len(props.PartitionKey) > 1 {
		kind = "MultiHash"
	}
	in := map[string]any{"id": props.ID, "partitionKey": map[string]any{"paths": props.PartitionKey, "kind": kind, "version": 2}}
	if props.DefaultTTL != 0 {
		in["defaultTtl"] = props.DefaultTTL
	}
	if props.IndexingPolicy != "" {
		in["indexingPolicy"] = json.RawMessage(props.IndexingPolicy)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return fail(err)
	}
	def, err := parseDefinition(text, newKeyVersion)
	if err != nil {
		return fail(err)
	}
	if err := cmp.Or(s.options.readIndexing(def), s.setRetention(def)); err != nil {
		return fail(err)
	}
	db, err := s.store.Database(database)
	if err != nil {
		return fail(err)
	}
	c, err := s.store.CreateContainer(db, *def, cmp.Or(props.Partitions, s.options.Partitions))
	switch {
	case err == nil:
		s.created(c)
	case !errors.Is(err, store.ErrExists):
		return fail(err)
	}
	return nil
}
