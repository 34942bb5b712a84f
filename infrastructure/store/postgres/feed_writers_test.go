package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/store/postgres"
)

// commitInAnyOrder starts writers whose transactions begin and end in any order. It returns a
// channel that is closed when they have ended, and the committed ids by key, to be read after that.
func commitInAnyOrder(t *testing.T, pool *pgxpool.Pool, feed *postgres.Feed) (ended chan struct{}, committed map[string][]string) {
	seed := seedOf(t)
	const writers, each = 8, 60
	var group sync.WaitGroup
	var mu sync.Mutex // guards committed
	committed = map[string][]string{}
	for w := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		group.Go(func() {
			for n := range each {
				key := fmt.Sprintf("w%d.%d", w, n%3) // no other writer has it
				count := 1 + random.IntN(4)
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				var ids []string
				for i := range count {
					id := fmt.Sprintf("%s-%d-%d", key, n, i)
					ids = append(ids, id)
					if _, err := tx.Exec(t.Context(), insertEvent, hash(feed, key), key, id, fmt.Sprintf(`{"id":%q}`, id)); err != nil {
						t.Error(err)
					}
					if random.IntN(3) == 0 { // it is open while others begin and end
						time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
					}
				}
				if random.IntN(6) == 0 {
					err = tx.Rollback(t.Context())
				} else if err = tx.Commit(t.Context()); err == nil {
					mu.Lock()
					committed[key] = append(committed[key], ids...)
					mu.Unlock()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended = make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	return ended, committed
}

// count returns the number of events of all keys.
func count(byKey map[string][]string) (n int) {
	for _, ids := range byKey {
		n += len(ids)
	}
	return n
}

// compare reports events that were seen and not committed, missed, or seen in another order.
func compare(t *testing.T, seen, committed map[string][]string) {
	t.Helper()
	for key, want := range committed {
		if fmt.Sprint(sortedWithin(seen[key])) != fmt.Sprint(want) {
			t.Errorf("key %s: %v; want %v", key, seen[key], want)
		}
		delete(seen, key)
	}
	if len(seen) > 0 {
		t.Errorf("not committed: %v", seen)
	}
}

// sortedWithin sorts the events of each transaction, which have no order. Transactions keep their
// order.
func sortedWithin(ids []string) []string {
	for i := 1; i < len(ids); i++ {
		for j := i; j > 0 && transactionOf(ids[j]) == transactionOf(ids[j-1]) && ids[j] < ids[j-1]; j-- {
			ids[j], ids[j-1] = ids[j-1], ids[j]
		}
	}
	return ids
}

func transactionOf(id string) string { return id[:strings.LastIndexByte(id, '-')] }
