package cosmosrelay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// silentService is a transport to a service that does not respond.
type silentService struct {
	account bool // except with the properties of the account
	headers bool // except with the headers of a response
}

func (s silentService) Do(r *http.Request) (*http.Response, error) {
	respond := func(body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
	}
	switch {
	case s.account && strings.Trim(r.URL.Path, "/") == "":
		const region = `[{"name":"West Europe","databaseAccountEndpoint":"https://account.example/"}]`
		return respond(io.NopCloser(strings.NewReader(`{"id":"account","writableLocations":` + region + `,"readableLocations":` + region + `}`)))
	case s.headers:
		return respond(silent(r))
	}
	return nil, silent(r)()
}

// silentBody is a body without bytes, which ends with its request.
type silentBody func() error

func (b silentBody) Read([]byte) (int, error) { return 0, b() }
func (silentBody) Close() error               { return nil }

func silent(r *http.Request) silentBody {
	return func() error {
		<-r.Context().Done()
		return r.Context().Err()
	}
}

// Each operation on a silent service ends: 10 s after a request, and 15 s after the first use of a client.
func TestOperationsEndIfTheServiceIsSilent(t *testing.T) {
	whole := changefeed.FeedRange{Min: "", Max: "FF"}
	operations := map[string]func(ctx context.Context, s *relayport.Store) error{
		"verify": func(ctx context.Context, s *relayport.Store) error { return s.Verify(ctx) },
		"source": func(ctx context.Context, s *relayport.Store) error { _, err := s.Feed.Source(ctx); return err },
		"ranges": func(ctx context.Context, s *relayport.Store) error { _, err := s.Feed.Ranges(ctx); return err },
		"now":    func(ctx context.Context, s *relayport.Store) error { _, err := s.Feed.Now(ctx, whole); return err },
		"read": func(ctx context.Context, s *relayport.Store) error {
			_, err := s.Feed.Read(ctx, changefeed.ReadRequest{Range: whole, MaxItems: 10})
			return err
		},
		"event": func(ctx context.Context, s *relayport.Store) error {
			_, err := s.Events.Event(ctx, "k", "e")
			return err
		},
		"events": func(ctx context.Context, s *relayport.Store) error { _, err := s.Events.OfKey(ctx, "k"); return err },
		"leases": func(ctx context.Context, s *relayport.Store) error { _, err := s.Leases.List(ctx, "x"); return err },
		"lease":  func(ctx context.Context, s *relayport.Store) error { _, err := s.Leases.Read(ctx, "x"); return err },
		"create": func(ctx context.Context, s *relayport.Store) error {
			_, err := s.Leases.Create(ctx, changefeed.Record{ID: "x", Body: []byte(`{"id":"x"}`)})
			return err
		},
		"replace": func(ctx context.Context, s *relayport.Store) error {
			_, err := s.Leases.Replace(ctx, changefeed.Record{ID: "x", ETag: "1", Body: []byte(`{"id":"x"}`)})
			return err
		},
		"delete": func(ctx context.Context, s *relayport.Store) error { return s.Leases.Delete(ctx, "x", "1") },
		"gate":   func(ctx context.Context, s *relayport.Store) error { _, err := s.Parked.Gate(ctx, "k"); return err },
		"park": func(ctx context.Context, s *relayport.Store) error {
			_, err := s.Parked.Park(ctx, "k", []relay.ParkedEvent{{ID: "e", Key: "k"}}, &relay.Closing{Event: "e"})
			return err
		},
	}
	for name, do := range operations {
		for _, service := range []silentService{{}, {account: true}, {account: true, headers: true}} {
			t.Run(fmt.Sprintf("%s %+v", name, service), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cosmos.ClientConfig{Endpoint: "https://account.example", Key: "a2V5"}
					c.Options.Transport = service
					client, err := cosmos.NewClient(c)
					if err != nil {
						t.Fatal(err)
					}
					store, err := cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: "shop"})
					if err != nil {
						t.Fatal(err)
					}
					limit := 10 * time.Second
					if !service.account {
						limit = 15 * time.Second
					}
					ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
					defer cancel()
					began := time.Now()
					err = do(ctx, &store)
					if took := time.Since(began); err == nil || took > limit {
						t.Errorf("error %v after %v, want one within %v", err, took, limit)
					}
					time.Sleep(5 * time.Minute) // the client refreshes the properties of the account
				})
			})
		}
	}
}

