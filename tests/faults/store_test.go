package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/tests/sim/world"
)

// The world does not export its client of the store. This one connects through the world's HTTP
// client.

// wire is a transport from an SDK to the store of a world. It fails once cut returns true.
type wire struct {
	client *world.Client
	cut    func() bool
	// seen, if set, receives every answer. It is called concurrently.
	seen func(r *http.Request, status int)
	// spoil, if set, changes the body of every answer. It is called concurrently.
	spoil func(body []byte) []byte
}

var errCut = errors.New("the process has no network")

// Do implements policy.Transporter.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	var body any
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(raw) > 0 {
			body = json.RawMessage(raw)
		}
	}
	headers := make([]string, 0, 2*len(r.Header))
	for name, values := range r.Header {
		headers = append(headers, name, values[0])
	}
	if w.cut != nil && w.cut() {
		return nil, errCut
	}
	reply := w.client.Do(r.Context(), "cosmos:8081", r.Method, r.URL.RequestURI(), body, headers...)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if reply.Status == 0 || w.cut != nil && w.cut() {
		return nil, errCut
	}
	if w.seen != nil {
		w.seen(r, reply.Status)
	}
	if w.spoil != nil {
		reply.Body = w.spoil(reply.Body)
	}
	return &http.Response{
		StatusCode: reply.Status, Status: fmt.Sprint(reply.Status, " ", http.StatusText(reply.Status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: reply.Header, Body: io.NopCloser(bytes.NewReader(reply.Body)), ContentLength: int64(len(reply.Body)), Request: r,
	}, nil
}

// address returns a new address of the store, because azcosmos shares its caches within a process by
// address. All addresses of a scenario are of one account.
func (s *scenario) address() string {
	return fmt.Sprintf("http://faults-%d.documents.example:%d/", s.number, 20_000+s.ports.Add(1))
}

// containers returns clients of containers of the store, with their own connection.
func (s *scenario) containers(names ...string) []*azcosmos.ContainerClient {
	s.Helper()
	network := s.NewClient()
	s.Cleanup(network.Close)
	key, err := azcosmos.NewKeyCredential(s.Cosmos().Key())
	if err != nil {
		s.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(s.address(), key, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &wire{client: network}},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(client.Close)
	var list []*azcosmos.ContainerClient
	for _, name := range names {
		c, err := client.NewContainer(world.Database, name)
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// document is a document that a test stores directly.
type document struct {
	raw     string
	replace bool // it exists already
}

// commit stores documents of one key in one transaction.
func (s *scenario) commit(c *azcosmos.ContainerClient, key string, documents ...document) {
	s.Helper()
	batch := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	for _, d := range documents {
		if d.replace {
			batch.UpsertItem([]byte(d.raw), nil)
		} else {
			batch.CreateItem([]byte(d.raw), nil)
		}
	}
	r, err := c.ExecuteTransactionalBatch(s.Context(), batch, nil)
	if err != nil || !r.Success {
		s.Fatalf("store %d documents of %s: %v %+v", len(documents), key, err, r.OperationResults)
	}
}

// contact returns a contact's document with the fields that the relay and the verifier read.
func contact(key string, version, sequence int) document {
	return document{fmt.Sprintf(`{"id":%q,"partitionKey":%q,"type":"contact","data":{"version":%d,"sequence":%d},"ttl":-1}`, key, key, version, sequence), true}
}

// event returns the document of the n-th event of a contact, which is also of its n-th version. It
// expires after ttl seconds; -1 means never.
func event(key string, n, ttl int) document {
	return document{raw: fmt.Sprintf(
		`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":"ContactNameUpdatedEvent","sequence":%d,"aggregateVersion":%d},"ttl":%d}`,
		eventID(key, n), key, n, n, ttl)}
}

func eventID(key string, n int) string { return fmt.Sprintf("%s.%d", key, n) }
