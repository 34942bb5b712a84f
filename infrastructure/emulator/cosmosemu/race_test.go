package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

type counter struct {
	ID string `json:"id"`
	PK string `json:"pk"`
	N  int    `json:"n"`
}

// 32 writers increment 8 counters with If-Match. The counters must equal the number of accepted
// writes, and no read may find a counter missing.
func TestWritersRaceWithETags(t *testing.T) {
	for name, o := range map[string]*cosmosemu.Options{"memory": {Partitions: 3}, "disk": {Partitions: 3, DataDir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			_, c := start(t, o)
			const writers, counters, rounds = 32, 8, 25
			for i := range counters {
				if _, err := c.CreateItem(t.Context(), key(strconv.Itoa(i)), doc("counter", strconv.Itoa(i), "n", 0), nil); err != nil {
					t.Fatal(err)
				}
			}
			var accepted [counters]atomic.Int64
			var refused, missing atomic.Int64
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for round := range rounds {
						i := (w + round) % counters
						pk := strconv.Itoa(i)
						read, err := c.ReadItem(t.Context(), key(pk), "counter", nil)
						if err != nil {
							missing.Add(1)
							continue
						}
						var value counter
						if err := json.Unmarshal(read.Value, &value); err != nil {
							t.Error(err)
							return
						}
						value.N++
						body, _ := json.Marshal(value)
						_, err = c.ReplaceItem(t.Context(), key(pk), "counter", body, &azcosmos.ItemOptions{IfMatchEtag: &read.ETag})
						switch status(err) {
						case 0:
							accepted[i].Add(1)
						case http.StatusPreconditionFailed:
							refused.Add(1)
						case http.StatusNotFound:
							missing.Add(1)
						default:
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			total := int64(0)
			for i := range counters {
				read, err := c.ReadItem(t.Context(), key(strconv.Itoa(i)), "counter", nil)
				if err != nil {
					t.Fatal(err)
				}
				var value counter
				if err := json.Unmarshal(read.Value, &value); err != nil {
					t.Fatal(err)
				}
				if int64(value.N) != accepted[i].Load() {
					t.Errorf("counter %d is %d after %d accepted writes", i, value.N, accepted[i].Load())
				}
				total += accepted[i].Load()
			}
			t.Logf("%d accepted, %d refused, %d missing", total, refused.Load(), missing.Load())
			if missing.Load() != 0 {
				t.Errorf("%d reads or writes found no counter", missing.Load())
			}
		})
	}
}

// A reader sees all of a batch or nothing: three items change together, and every query and every
// feed page contains equal values.
func TestReadersSeeWholeBatches(t *testing.T) {
	_, c := start(t, nil)
	write := func(n int) error {
		b := c.NewTransactionalBatch(key("a"))
		for _, id := range []string{"x", "y", "z"} {
			b.UpsertItem(doc(id, "a", "n", n), nil)
		}
		r, err := c.ExecuteTransactionalBatch(t.Context(), b, nil)
		if err == nil && !r.Success {
			err = fmt.Errorf("batch %d failed", n)
		}
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				if err := write(n); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			token := ""
			for range 60 {
				got := rows(t, c, "SELECT VALUE c.n FROM c", key("a"), nil)[0]
				if len(got) != 3 || got[0] != got[1] || got[1] != got[2] {
					t.Errorf("a query saw %v", got)
				}
				page, err := c.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{FeedRange: everything, Continuation: &token})
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[int]int{}
				for _, item := range page.Items {
					var ch change
					if err := json.Unmarshal(item, &ch); err != nil {
						t.Error(err)
					}
					seen[ch.N]++
				}
				for n, count := range seen {
					if count != 3 {
						t.Errorf("a feed page has %d of the 3 items of batch %d", count, n)
					}
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
}
