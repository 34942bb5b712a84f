package postgresinbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/postgresinbox"
)

// silentPool answers nothing, or with begins set, everything except commits.
type silentPool struct{ begins bool }

func silent(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (silentPool) Exec(ctx context.Context, _ string, _ ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, silent(ctx)
}

func (silentPool) QueryRow(ctx context.Context, _ string, _ ...any) pgx.Row {
	return silentRow(func() error { return silent(ctx) })
}

func (p silentPool) Begin(ctx context.Context) (pgx.Tx, error) {
	if p.begins {
		return silentTx{}, nil
	}
	return nil, silent(ctx)
}

type silentRow func() error

func (r silentRow) Scan(...any) error { return r() }

type silentTx struct{ pgx.Tx }

func (silentTx) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, nil
}
func (silentTx) QueryRow(context.Context, string, ...any) pgx.Row { return emptyRow{} }
func (silentTx) Commit(ctx context.Context) error                 { return silent(ctx) }
func (silentTx) Rollback(context.Context) error                   { return pgx.ErrTxClosed }

type emptyRow struct{}

func (emptyRow) Scan(...any) error { return nil }

// Each operation on a silent server ends within its limit. The time of a handler does not count.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	handle := func(ctx context.Context, _ pgx.Tx) error { time.Sleep(time.Hour); return ctx.Err() }
	for name, c := range map[string]struct {
		pool  silentPool
		do    func(ctx context.Context, b *postgresinbox.Inbox) error
		limit time.Duration
	}{
		"create": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Create(ctx) }, 3 * time.Second},
		"last":   {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { _, err := b.Last(ctx, "k"); return err }, 3 * time.Second},
		"record": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Record(ctx, "k", consumer.Mark{}) }, 3 * time.Second},
		"forget": {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error {
			_, err := b.Forget(ctx, time.Hour)
			return err
		}, 2 * time.Minute},
		"begin":  {silentPool{}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Do(ctx, event(1), handle) }, 3 * time.Second},
		"commit": {silentPool{begins: true}, func(ctx context.Context, b *postgresinbox.Inbox) error { return b.Do(ctx, event(1), handle) }, time.Hour + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := postgresinbox.New(c.pool, "billing", &postgresinbox.Options{Timeout: 3 * time.Second})
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err = c.do(ctx, b)
				if took := time.Since(began); err == nil || errors.Is(err, context.Canceled) || took != c.limit {
					t.Errorf("error %v after %v, want one after %v", err, took, c.limit)
				}
			})
		})
	}
}
