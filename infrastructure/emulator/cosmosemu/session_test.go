package cosmosemu_test

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
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
