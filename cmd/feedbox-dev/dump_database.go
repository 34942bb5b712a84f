package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"feedbox/infrastructure/verify"
)

// documents are the contacts, events and parked events of a database, in the form in which
// a document store has them.
const documents = `SELECT json_build_object('id', id, 'type', type, 'data', data::json)::text FROM feedbox.aggregates WHERE data <> ''
	UNION ALL SELECT document FROM feedbox.events
	UNION ALL SELECT json_build_object('id', id, 'partitionKey', key, 'type', 'parkedEvent')::text FROM feedbox.parked`

// dumpDatabase is dumpStore of a database.
func dumpDatabase(ctx context.Context, url, path string) (n int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	file, err := createRecords(path)
	if err != nil {
		return 0, err
	}
	rows, _ := conn.Query(ctx, documents) // its error is that of the rows
	var raw string
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		d, err := verify.DecodeDocument([]byte(raw))
		if err == nil {
			file.add(storeRecord(d))
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("database: %w", err)
	}
	return file.count, errors.Join(err, file.close())
}
