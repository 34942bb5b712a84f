package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"feedbox/infrastructure/process/config"
)

// store keeps contacts and events. Each kind has its own file.
type store interface {
	// variables returns the FEEDBOX_ variables of the store: alternating names and values.
	variables(e *endpoints) []string
	// rows returns the lines of the banner: alternating names and values.
	rows(e *endpoints) []string
	// documents calls visit for each contact, event and parked event, in the form of a
	// document store, until visit returns an error.
	documents(ctx context.Context, e *endpoints, visit func(raw []byte) error) error
	// poison stores an event that cannot be sent, and more events of its key that can.
	poison(ctx context.Context, e *endpoints, more int) (key, id string, err error)
}

// stores has a constructor for each URL scheme of --store. It may complete the URL from
// environ. It returns nil for an incomplete URL.
var stores = map[string]func(u *url.URL, environ []string) store{
	"":           emulatedStore,
	"postgres":   postgresStore,
	"postgresql": postgresStore,
	"firestore":  firestoreStore,
}

// parseStore parses --store and completes it; empty is the Cosmos DB emulator.
func parseStore(text string, environ []string) (s store, complete string, err error) {
	u, err := url.Parse(text)
	if err == nil {
		if of := stores[u.Scheme]; of != nil {
			s = of(u, environ)
		}
	}
	if s == nil {
		return nil, "", errors.New("--store: give the URL of a database, postgres://user:password@host:port/database, or firestore://project/database with FIRESTORE_EMULATOR_HOST for Google's emulator")
	}
	return s, u.String(), nil
}

// foreign is embedded by stores other than the emulator.
type foreign struct{}

func (foreign) poison(context.Context, *endpoints, int) (key, id string, err error) {
	return "", "", usageError{errors.New("poison works with the Cosmos DB emulator only: start feedbox-dev without --store")}
}

// postgres is a PostgreSQL database.
type postgres struct {
	foreign

	url *url.URL
}

func postgresStore(u *url.URL, _ []string) store {
	if u.Host == "" && u.Query().Get("host") == "" || strings.Trim(u.Path, "/") == "" {
		return nil
	}
	return &postgres{url: u}
}

func (p *postgres) variables(*endpoints) []string {
	return []string{"FEEDBOX_STORE", config.StorePostgres, "FEEDBOX_POSTGRES_URL", p.url.String(), "FEEDBOX_POSTGRES_MIGRATE", "true"}
}

func (p *postgres) rows(*endpoints) []string { return []string{"PostgreSQL", p.url.Redacted()} }

// documents selects contacts, events and parked events in the form of a document store.
const documents = `SELECT json_build_object('id', id, 'type', type, 'data', data::json)::text FROM feedbox.aggregates WHERE data <> ''
	UNION ALL SELECT document FROM feedbox.events
	UNION ALL SELECT json_build_object('id', id, 'partitionKey', key, 'type', 'parkedEvent')::text FROM feedbox.parked`

func (p *postgres) documents(ctx context.Context, _ *endpoints, visit func(raw []byte) error) error {
	conn, err := pgx.Connect(ctx, p.url.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, _ := conn.Query(ctx, documents) // ForEachRow returns the error, too
	var raw string
	if _, err = pgx.ForEachRow(rows, []any{&raw}, func() error { return visit([]byte(raw)) }); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}
