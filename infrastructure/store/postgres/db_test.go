package postgres_test

import (
	"sync"
	"testing"

	"feedbox/infrastructure/store/postgres"
)

// The URL sets the number of connections.
func TestPoolSizeOfTheURL(t *testing.T) {
	t.Parallel()
	url := database(t)
	_, pool := openAt(t, url)
	db, err := postgres.Open(url+"&application_name=narrow&pool_max_conns=1", nil)
	must(t, err)
	t.Cleanup(db.Close)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if _, err := db.Clock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var connections int
	must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'narrow'`).Scan(&connections))
	if connections != 1 {
		t.Errorf("%d connections, want 1", connections)
	}
}
