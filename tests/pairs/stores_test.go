package pairs

import (
	"context"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/jackc/pgx/v5"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// store holds the contacts of one pair.
type store struct {
	env []string // variables for API and relay
	url string   // of the database
	// orders has the variables for the order service of tests/adopter. Without any, the
	// service starts our emulator.
	orders []string
	rate   float64 // changes per second under load; default 60
	// read returns all stored aggregates and events.
	read func(t *testing.T) ([]verify.Aggregate, []verify.Event)
	// add stores the document of an event of key unchanged.
	add func(t *testing.T, key, id, document string)
	// kill kills the server with -9 and restarts it. It is nil for our emulator, which
	// tests/crash kills.
	kill func(t *testing.T)
}

// storeKind creates stores.
type storeKind struct {
	name string
	open func(t *testing.T) *store
	// cycles is the maximum number of kills per store; 0: any number.
	cycles int
}

var stores = []storeKind{
	{"cosmos", openCosmos, 0},
	{"postgres", openPostgres, 0},
	{"firestore", openFirestore, 10}, // because each query of Google's emulator reads the whole collection
}

func openCosmos(t *testing.T) *store {
	const database = "contacts"
	server := cosmosemu.StartT(t)
	for _, c := range []cosmosemu.ContainerProps{
		{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: 2},
		{ID: "leases", PartitionKey: []string{"/id"}},
		{ID: "parked", PartitionKey: []string{"/partitionKey"}},
	} {
		must(t, server.CreateContainer(database, c))
	}
	data, err := server.Client().NewContainer(database, "data")
	must(t, err)
	return &store{
		env: []string{"FEEDBOX_STORE=cosmos", "FEEDBOX_COSMOS_ENDPOINT=" + server.Endpoint(), "FEEDBOX_COSMOS_KEY=" + server.Key()},
		read: func(t *testing.T) ([]verify.Aggregate, []verify.Event) {
			return testkit.ReadStore(t.Context(), t, data)
		},
		add: func(t *testing.T, key, _, document string) {
			_, err := data.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), []byte(document), nil)
			must(t, err)
		},
	}
}

var (
	postgresServer = shared[*servers.Postgres]{start: servers.StartPostgres}
	databases      sync.Mutex // held while a database is created
)

func openPostgres(t *testing.T) *store { return inPostgres(t, postgresServer.get(t)) }

func inPostgres(t *testing.T, server *servers.Postgres) *store {
	t.Helper()
	url := func() string {
		databases.Lock()
		defer databases.Unlock()
		return server.Database(t)
	}()
	connect := func(t *testing.T) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url+"&search_path=feedbox")
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	return &store{
		env: []string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=" + url, "FEEDBOX_POSTGRES_MIGRATE=true"}, url: url, orders: []string{"ORDERS_TEST_POSTGRES=" + url},
		read: func(t *testing.T) (aggregates []verify.Aggregate, events []verify.Event) {
			conn := connect(t)
			found, err := conn.Query(t.Context(), `SELECT id::text, version, sequence FROM aggregates`)
			must(t, err)
			aggregates, err = pgx.CollectRows(found, pgx.RowToStructByPos[verify.Aggregate])
			must(t, err)
			found, err = conn.Query(t.Context(), `SELECT document FROM events`)
			must(t, err)
			documents, err := pgx.CollectRows(found, pgx.RowTo[string])
			must(t, err)
			for _, raw := range documents {
				d, err := verify.DecodeDocument([]byte(raw))
				must(t, err)
				events = append(events, d.Event())
			}
			return aggregates, events
		},
		add: func(t *testing.T, key, id, document string) {
			_, err := connect(t).Exec(t.Context(), `INSERT INTO events (hash, key, id, document) VALUES ($1, $2, $3, $4)`, recordstore.Hash(key), key, id, document)
			must(t, err)
		},
		kill: func(t *testing.T) {
			server.Kill(t)
			server.Start(t)
		},
	}
}
