package cosmosemu_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// rows runs a query on one logical partition and returns the rows of each page.
func rows(t *testing.T, c *azcosmos.ContainerClient, text string, pk azcosmos.PartitionKey, o *azcosmos.QueryOptions) [][]string {
	t.Helper()
	var pages [][]string
	for pager := c.NewQueryItemsPager(text, pk, o); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var p []string
		for _, item := range page.Items {
			p = append(p, string(item))
		}
		pages = append(pages, p)
	}
	return pages
}

func TestQueries(t *testing.T) {
	_, c := start(t, &cosmosemu.Options{Partitions: 3}, cosmosemu.ContainerProps{
		ID: "c", PartitionKey: []string{"/pk"},
		IndexingPolicy: `{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/type","order":"descending"},{"path":"/n"}]]}`,
	})
	for i := range 12 {
		kind := "contact"
		if i%3 == 0 {
			kind = "event"
		}
		body := doc(strconv.Itoa(i), "pk"+strconv.Itoa(i%2), "type", kind, "n", 11-i)
		if _, err := c.CreateItem(t.Context(), key("pk"+strconv.Itoa(i%2)), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	all := azcosmos.NewPartitionKey()
	param := func(name string, value any) []azcosmos.QueryParameter {
		return []azcosmos.QueryParameter{{Name: name, Value: value}}
	}
	for _, q := range []struct {
		text string
		pk   azcosmos.PartitionKey
		o    azcosmos.QueryOptions
		want string
	}{
		{"SELECT VALUE c.id FROM c", all, azcosmos.QueryOptions{PageSizeHint: 5}, `[["0" "1" "2" "3" "4"] ["5" "6" "7" "8" "9"] ["10" "11"]]`},
		{"SELECT VALUE c.id FROM c", all, azcosmos.QueryOptions{PageSizeHint: 6}, `[["0" "1" "2" "3" "4" "5"] ["6" "7" "8" "9" "10" "11"] []]`},
		{"SELECT VALUE c.id FROM c WHERE c.type = @t", all, azcosmos.QueryOptions{QueryParameters: param("@t", "event")}, `[["0" "3" "6" "9"]]`},
		{"SELECT VALUE c.id FROM c WHERE c.type = 'contact' ORDER BY c.n", key("pk0"), azcosmos.QueryOptions{PageSizeHint: 2}, `[["10" "8"] ["4" "2"]]`},
		{"SELECT VALUE c.id FROM c ORDER BY c.type DESC, c.n", key("pk1"), azcosmos.QueryOptions{PageSizeHint: 4}, `[["9" "3" "11" "7"] ["5" "1"]]`},
		{"SELECT VALUE c.id FROM c WHERE c.pk = 'pk1' ORDER BY c.n", all, azcosmos.QueryOptions{}, `[["11" "9" "7" "5" "3" "1"]]`},
		{"SELECT TOP 2 VALUE c.id FROM c ORDER BY c.n", key("pk1"), azcosmos.QueryOptions{PageSizeHint: 1}, `[["11"] ["9"]]`},
		{"SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 1 LIMIT 3", key("pk1"), azcosmos.QueryOptions{PageSizeHint: 2}, `[["9" "7"] ["5"]]`},
		{"SELECT VALUE COUNT(1) FROM c", key("pk1"), azcosmos.QueryOptions{}, `[[6]]`},
		{"SELECT DISTINCT VALUE c.type FROM c", key("pk1"), azcosmos.QueryOptions{PageSizeHint: 1}, `[["contact"] ["event"] []]`},
		{"SELECT VALUE c.n FROM c WHERE c.id = '7'", all, azcosmos.QueryOptions{}, `[[4]]`},
		{"SELECT VALUE c.n FROM c WHERE c.id = '7'", key("pk0"), azcosmos.QueryOptions{}, `[[]]`},
		{"SELECT VALUE c.n FROM c WHERE c.id IN ('7', '8', 'x')", all, azcosmos.QueryOptions{}, `[[4 3]]`},
	} {
		if got := fmt.Sprint(rows(t, c, q.text, q.pk, &q.o)); got != q.want {
			t.Errorf("%s: %s, want %s", q.text, got, q.want)
		}
	}
}

func TestQueriesTheGatewayRefuses(t *testing.T) {
	srv, c := start(t, nil)
	for _, text := range []string{
		"SELECT * FROM c ORDER BY c.id", "SELECT TOP 1 * FROM c", "SELECT VALUE COUNT(1) FROM c", "SELECT DISTINCT c.id FROM c", "SELECT * FROM c OFFSET 1 LIMIT 1",
		"SELECT c.type FROM c GROUP BY c.type", "SELECT AVG(c.n) AS a FROM c JOIN t IN c.tags",
		"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.type FROM c)",
	} {
		_, err := c.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), nil).NextPage(t.Context())
		wantStatus(t, text, err, 400)
		if err == nil || !strings.Contains(err.Error(), "cross partition query can not be directly served by the gateway") {
			t.Errorf("%s: %v", text, err)
		}
	}
	query := func(text string, headers map[string]string) (int, string) {
		h := map[string]string{"content-type": "application/query+json", "x-ms-documentdb-query": "True"}
		for k, v := range headers {
			h[k] = v
		}
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"query":%q}`, text), h)
		return r.StatusCode, r.Body
	}
	if code, body := query("SELECT * FROM c", nil); code != 400 {
		t.Errorf("cross partition query without the header: %d %s", code, body)
	}
	one := map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}
	for text, want := range map[string]string{
		"SELECT * FROM c WHERE":            "position 21",
		"SELECT udf.tax(c.x) FROM c":       "a user-defined function",
		"SELECT * FROM c JOIN d IN c.list": "one source only",
	} {
		if code, body := query(text, one); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want a mention of %q", text, code, body, want)
		}
	}
	one["x-ms-continuation"] = "abc"
	if code, body := query("SELECT * FROM c", one); code != 400 {
		t.Errorf("foreign continuation: %d %s", code, body)
	}
}

// Rows inserted before the continuation do not shift later pages.
func TestContinuationIsAPosition(t *testing.T) {
	_, c := start(t, nil)
	add := func(id string, n int) {
		if _, err := c.CreateItem(t.Context(), key("a"), doc(id, "a", "n", n), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := 10; i < 20; i++ {
		add(strconv.Itoa(i), i)
	}
	pager := c.NewQueryItemsPager("SELECT VALUE c.n FROM c ORDER BY c.n", key("a"), &azcosmos.QueryOptions{PageSizeHint: 4})
	var got []string
	for i := 0; pager.More(); i++ {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			got = append(got, string(item))
		}
		add("x"+strconv.Itoa(i), i)
	}
	if fmt.Sprint(got) != "[10 11 12 13 14 15 16 17 18 19]" {
		t.Errorf("rows %v", got)
	}
}

// endless is the part of a query after its first source, with far too many rows.
const endless = " JOIN f IN c.t JOIN g IN c.t JOIN h IN c.t JOIN i IN c.t"

// A query or the condition of a patch ends with its client, and does not keep the emulator from closing.
func TestEndlessQueryEndsWithItsClient(t *testing.T) {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		t.Fatal(err)
	}
	c, err := srv.Client().NewContainer("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a", "t", make([]int, 1000)), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.NewQueryItemsPager("SELECT VALUE COUNT(1) FROM c JOIN e IN c.t"+endless, key("a"), nil).NextPage(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the query ended with %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var ops azcosmos.PatchOperations
	ops.AppendSet("/n", 1)
	ops.SetCondition("from c where (SELECT VALUE COUNT(1) FROM e IN c.t" + endless + ") > 0")
	if _, err := c.PatchItem(ctx, key("a"), "1", ops, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the patch ended with %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- srv.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the emulator still runs the query a minute after Close")
	}
}
