package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/mediator"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
)

// forgotten does not answer the first request of an item, like a connection that a firewall has
// dropped.
type forgotten struct{ reads int }

func (f *forgotten) Do(r *http.Request) (*http.Response, error) {
	body := `{"writableLocations":[{"name":"here","databaseAccountEndpoint":"http://here/"}],"readableLocations":[]}`
	if strings.Contains(r.URL.Path, "/docs/") {
		if f.reads++; f.reads == 1 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		body = `{"id":"a"}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestUnansweredRequestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &forgotten{}
		client, err := cosmos.NewClient(cosmos.ClientConfig{
			Endpoint: "http://here/", Key: "a2V5",
			Options: azcore.ClientOptions{Transport: wire},
		})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("feedbox", "data")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%v after %v, want the end of the deadline after 10 s", err, took)
		}
		if _, err := container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil); err != nil {
			t.Errorf("the next request: %v", err)
		}
	})
}

// While the account still advertises the earlier region, writes fail soon as unavailable and are
// certainly not stored. Reads continue.
func TestRegionFailoverIsUnavailableNotAFailure(t *testing.T) {
	for name, disaster := range map[string]func(*cosmosemu.Server) error{
		"the write region moves": func(s *cosmosemu.Server) error { return s.FailOver("East US") },
		"the write region is removed": func(s *cosmosemu.Server) error {
			return errors.Join(s.FailOver("East US"), s.RemoveRegion("West US"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Regions: []string{"West US", "East US"}, Network: pipenet.New()}})
				id := w.create().Contact.ID
				must(t, disaster(w.emulator))
				for range 3 {
					began := time.Now()
					_, err := mediator.Send(t.Context(), w.app, john())
					f, ok := errors.AsType[*fault.Error](err)
					if took := time.Since(began); !ok || f.Kind != fault.Unavailable || f.Code == cosmos.CodeOutcomeUnknown || fault.RetryAfter(err) < time.Second || took > 15*time.Second {
						t.Errorf("after %s: %v, retry after %s; want unavailable with a wait", took, err, fault.RetryAfter(err))
					}
					if host := strings.TrimPrefix(strings.Trim(w.emulator.RegionEndpoint("West US"), "/"), "http://"); !strings.Contains(err.Error(), "the region at "+host) {
						t.Errorf("the error does not name the region %s: %v", host, err)
					}
					if _, err := w.rename(t.Context(), id, "Jane"); !fault.Is(err, fault.Unavailable) {
						t.Errorf("a change: %v", err)
					}
					time.Sleep(time.Minute)
				}
				items, err := w.emulator.Items("contacts", "data")
				must(t, err)
				if len(items) != 2 { // the contact and its event
					t.Errorf("%d documents are stored, want those from before", len(items))
				}
				w.emulator.AdvertiseRegions()
				time.Sleep(5 * time.Second)
				began := time.Now()
				if _, err := w.rename(t.Context(), id, "Jane"); err != nil || time.Since(began) > 10*time.Second {
					t.Errorf("%s after the account lists the new region: %v", time.Since(began), err)
				}
			})
		})
	}
}

// noToken is the credential of an identity whose service fails during its answer, or with a status.
type noToken struct {
	calls  atomic.Int64
	status int
}

func (n *noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	n.calls.Add(1)
	if n.status > 0 {
		return azcore.AccessToken{}, fmt.Errorf("the identity service: %w", &azcore.ResponseError{StatusCode: n.status})
	}
	return azcore.AccessToken{}, &net.OpError{Op: "read", Err: errors.New("connection reset by the identity service")}
}

// Without a token nothing is sent. A caller that hears that the change may have been made would look for it.
func TestChangeWithoutATokenIsNotMade(t *testing.T) {
	t.Parallel()
	emulator := cosmosemu.StartT(t, nil)
	must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}))
	for _, status := range []int{0, http.StatusNotFound, http.StatusPreconditionFailed, http.StatusServiceUnavailable} {
		identity := &noToken{status: status}
		client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Credential: identity, Options: azcore.ClientOptions{Transport: emulator.HTTPClient()}})
		must(t, err)
		t.Cleanup(client.Close)
		container, err := client.NewContainer("contacts", "data")
		must(t, err)
		outbox, err := cosmos.NewOutbox(container, &cosmos.OutboxOptions{Options: cosmos.Options{Backoff: -1}})
		must(t, err)
		for name, b := range map[string]*cosmos.Batch{
			"a batch":    outbox.Batch("k").Put(invoice{ID: "i1"}, "").Emit("InvoiceIssuedEvent", nil),
			"a document": outbox.Batch("k").Put(invoice{ID: "i1"}, ""),
		} {
			before := identity.calls.Load()
			_, err := b.Commit(t.Context())
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Unavailable || f.Code != "store_unavailable" || !strings.Contains(err.Error(), "identity service") {
				t.Errorf("%s, status %d: %v; want unavailable, nothing stored, and the cause", name, status, err)
			}
			if calls := identity.calls.Load() - before; calls < 3 {
				t.Errorf("%s, status %d: %d requests for a token, want one per attempt, 3", name, status, calls)
			}
		}
	}
}
