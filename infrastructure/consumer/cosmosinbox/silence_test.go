package cosmosinbox_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
)

// silent is a transport without responses, except with the properties of the account, because azcosmos
// reads them without the deadline of the caller.
type silent struct{}

func (silent) Do(r *http.Request) (*http.Response, error) {
	if strings.Trim(r.URL.Path, "/") == "" {
		const region = `[{"name":"West Europe","databaseAccountEndpoint":"https://account.example/"}]`
		body := io.NopCloser(strings.NewReader(`{"id":"account","writableLocations":` + region + `,"readableLocations":` + region + `}`))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Each operation on a silent service ends within its limit, also with a client that has none.
func TestOperationsEndIfTheServiceIsSilent(t *testing.T) {
	e := &consumer.Event{ID: "e1", Key: "k", Sequence: 1}
	for name, do := range map[string]func(ctx context.Context, b *cosmosinbox.Inbox) error{
		"last": func(ctx context.Context, b *cosmosinbox.Inbox) error { _, err := b.Last(ctx, "k"); return err },
		"record": func(ctx context.Context, b *cosmosinbox.Inbox) error {
			return b.Record(ctx, "k", consumer.Mark{Sequence: 1})
		},
		"batch": func(ctx context.Context, b *cosmosinbox.Inbox) error { _, err := b.Batch(ctx, e); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key, err := azcosmos.NewKeyCredential("a2V5")
				if err != nil {
					t.Fatal(err)
				}
				client, err := azcosmos.NewClientWithKey("https://account.example", key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: silent{}}})
				if err != nil {
					t.Fatal(err)
				}
				container, err := client.NewContainer("db", "inbox")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				err = do(ctx, open(t, container, "billing", &cosmosinbox.Options{Timeout: 3 * time.Second}))
				if took := time.Since(began); err == nil || took > 3*time.Second {
					t.Errorf("error %v after %v, want one within 3 s", err, took)
				}
			})
		})
	}
}

// A consumer that starts before its store records events seconds after the store does. Its client
// is that of the example.
func TestConsumerThatStartsBeforeTheStoreRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const host = "inbox.emulator:8081"
		network, began := pipenet.New(), time.Now()
		transport := &http.Transport{DialContext: network.DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		client, err := cosmos.NewClient(cosmos.ClientConfig{
			Endpoint: "http://" + host, Key: cosmosemu.WellKnownKey, Options: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
		})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("contacts", "inbox")
		if err != nil {
			t.Fatal(err)
		}
		inbox := open(t, container, "mail", nil)
		if err := inbox.Record(t.Context(), "ann", mark(1)); err == nil {
			t.Error("recorded without a store")
		}
		time.Sleep(10*time.Second - time.Since(began))
		emulator := cosmosemu.StartT(t, &cosmosemu.Options{Network: network, Host: host})
		if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
			t.Fatal(err)
		}
		for err := inbox.Record(t.Context(), "ann", mark(1)); err != nil; err = inbox.Record(t.Context(), "ann", mark(1)) {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s after the store: %v", time.Since(began)-10*time.Second, err)
			}
			time.Sleep(time.Second)
		}
		want(t, inbox, "ann", mark(1))
	})
}
