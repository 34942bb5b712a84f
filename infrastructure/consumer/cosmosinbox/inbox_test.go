package cosmosinbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// newContainer returns a container of an emulated account.
func newContainer(t *testing.T, options ...*cosmosemu.Options) (*azcosmos.ContainerClient, *cosmosemu.Server) {
	t.Helper()
	emulator := cosmosemu.StartT(t, options...)
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	container, err := emulator.Client().NewContainer("contacts", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	return container, emulator
}

func open(t *testing.T, c *azcosmos.ContainerClient, consumer string, opts *cosmosinbox.Options) *cosmosinbox.Inbox {
	t.Helper()
	b, err := cosmosinbox.New(c, consumer, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func record(t *testing.T, b *cosmosinbox.Inbox, key string, sequence int64) {
	t.Helper()
	if err := b.Record(t.Context(), key, mark(sequence)); err != nil {
		t.Fatal(err)
	}
}

func mark(sequence int64) consumer.Mark {
	return consumer.Mark{Sequence: sequence, AggregateVersion: sequence + 10, EventID: fmt.Sprint("e", sequence)}
}

func want(t *testing.T, b *cosmosinbox.Inbox, key string, m consumer.Mark) {
	t.Helper()
	got, err := b.Last(t.Context(), key)
	got.Recent = ""
	if err != nil || got != m {
		t.Errorf("mark of %s is %+v, %v; want %+v", key, got, err, m)
	}
}

// azcosmos does not escape the ids of transactions, and the service allows no slashes in ids.
func TestConsumerIsAValidID(t *testing.T) {
	container, _ := newContainer(t)
	for _, name := range []string{"billing/eu", `billing\eu`, "billing?", "billing#1", `"billing"`, "billing\n"} {
		if _, err := cosmosinbox.New(container, name, nil); err == nil || !strings.Contains(err.Error(), "use a name without") {
			t.Errorf("consumer %q: %v", name, err)
		}
	}
	record(t, open(t, container, "billing eu-1: é'%2F", nil), "k", 1)
	want(t, open(t, container, "billing eu-1: é'%2F", nil), "k", mark(1))
}

// The service answers 404/1013 for some seconds after a container was created. That does not mean
// that an event is new.
func TestInboxOfAContainerThatIsBeingCreatedFails(t *testing.T) {
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{CreationDelay: time.Hour})
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	emulator.Control(cosmosemu.OpAny, func(*cosmosemu.Call) *cosmosemu.Fault {
		requests.Add(1)
		return nil
	})
	container, err := emulator.Client().NewContainer("contacts", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	inbox := open(t, container, "mail", &cosmosinbox.Options{Timeout: 3 * time.Second})
	if m, err := inbox.Last(t.Context(), "ann"); err == nil {
		t.Errorf("the mark is %+v, want an error", m)
	}
	if err := inbox.Record(t.Context(), "ann", mark(1)); err == nil {
		t.Error("recorded in a container that is being created")
	}
	if n := requests.Load(); n > 20 {
		t.Errorf("%d requests, want no busy loop", n)
	}
	emulator.Advance(time.Hour)
	record(t, inbox, "ann", 1)
	want(t, inbox, "ann", mark(1))
}

func TestProcessesShareMarks(t *testing.T) {
	c, _ := newContainer(t)
	first, second, other := open(t, c, "mail", nil), open(t, c, "mail", nil), open(t, c, "audit", nil)
	want(t, first, "a", consumer.Mark{})
	record(t, first, "a", 1)
	record(t, first, "a", 2)
	record(t, first, "b", 5)
	want(t, second, "a", mark(2))
	want(t, second, "b", mark(5))
	want(t, other, "a", consumer.Mark{})
}

// The next owner of a key sees the mark of the one before, although replicas lag by an hour.
func TestMarkOfAnotherProcessIsSeenAtOnce(t *testing.T) {
	c, _ := newContainer(t, &cosmosemu.Options{StaleReads: time.Hour, Seed: 1})
	first, second := open(t, c, "mail", nil), open(t, c, "mail", nil)
	for sequence := int64(1); sequence <= 40; sequence += 2 {
		record(t, first, "a", sequence)
		want(t, second, "a", mark(sequence))
		record(t, second, "a", sequence+1)
		want(t, first, "a", mark(sequence+1))
	}
}

// lagging is a transport whose reads of marks have the answer of an earlier one while it lags.
type lagging struct {
	*http.Client
	lags   bool
	answer []byte
}

func (l *lagging) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.Client.Do(r)
	if err != nil || r.Header.Get("X-Ms-Cosmos-Is-Batch-Request") == "" {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if !l.lags {
		l.answer = body
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(l.answer)), int64(len(l.answer))
	return answer, nil
}

// A new primary replica may lack the last write of this process. Its events would be handled again.
func TestOwnMarkPrecedesThatOfAReplicaThatLacksIt(t *testing.T) {
	_, emulator := newContainer(t)
	transport := &lagging{Client: emulator.HTTPClient()}
	key, err1 := azcosmos.NewKeyCredential(emulator.Key())
	client, err2 := azcosmos.NewClientWithKey(emulator.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport}})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer("contacts", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "mail", nil)
	later, parked := mark(2), mark(2)
	parked.Parking = consumer.ParkedKey
	record(t, b, "a", 1)
	for _, m := range []consumer.Mark{later, parked} {
		before, err := b.Last(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Record(t.Context(), "a", m); err != nil {
			t.Fatal(err)
		}
		transport.lags = true
		want(t, b, "a", m)
		want(t, open(t, c, "mail", nil), "a", before) // which has written nothing
		transport.lags = false
		want(t, b, "a", m)
	}
}

// A process that had found no mark, or one of an event before, must not keep it once another process has parked an
// event of the key: events that were handled would be parked behind it, and handled again.
func TestMarkOfAKeyThatAnotherProcessHasParkedIsSeen(t *testing.T) {
	c, _ := newContainer(t)
	one, other := open(t, c, "a", nil), open(t, c, "a", nil)
	want(t, one, "none", consumer.Mark{})
	record(t, one, "before", 1)
	withoutSequence := consumer.Mark{EventID: "first"}
	if err := one.Record(t.Context(), "unordered", withoutSequence); err != nil {
		t.Fatal(err)
	}
	parked := mark(2)
	parked.Parking = consumer.ParkedKey
	announced := consumer.Mark{Parking: "e1"}
	unordered := consumer.Mark{EventID: "second", Parking: consumer.ParkedKey}
	want(t, one, "announced", consumer.Mark{})
	for key, m := range map[string]consumer.Mark{"none": parked, "before": parked, "announced": announced, "unordered": unordered} {
		if err := other.Record(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			want(t, one, key, m)
		}
	}
}

// An event whose mark cannot be read is not a new one: it would be handled again.
func TestUnreadableMarkIsAnError(t *testing.T) {
	c, _ := newContainer(t)
	b := open(t, c, "mail", nil)
	partition := azcosmos.NewPartitionKeyString("a")
	const document = `{"id":"mail","partitionKey":"a","type":"inbox","sequence":"five","eventId":"e5","ttl":-1}`
	if _, err := c.CreateItem(t.Context(), partition, []byte(document), nil); err != nil {
		t.Fatal(err)
	}
	const want = "read the inbox of key a: json: cannot unmarshal"
	if m, err := b.Last(t.Context(), "a"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("the mark is %+v, %v; want %s", m, err, want)
	}
	if err := b.Record(t.Context(), "a", mark(6)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("recorded: %v; want %s", err, want)
	}
	kept, err := c.ReadItem(t.Context(), partition, "mail", nil)
	if err != nil || !strings.Contains(string(kept.Value), `"sequence":"five"`) {
		t.Errorf("the document is %s, %v", kept.Value, err)
	}
}

func TestMarkNeverMovesBack(t *testing.T) {
	c, _ := newContainer(t)
	late, current := open(t, c, "mail", nil), open(t, c, "mail", nil)
	record(t, late, "a", 3)
	record(t, current, "a", 4)
	record(t, current, "a", 5)
	record(t, late, "a", 4) // it lost its session, and has cached the ETag of 3
	want(t, late, "a", mark(5))
	record(t, late, "a", 6)
	want(t, current, "a", mark(6))
	record(t, current, "a", 6)
	want(t, current, "a", mark(6))
}

func TestConcurrentRecords(t *testing.T) {
	c, _ := newContainer(t)
	var all sync.WaitGroup
	for range 4 {
		b := open(t, c, "mail", nil)
		all.Go(func() {
			for n := int64(1); n <= 20; n++ {
				if err := b.Record(t.Context(), "a", mark(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want(t, open(t, c, "mail", nil), "a", mark(20))
}

func TestMarksExpire(t *testing.T) {
	c, emulator := newContainer(t)
	b := open(t, c, "mail", &cosmosinbox.Options{TTL: time.Minute})
	record(t, b, "a", 1)
	emulator.Advance(2 * time.Minute)
	record(t, b, "a", 2) // the cached ETag is that of an expired document
	want(t, b, "a", mark(2))
	emulator.Advance(2 * time.Minute)
	want(t, b, "a", consumer.Mark{})
}

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
