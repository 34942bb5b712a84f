package cosmosemu_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

func TestSessionTokens(t *testing.T) {
	srv, c := start(t, nil)
	w, err := c.CreateItem(t.Context(), key("a"), doc("1", "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *w.SessionToken != "0:-1#1" {
		t.Errorf("token %s after the first write", *w.SessionToken)
	}
	read := func(token string) answer {
		return send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-session-token": token})
	}
	for token, want := range map[string]int{"0:-1#1": 200, "0:-1#2": 404, "0:1": 200, "0:-1#2#3=9": 404, "7:-1#99": 200, "7:-1#99,0:-1#2": 404, "x": 400} {
		r := read(token)
		if r.StatusCode != want || want == 404 && r.Header.Get("x-ms-substatus") != "1002" {
			t.Errorf("read with %s: %d/%s, want %d", token, r.StatusCode, r.Header.Get("x-ms-substatus"), want)
		}
	}
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	if r, err := c.ReadItem(t.Context(), key("a"), "1", &azcosmos.ItemOptions{SessionToken: w.SessionToken}); err != nil {
		t.Errorf("a token of the parent range: %v", err)
	} else if *r.SessionToken != "1:-1#1" && *r.SessionToken != "2:-1#1" {
		t.Errorf("token %s after the split", *r.SessionToken)
	}
}

// A read may miss a write without a session token, but never with it.
func TestStaleReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 10 * time.Second
		_, c := start(t, &cosmosemu.Options{Network: pipenet.New(), StaleReads: lag, Seed: 7})
		stale, fresh := 0, 0
		for i := range 50 {
			id := strconv.Itoa(i)
			w, err := c.CreateItem(t.Context(), key("a"), doc(id, "a"), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.ReadItem(t.Context(), key("a"), id, nil)
			switch status(err) {
			case 0:
				fresh++
			case http.StatusNotFound:
				stale++
			default:
				t.Fatal(err)
			}
			if _, err := c.ReadItem(t.Context(), key("a"), id, &azcosmos.ItemOptions{SessionToken: w.SessionToken}); err != nil {
				t.Fatalf("a read with the token of the write: %v", err)
			}
			time.Sleep(time.Second)
		}
		if stale < 10 || fresh < 10 {
			t.Errorf("%d of 50 reads without a token were stale", stale)
		}
		time.Sleep(lag)
		if n := count(t, c, "select * from c"); n != 50 {
			t.Errorf("%d items after the lag, want 50", n)
		}
		token := ""
		if n := len(drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything})); n != 50 {
			t.Errorf("%d changes after the lag, want 50", n)
		}
	})
}

// A feed with stale pages loses and repeats nothing.
func TestStaleFeedIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, &cosmosemu.Options{Network: pipenet.New(), StaleReads: 5 * time.Second, Seed: 3})
		seen := map[string]int{}
		token := ""
		for i := range 200 {
			if i < 150 {
				create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i%7))
			}
			time.Sleep(300 * time.Millisecond)
			for _, ch := range drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything, MaxItemCount: 3}) {
				seen[ch.ID]++
			}
		}
		for i := range 150 {
			if seen[strconv.Itoa(i)] != 1 {
				t.Errorf("item %d was seen %d times", i, seen[strconv.Itoa(i)])
			}
		}
	})
}
