package store

import (
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Transactions that read and write one document never overlap, and each uses one LSN, so the
// counter equals the number of transactions.
func TestTransactionsTakeTurns(t *testing.T) {
	w := &world{t: t, m: model{items: make(map[string]modelItem)}}
	w.open()
	defer func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const writers, each = 8, 400
	part := NewPartition(epk.Key{epk.String("a")}, epk.V2)
	put := func(tx *Tx, n int) error {
		doc, err := document.Parse(fmt.Appendf(nil, `{"id":"counter","pk":"a","n":%d}`, n), []document.Path{{"pk"}})
		if err == nil {
			_, err = tx.Put(doc)
		}
		return err
	}
	if _, err := w.c.Update(part, func(tx *Tx) error { return put(tx, 0) }); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				_, err := w.c.Update(part, func(tx *Tx) error {
					item, found, err := tx.Get("counter")
					if err != nil || !found {
						return fmt.Errorf("the counter is gone: %w", err)
					}
					return put(tx, decode(t, item.Body).N+1)
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	item, err := w.c.Get(nil, part, "counter", nil)
	if err != nil {
		t.Fatal(err)
	}
	n, lsn := decode(t, item.Body).N, w.c.Topology().Locate(part.EPK).LSN()
	if n != writers*each || lsn != uint64(n)+1 {
		t.Errorf("the counter is %d at LSN %d after %d transactions", n, lsn, writers*each)
	}
}
