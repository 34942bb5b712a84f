package relay

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// store is the Cosmos DB emulator with a backlog in it.
type store struct {
	shape  Shape
	dir    string // of the data, "" in memory
	cosmos *cosmosemu.Server
	relays int // lease sets used so far
}

const (
	database  = "contacts"
	container = "data"
)

// openStore starts the emulator with the containers of the service.
func openStore(s Shape) (*store, error) {
	st := &store{shape: s}
	var options cosmosemu.Options
	if s.Disk {
		var err error
		if st.dir, err = os.MkdirTemp("", "feedbox-bench-cosmos-"); err != nil {
			return nil, err
		}
		options.DataDir = st.dir
	}
	var err error
	if st.cosmos, err = cosmosemu.Start(&options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(st.dir))
	}
	err = errors.Join(
		st.cosmos.CreateContainer(database, cosmosemu.ContainerProps{ID: container, PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: s.Partitions}),
		st.cosmos.CreateContainer(database, cosmosemu.ContainerProps{ID: "leases", PartitionKey: []string{"/id"}}),
		st.cosmos.CreateContainer(database, cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{"/partitionKey"}}),
	)
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

// openBacklog starts the emulator and stores the backlog.
func openBacklog(ctx context.Context, s Shape) (*store, error) {
	st, err := openStore(s)
	if err != nil {
		return nil, err
	}
	if err := st.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store the backlog: %w", err), st.close())
	}
	return st, nil
}

// fill stores the backlog: the first transaction of every contact, then the second ones, and
// so on.
func (st *store) fill(ctx context.Context) error {
	into, err := st.cosmos.Client().NewContainer(database, container)
	if err != nil {
		return err
	}
	for commit := range st.shape.Commits {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(16)
		for c := range st.shape.Contacts {
			group.Go(func() error {
				batch := into.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key(c)))
				if !st.shape.EventsOnly {
					batch.UpsertItem(st.shape.contact(c, commit+1), nil)
				}
				for n := range st.shape.Events {
					batch.CreateItem(st.shape.event(c, commit*st.shape.Events+n+1), nil)
				}
				reply, err := into.ExecuteTransactionalBatch(ctx, batch, nil)
				if err == nil && !reply.Success {
					err = errors.New("a transaction was refused")
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (st *store) close() error {
	err := st.cosmos.Close()
	if st.dir != "" {
		err = errors.Join(err, os.RemoveAll(st.dir))
	}
	return err
}
