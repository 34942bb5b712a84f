package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// load sends operations from several goroutines for a while.
type load struct {
	length  time.Duration
	clients int
	serial  atomic.Int64 // makes ids unique over all phases
}

// phase is one kind of operation.
type phase struct {
	name    string
	prepare func(context.Context, *azcosmos.ContainerClient) error
	run     func(ctx context.Context, c *azcosmos.ContainerClient, serial int64) error
}

const filler = 900

func body(id, pk string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"contact","data":{"name":"John Doe","n":12345,"list":[1,2,3],"text":"%s"}}`,
		id, pk, strings.Repeat("x", filler))
}

// warm is the number of documents the read phases choose from.
const warm = 1000

func fill(ctx context.Context, c *azcosmos.ContainerClient) error {
	for i := range warm {
		id := fmt.Sprint("r", i)
		if _, err := c.UpsertItem(ctx, azcosmos.NewPartitionKeyString(id), body(id, id), nil); err != nil {
			return err
		}
	}
	return nil
}

var phases = []phase{
	{"create", nil, func(ctx context.Context, c *azcosmos.ContainerClient, n int64) error {
		id := fmt.Sprint("c", n)
		_, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), body(id, id), nil)
		return err
	}},
	{"read", fill, func(ctx context.Context, c *azcosmos.ContainerClient, n int64) error {
		id := fmt.Sprint("r", n%warm)
		_, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
		return err
	}},
	{"upsert", fill, func(ctx context.Context, c *azcosmos.ContainerClient, n int64) error {
		id := fmt.Sprint("r", n%warm)
		_, err := c.UpsertItem(ctx, azcosmos.NewPartitionKeyString(id), body(id, id), nil)
		return err
	}},
	{"batch5", nil, func(ctx context.Context, c *azcosmos.ContainerClient, n int64) error {
		pk := fmt.Sprint("b", n)
		b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
		for i := range 5 {
			b.CreateItem(body(fmt.Sprint(i), pk), nil)
		}
		r, err := c.ExecuteTransactionalBatch(ctx, b, nil)
		if err == nil && (!r.Success || len(r.OperationResults) != 5) {
			err = fmt.Errorf("the batch failed: %+v", r.OperationResults)
		}
		return err
	}},
	{"feed100", fillFeed, nil},
}

// fillFeed makes sure there are some changes to read.
func fillFeed(ctx context.Context, c *azcosmos.ContainerClient) error {
	if _, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString("f0"), "f0", nil); err == nil {
		return nil
	}
	for i := range 2 * warm {
		id := fmt.Sprint("f", i)
		if _, err := c.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), body(id, id), nil); err != nil {
			return err
		}
	}
	return nil
}

// feedPage reads the next page of 100, from the beginning after the last.
func feedPage(ctx context.Context, c *azcosmos.ContainerClient, token *string) error {
	o := &azcosmos.ChangeFeedOptions{FeedRange: &azcosmos.FeedRange{MaxExclusive: "FF"}, MaxItemCount: 100}
	if *token != "" {
		o.Continuation = token
	}
	r, err := c.ReadChangeFeed(ctx, o)
	if *token = r.ContinuationToken; r.Count < 100 {
		*token = ""
	}
	return err
}

func (l *load) phase(ctx context.Context, server *child, p phase) (result, error) {
	client, err := connect(server.endpoint, server.key)
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	c, err := client.NewContainer("bench", "c")
	if err != nil {
		return result{}, err
	}
	if p.prepare != nil {
		if err := p.prepare(ctx, c); err != nil {
			return result{}, err
		}
	}
	before, err := server.cpu()
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	var operations atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	for range l.clients {
		wg.Go(func() {
			var token string
			for time.Since(began) < l.length && failure.Load() == nil {
				var err error
				if p.run != nil {
					err = p.run(ctx, c, l.serial.Add(1))
				} else {
					err = feedPage(ctx, c, &token)
				}
				if err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				operations.Add(1)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	if err := failure.Load(); err != nil {
		return result{}, *err
	}
	after, err := server.cpu()
	return result{int(operations.Load()), elapsed, after - before}, err
}

func connect(endpoint, key string) (*azcosmos.Client, error) {
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		return nil, err
	}
	transport := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // both servers are our own children
	}}
	return azcosmos.NewClientWithKey(endpoint, credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport}})
}
