package cosmosemu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
)

// The client waits for the time in Retry-After, which takes no real time in a bubble, and retries.
func TestThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t, &cosmosemu.Options{Network: pipenet.New()})
		srv.Control(cosmosemu.OpCreateItem, cosmosemu.Times(2, cosmosemu.Throttled(30*time.Second)))
		began := time.Now()
		if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a"), nil); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < time.Minute || waited > 62*time.Second {
			t.Errorf("the client waited %v, want two times 30 s", waited)
		}
	})
}

func TestStatusFaults(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	for _, f := range []cosmosemu.Fault{
		cosmosemu.RetryWith(), cosmosemu.RangeGone(), {Status: 403, SubStatus: 3200, Message: "x"}, {Status: 409},
	} {
		remove := srv.Control(cosmosemu.OpUpsertItem, cosmosemu.Always(f))
		_, err := c.UpsertItem(t.Context(), key("a"), doc("2", "a"), nil)
		wantStatus(t, fmt.Sprint("fault ", f.Status), err, f.Status)
		remove()
	}
	for _, f := range []cosmosemu.Fault{cosmosemu.TimedOut(), cosmosemu.Failed(), cosmosemu.Unavailable()} {
		remove := srv.Control(cosmosemu.OpDeleteItem, cosmosemu.Always(f))
		r := send(t, srv, http.MethodDelete, "dbs/db/colls/c/docs/1", "", map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
		if r.StatusCode != f.Status {
			t.Errorf("fault %d: %d", f.Status, r.StatusCode)
		}
		remove()
	}
	if _, err := c.ReadItem(t.Context(), key("a"), "1", nil); err != nil {
		t.Errorf("after the faults: %v", err)
	}
	_, err := c.ReadItem(t.Context(), key("a"), "2", nil)
	wantStatus(t, "an item whose creation failed", err, 404)
}

// A test may end its emulator before the last call of something that it started.
func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	_, itemsErr := srv.Items("db", "c")
	_, rangesErr := srv.PartitionKeyRanges("db", "c")
	for call, err := range map[string]error{
		"Items": itemsErr, "PartitionKeyRanges": rangesErr, "Dump": srv.Dump(io.Discard),
		"CreateDatabase":  srv.CreateDatabase("other"),
		"CreateContainer": srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "other", PartitionKey: []string{"/pk"}}),
		"Split":           srv.Split("db", "c", "0"), "SplitAt": srv.SplitAt("db", "c", "0", "1F"), "Merge": srv.Merge("db", "c", "0", "1"),
		"LoseWrites":   srv.LoseWrites("db", "c", "0", 0),
		"BeginRestore": srv.BeginRestore("db", "c", time.Now()), "EndRestore": srv.EndRestore("db", "c"),
	} {
		if !errors.Is(err, cosmosemu.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", call, err)
		}
	}
	if err := srv.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// After a lost reply the client does not know the outcome, which Execute decides.
func TestLostReplies(t *testing.T) {
	for _, loss := range []cosmosemu.Loss{cosmosemu.Reset, cosmosemu.Truncate, cosmosemu.Drop} {
		for _, execute := range []bool{true, false} {
			for _, secure := range []bool{true, false} {
				t.Run(fmt.Sprintf("loss %d, execute %v, tls %v", loss, execute, secure), func(t *testing.T) {
					srv, c := start(t, &cosmosemu.Options{TLS: secure})
					var calls atomic.Int64
					srv.Control(cosmosemu.OpCreateItem, func(call *cosmosemu.Call) *cosmosemu.Fault {
						if calls.Add(1) > 1 {
							return &cosmosemu.Fault{Status: 400}
						}
						if !strings.Contains(string(call.Body), `"id":"1"`) || call.Container != "c" {
							t.Errorf("the hook sees %+v", call)
						}
						return &cosmosemu.Fault{Execute: execute, Loss: loss}
					})
					limit := time.Minute
					if loss == cosmosemu.Drop { // the client waits for as long as it may
						limit = time.Second
						_, _ = c.ReadItem(t.Context(), key("a"), "1", nil) // it connects
					}
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					_, err := c.CreateItem(ctx, key("a"), doc("1", "a"), &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
					if err == nil {
						t.Error("the client got a reply")
					}
					_, err = c.ReadItem(t.Context(), key("a"), "1", nil)
					want := 404
					if execute {
						want = 0
					}
					wantStatus(t, "read back", err, want)
				})
			}
		}
	}
}

func TestDelayHoldAndObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t, &cosmosemu.Options{Network: pipenet.New()})
		var seen []cosmosemu.Operation
		srv.Control(cosmosemu.OpAny, func(call *cosmosemu.Call) *cosmosemu.Fault {
			seen = append(seen, call.Operation)
			return nil
		})
		srv.Control(cosmosemu.OpUpsertItem, cosmosemu.Times(1, cosmosemu.Fault{Delay: 5 * time.Second}))
		began := time.Now()
		create(t, c, "1", "a")
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("delayed by %v, want 5 s", waited)
		}
		gate := make(chan struct{})
		srv.Control(cosmosemu.OpReadItem, cosmosemu.Times(1, cosmosemu.Fault{Hold: gate}))
		var released atomic.Bool
		done := make(chan error, 1)
		go func() {
			_, err := c.ReadItem(t.Context(), key("a"), "1", nil)
			if !released.Load() {
				err = errors.Join(err, errors.New("the read was not held"))
			}
			done <- err
		}()
		synctest.Wait()
		released.Store(true)
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(seen); got != "[ReadAccount UpsertItem ReadItem]" {
			t.Errorf("observed %s", got)
		}
	})
}

