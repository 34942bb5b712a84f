package cosmosemu_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestDataSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	first, err := cosmosemu.Start(&cosmosemu.Options{DataDir: dir, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, first, "c")
	for i := range 20 {
		create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i))
	}
	token := ""
	drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := cosmosemu.StartT(t, &cosmosemu.Options{DataDir: dir})
	c = containerOf(t, second, "c")
	if n := count(t, c, "select * from c"); n != 20 {
		t.Errorf("%d items after the restart, want 20", n)
	}
	create(t, c, "after", "pk")
	if got := ids(drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything})); fmt.Sprint(got) != "[after]" {
		t.Errorf("the feed continues with %v, want [after]", got)
	}
}

// After a power loss under write load all acknowledged writes exist, every batch is complete or
// absent, and everything that a reader has seen still exists.
func TestAcknowledgedWritesSurvivePowerLoss(t *testing.T) {
	fs := vfs.NewCrashableMem()
	srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: "data", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, srv, "c")
	var mu sync.Mutex
	acked := map[string]bool{}
	seen := map[string]bool{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", w, i)
				b := c.NewTransactionalBatch(key(id))
				b.CreateItem(doc("a", id), nil)
				b.CreateItem(doc("b", id), nil)
				if _, err := c.ExecuteTransactionalBatch(t.Context(), b, nil); err == nil {
					mu.Lock()
					acked[id] = true
					mu.Unlock()
				}
			}
		})
	}
	token := ""
	for len(seen) < 400 {
		for _, ch := range drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything}) {
			mu.Lock()
			seen[ch.PK] = true
			mu.Unlock()
		}
	}
	mu.Lock()
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	wantAcked := make([]string, 0, len(acked))
	for id := range acked {
		wantAcked = append(wantAcked, id)
	}
	mu.Unlock()
	close(stop)
	wg.Wait()
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}

	again := cosmosemu.StartT(t, &cosmosemu.Options{DataDir: "data", FS: crashed})
	c = containerOf(t, again, "c")
	for _, id := range wantAcked {
		for _, item := range []string{"a", "b"} {
			if _, err := c.ReadItem(t.Context(), key(id), item, nil); err != nil {
				t.Fatalf("acknowledged item %s/%s is lost: %v", id, item, err)
			}
		}
	}
	per := map[string]int{}
	token = ""
	for _, ch := range drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything}) {
		per[ch.PK]++
	}
	for id, n := range per {
		if n != 2 {
			t.Errorf("batch %s has %d of 2 items", id, n)
		}
	}
	for id := range seen {
		if per[id] == 0 {
			t.Errorf("batch %s was in the feed and is lost", id)
		}
	}
	t.Logf("%d acknowledged, %d seen in the feed, %d found after the crash", len(wantAcked), len(seen), len(per))
}