// A relay whose process starts before its store works seconds after the store does. Meanwhile probes
// see the outage, and a store without the properties of its account is not verified.
func TestRelayStoreWorksSecondsAfterALateStore(t *testing.T) {
	for _, level := range []string{"Session", "Eventual"} {
		synctest.Test(t, func(t *testing.T) {
			const host = "late.emulator:8081"
			network, began := pipenet.New(), time.Now()
			transport := &http.Transport{DialContext: network.DialContext}
			t.Cleanup(transport.CloseIdleConnections)
			account, up := &cosmos.Account{}, false
			c := cosmos.ClientConfig{Endpoint: "http://" + host, Key: cosmosemu.WellKnownKey}
			c.Options.Transport = &http.Client{Transport: transport}
			c.Options.PerCallPolicies = []policy.Policy{account, cosmos.Answers(func(err error) {
				if err == nil && !up {
					t.Errorf("%s: Answers notes success during the outage", time.Since(began))
				}
			})}
			client, err := cosmos.NewClient(c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			store, err := cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: "shop", Account: account})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Verify(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("before the store: %v, want unavailable", err)
			}
			if err := account.Verify(); !fault.Is(err, fault.Unavailable) {
				t.Errorf("an account that could not be read: %v, want unavailable", err)
			}
			time.Sleep(10*time.Second - time.Since(began))
			up = true
			emulator := cosmosemu.StartT(t, &cosmosemu.Options{Network: network, Host: host, Consistency: level})
			for name, path := range map[string]string{"data": cosmos.PartitionKeyPath, "leases": "/id", "parked": cosmos.PartitionKeyPath} {
				props := cosmosemu.ContainerProps{ID: name, PartitionKey: []string{path}}
				if name == "data" {
					props.DefaultTTL = -1
				}
				if err := emulator.CreateContainer("shop", props); err != nil {
					t.Fatal(err)
				}
			}
			for err = store.Verify(t.Context()); fault.Is(err, fault.Unavailable); err = store.Verify(t.Context()) {
				if time.Since(began) > 20*time.Second {
					t.Fatalf("%s after the store: %v", time.Since(began)-10*time.Second, err)
				}
				time.Sleep(time.Second)
			}
			if weak := level == "Eventual"; (err != nil) != weak || weak && !strings.Contains(err.Error(), "it needs Session") {
				t.Errorf("%s: %v", level, err)
			}
		})
	}
}

// quietPages is a transport that loses the rest of each page of the feed after its first byte.
type quietPages struct{ *http.Client }

func (q quietPages) Do(r *http.Request) (*http.Response, error) {
	resp, err := q.Client.Do(r)
	if err == nil && r.Header.Get("A-IM") != "" && resp.StatusCode == http.StatusOK {
		resp.Body = quietBody{io.MultiReader(io.LimitReader(resp.Body, 1), silent(r)), resp.Body}
	}
	return resp, err
}

type quietBody struct {
	io.Reader
	io.Closer
}

// The limit of a request includes the body, also that of a page, which the feed reads itself.
func TestReadEndsIfAPageStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	emulator := cosmosemu.StartT(t)
	if err := emulator.CreateContainer("shop", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	c := cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key()}
	c.Options.Transport = quietPages{emulator.HTTPClient()}
	c.Options.Retry.TryTimeout = time.Second
	client, err := cosmos.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.NewContainer("shop", "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(`{"id":"e","partitionKey":"k"}`), nil); err != nil {
		t.Fatal(err)
	}
	feed, err := cosmosfeed.NewFeed(client, "shop", "data")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = feed.Read(ctx, changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "FF"}, MaxItems: 10})
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("error %v, want the timeout of the request before that of the caller", err)
	}
}
