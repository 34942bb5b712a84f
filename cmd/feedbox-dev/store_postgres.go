package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"feedbox/infrastructure/process/config"
)

// postgres is a PostgreSQL database.
type postgres struct {
	foreign

	url *url.URL
}

func postgresStore(u *url.URL, _ []string) store { return &postgres{url: u} }

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
