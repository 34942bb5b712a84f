package cosmosemu_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, &cosmosemu.Options{Network: pipenet.New()}, cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: 100})
		ctx := t.Context()
		for id, ttl := range map[string]any{"default": nil, "short": 10, "never": -1} {
			body := doc(id, "a")
			if ttl != nil {
				body = doc(id, "a", "ttl", ttl)
			}
			if _, err := c.CreateItem(ctx, key("a"), body, nil); err != nil {
				t.Fatal(err)
			}
		}
		alive := func() string {
			var out string
			for _, id := range []string{"default", "short", "never"} {
				if _, err := c.ReadItem(ctx, key("a"), id, nil); err == nil {
					out += id + " "
				}
			}
			token := ""
			changes := drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything})
			return fmt.Sprint(out, len(changes), " ", count(t, c, "select * from c"))
		}
		if got := alive(); got != "default short never 3 3" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(10 * time.Second)
		if got := alive(); got != "default never 2 2" {
			t.Errorf("after 10 s: %s", got)
		}
		if _, err := c.CreateItem(ctx, key("a"), doc("short", "a", "ttl", 1000), nil); err != nil {
			t.Errorf("the id of an expired item is not free: %v", err)
		}
		_, err := c.CreateItem(ctx, key("a"), doc("never", "a"), nil)
		wantStatus(t, "create of a live item", err, 409)
		time.Sleep(100 * time.Second)
		if got := alive(); got != "short never 2 2" {
			t.Errorf("after 110 s: %s", got)
		}
	})
}

func TestItemTTLNeedsContainerTTL(t *testing.T) {
	srv, c := start(t, nil, cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}})
	if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a", "ttl", 1), nil); err != nil {
		t.Fatal(err)
	}
	srv.Advance(time.Hour)
	if _, err := c.ReadItem(t.Context(), key("a"), "1", nil); err != nil {
		t.Errorf("read: %v", err)
	}
}

// count returns the number of rows of a query over all partitions.
func count(t *testing.T, c *azcosmos.ContainerClient, text string) int {
	t.Helper()
	n := 0
	for pager := c.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Items)
	}
	return n
}
