package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/tests/fuzzseed"
)

// Any continuation is a position of this query or is refused.
func FuzzContinuation(f *testing.F) {
	fuzzseed.Add(f)
	q, err := query.Parse("SELECT * FROM c ORDER BY c.n, c.s DESC")
	if err != nil {
		f.Fatal(err)
	}
	b, err := q.Bind(nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, document := range []string{`{"n":1,"s":"x"}`, `{"n":null}`, `{"s":"\u00e9\"","n":-1.5e300}`} {
		at := continuation{Document: 7, Skipped: 1, Emitted: 2, key: b.SortKey([]byte(document))}
		f.Add(at.text("rid", b))
	}
	f.Add("")
	f.Add("eyJkIjoxfQ")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parseContinuation(text, "rid", b, false)
		if err != nil || at == nil {
			return
		}
		again, err := parseContinuation(at.text("rid", b), "rid", b, false)
		if err != nil || again.Document != at.Document || again.Skipped != at.Skipped || again.Emitted != at.Emitted || b.Compare(again.key, at.key) != 0 {
			t.Fatalf("%q: %+v became %+v (%v)", text, at, again, err)
		}
	})
}

// Any batch gets an answer, and a batch that succeeds has one result per operation.
func FuzzBatch(f *testing.F) {
	fuzzseed.Add(f)
	srv := StartT(f)
	if err := srv.CreateContainer("db", ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		`[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Read","id":"1"},{"operationType":"Delete","id":"1"}]`,
		`[{"operationType":"Upsert","resourceBody":{"id":"2","pk":"a"}},{"operationType":"Patch","id":"2","resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}]}}]`,
		`[{"operationType":"Replace","id":"1","ifMatch":"\"x\"","resourceBody":{"id":"1","pk":"a","ttl":-1}}]`,
		`[]`, `[{}]`, `{}`, `[{"operationType":"Create","resourceBody":null}]`, `[{"operationType":5}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/dbs/db/colls/c/docs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{headerPartitionKey: {`["a"]`}, headerIsBatch: {"True"}, headerBatchAtomic: {"True"}}
		x := &request{account: &srv.account, req: r, header: r.Header, body: body}
		x.route, _ = parseRoute(r)
		answer, err := executeBatch(x)
		if err != nil {
			if e := asWire(err); e.Status >= 500 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(answer.body) {
			t.Fatalf("%q: %s", body, answer.body)
		}
		operations, err := parseBatch(body)
		if err != nil || strings.Count(string(answer.body), `{"statusCode":`) < len(operations) {
			t.Fatalf("%q: %d operations (%v), answer %s", body, len(operations), err, answer.body)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	fuzzseed.Add(f)
	f.Add("type%3Dmaster%26ver%3D1.0%26sig%3DabC%2F%3D", "0:-1#5,1:-1#7#0=3", `"12"`, "Sat, 21 Nov 2026 19:39:18 UTC")
	f.Add("type=aad&ver=1.0&sig=e30.e30.x", "0:5", "W/\"3\"", "Sat, 21 Nov 2026 19:39:18 GMT")
	f.Fuzz(func(t *testing.T, authorization, session, position, since string) {
		if kind, signature, ok := parseAuthorization(authorization); ok && (kind == "" || signature == "") {
			t.Fatalf("%q gave an empty part", authorization)
		}
		for part := range strings.SplitSeq(session, ",") {
			if id, lsn, ok := parseSessionToken(part); ok {
				if again, n, ok := parseSessionToken(sessionToken(id, 0, lsn)); !ok || n != lsn || again != id {
					t.Fatalf("%q: %s %d became %s %d", part, id, lsn, again, n)
				}
			}
		}
		if lsn, err := parsePosition(position); err == nil {
			if again, err := parsePosition(feedETag(lsn)); err != nil || again != lsn {
				t.Fatalf("%q: %d became %d (%v)", position, lsn, again, err)
			}
		}
		_, _ = parseSince(since) // must not panic
	})
}

func TestPartitionKeyPaths(t *testing.T) {
	for text, want := range map[string]string{"/a": "[a]", "/a/b": "[a b]", `/"a/b"/c`: "[a/b c]", `/"x y"`: "[x y]"} {
		if path, ok := parseKeyPath(text); !ok || fmt.Sprint(path) != want {
			t.Errorf("%s is %v, want %s", text, path, want)
		}
	}
	for _, text := range []string{"", "a", "/", "/a/", "//a", `/"a`, `/""`, `/"a"b`} {
		if path, ok := parseKeyPath(text); ok {
			t.Errorf("%s was read as %v", text, path)
		}
	}
}

func TestChargeHasTheShortestForm(t *testing.T) {
	for hundredths := range 200_000 {
		charge := float64(hundredths) / 100
		if got, want := formatCharge(charge), strconv.FormatFloat(charge, 'f', -1, 64); got != want {
			t.Fatalf("%v is written as %s", want, got)
		}
	}
}

// The memory of the account does not grow with the containers that were deleted, or the ranges that were
// split. A container that is created again with the same name has a full budget.
func TestDeletedContainersLeaveNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := StartT(t, &Options{Network: pipenet.New(), Throughput: 400, CreationDelay: time.Second})
		create := func() *store.Container {
			if err := srv.CreateContainer("db", ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // otherwise the container is still being created
			db, err := srv.store.Database("db")
			if err != nil {
				t.Fatal(err)
			}
			c, err := srv.store.Container(db, "c")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		kept := func() (n int) {
			srv.creations.Range(func(any, any) bool { n++; return true })
			return n + len(srv.budgets.ranges)
		}
		var c *store.Container
		for _, remove := range []func(*request) (*reply, error){deleteContainer, deleteDatabase, nil} {
			c = create()
			ranges := c.Topology().Ranges
			paying, err := srv.admit(c, ranges)
			if err != nil || paying[0].left != 400 {
				t.Fatalf("%v; the budget of a new container is %v, want 400", err, paying)
			}
			srv.budgets.pay(paying, 1000)
			if remove == nil {
				break
			}
			if _, err := remove(&request{account: &srv.account, route: route{db: "db", coll: "c"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := srv.admit(c, ranges); err != nil { // a request that began before
				t.Errorf("%v for a deleted container", err)
			}
			if n := kept(); n != 0 {
				t.Errorf("%d entries of a deleted container are kept", n)
			}
		}
		if err := srv.Split("db", "c", c.Topology().Ranges[0].ID); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Topology().Ranges {
			srv.usage(c, &r)
		}
		if n := kept(); n != 2+1 {
			t.Errorf("%d entries, want the budgets of two ranges and a creation", n)
		}
	})
}