// When passes no calls that do not match, and Times does not count them.
func TestWhen(t *testing.T) {
	srv := cosmosemu.StartT(t)
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, srv, "c")
	create(t, c, "1", "a")
	create(t, c, "2", "a")
	failed := cosmosemu.Times(1, cosmosemu.Fault{Status: http.StatusTeapot})
	for _, match := range []cosmosemu.Call{
		{Database: "other"}, {Container: "other"}, {ID: "2"}, {Operation: cosmosemu.OpDeleteItem}, {Method: http.MethodPut}, {Path: "/"},
	} {
		defer srv.Control(cosmosemu.OpReadItem, cosmosemu.When(match, failed))()
	}
	if _, err := c.ReadItem(t.Context(), key("a"), "1", nil); err != nil {
		t.Errorf("a call that does not match: %v", err)
	}
	for _, want := range []int{http.StatusTeapot, 0} {
		if _, err := c.ReadItem(t.Context(), key("a"), "2", nil); status(err) != want {
			t.Errorf("the item that matches: %v, want %d", err, want)
		}
	}
}

// A hook may split the partition of its call.
func TestHooksMayUseTheServer(t *testing.T) {
	srv, c := start(t, nil)
	for i := range 10 {
		create(t, c, fmt.Sprint(i), fmt.Sprint("pk", i))
	}
	srv.Control(cosmosemu.OpReadChangeFeed, func(*cosmosemu.Call) *cosmosemu.Fault {
		if ranges := live(t, srv); len(ranges) == 1 {
			if err := srv.Split("db", "c", ranges[0].ID); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	token := ""
	if got := drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything}); len(got) != 10 {
		t.Errorf("%d changes, want 10", len(got))
	}
}

func TestControlEndpoint(t *testing.T) {
	srv, c := start(t, nil)
	post := func(path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.ControlEndpoint()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := srv.HTTPClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if code, text := post("dbs/db/colls/c/split", `{"range":"0","at":"10"}`); code != 200 || !strings.Contains(text, `"maxExclusive":"10"`) {
		t.Errorf("split: %d %s", code, text)
	}
	if code, text := post("dbs/db/colls/c/split", `{"range":"0"}`); code != 410 {
		t.Errorf("split of a dead range: %d %s", code, text)
	}
	if code, text := post("dbs/db/colls/c/merge", `{"left":"2","right":"1"}`); code != 400 {
		t.Errorf("merge in the wrong order: %d %s", code, text)
	}
	if code, text := post("dbs/db/colls/c/merge", `{"left":"1","right":"2"}`); code != 200 || !strings.Contains(text, `"id":"3"`) {
		t.Errorf("merge: %d %s", code, text)
	}
	if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a", "ttl", 60), nil); err != nil {
		t.Fatal(err)
	}
	if code, _ := post("clock", `{"advanceMs":61000}`); code != 200 {
		t.Errorf("clock: %d", code)
	}
	_, err := c.ReadItem(t.Context(), key("a"), "1", nil)
	wantStatus(t, "read after the clock was moved", err, 404)
	if code, text := post("faults", `{"operation":"UpsertItem","status":449}`); code != 200 {
		t.Errorf("fault: %d %s", code, text)
	}
	_, err = c.UpsertItem(t.Context(), key("a"), doc("1", "a"), nil)
	wantStatus(t, "with a fault", err, 449)
	if code, _ := post("faults/clear", `{}`); code != 200 {
		t.Errorf("clear: %d", code)
	}
	create(t, c, "1", "a")
	for _, wrong := range []struct{ path, body string }{
		{"faults", `{"operation":"Fly"}`},
		{"faults/clear", `x`},
		{"faults", `{"operations":"CreateItem","status":429}`}, // would be a fault of all operations
		{"faults", `{"operation":"CreateItem","status":42}`},
		{"faults", `{"operation":"CreateItem","status":1000}`},
		{"faults", `{"operation":"CreateItem","times":-1,"status":429}`},
		{"faults", `{"operation":"CreateItem","times":3,"retryAfterMs":100}`},
		{"clock", `{"advance":60000}`},
		{"clock", `{"advanceMs":1}{"advanceMs":1}`},
	} {
		if code, text := post(wrong.path, wrong.body); code != 400 {
			t.Errorf("%s %s: %d %s, want 400", wrong.path, wrong.body, code, text)
		}
	}
	create(t, c, "2", "a") // no fault was set
	if code, _ := post("nothing", `{}`); code != 404 {
		t.Errorf("unknown request: %d", code)
	}
}

// A web page whose name was pointed to this machine has the public key and is a loopback client,
// but its requests carry its own host.
func TestLoopbackListenerRefusesForeignHosts(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{AllowedHosts: []string{"box.test"}})
	for host, want := range map[string]int{
		"evil.example": 421, "localhost.evil.example:8081": 421, srv.Addr(): 200, "localhost": 200, "account.documents.localhost:8081": 200, "box.test:8081": 200,
	} {
		for _, path := range []string{"_emulator/clock", ""} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.Endpoint()+path, strings.NewReader(`{"advanceMs":1}`))
			if err != nil {
				t.Fatal(err)
			}
			if path == "" {
				r.Method = http.MethodGet
			}
			r.Host = host
			r.Header.Set("Content-Type", "application/json")
			reply, err := srv.HTTPClient().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			refused := reply.StatusCode == http.StatusMisdirectedRequest
			if refused != (want == 421) || refused && !strings.Contains(string(body), "FEEDBOX_ALLOWED_HOSTS") || path != "" && reply.StatusCode != want {
				t.Errorf("/%s answered %d to the host %q, want %d: %s", path, reply.StatusCode, host, want, body)
			}
		}
	}
}
