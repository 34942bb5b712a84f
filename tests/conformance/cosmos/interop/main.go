// Interop runs this project's change feed processor for a while, together with another
// product's processor on the same leases:
//
//	interop READY DATABASE PREFIX SECONDS
//
// READY is a file written by feedbox-dev --ready-file. The processor is named PREFIX. It
// reads the container feed from the beginning and stores its leases in the container
// leases, both in DATABASE. It prints each acquired, released and lost lease with the time
// since its start, and at the end the delivered documents:
//
//	delivered N of M documents: KEY/ID KEY/ID ...
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal("interop: ", err)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: interop READY DATABASE PREFIX SECONDS")
	}
	seconds, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("SECONDS: %w", err)
	}
	client, err := connect(args[0])
	if err != nil {
		return err
	}
	feed, err := cosmosfeed.NewFeed(client, args[1], "feed")
	if err != nil {
		return err
	}
	leases, err := cosmosfeed.NewLeaseStore(client, args[1], "leases")
	if err != nil {
		return err
	}
	seen := &seen{began: time.Now(), documents: map[string]int{}}
	p, err := changefeed.New(feed, leases, seen, &changefeed.Options{
		Processor: args[2], Host: "go", Expiry: 6 * time.Second, Acquire: 2 * time.Second,
		PollMax: 200 * time.Millisecond, PollMin: 100 * time.Millisecond, Observer: seen.observer(),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	if err := p.Run(ctx); err != nil {
		return err
	}
	seen.print()
	return nil
}

func connect(ready string) (*azcosmos.Client, error) {
	text, err := os.ReadFile(ready)
	if err != nil {
		return nil, fmt.Errorf("READY: %w", err)
	}
	var at struct{ CosmosEndpoint, CosmosKey string }
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, fmt.Errorf("READY %s: %w", ready, err)
	}
	key, err := azcosmos.NewKeyCredential(at.CosmosKey)
	if err != nil {
		return nil, fmt.Errorf("READY %s: %w", ready, err)
	}
	return azcosmos.NewClientWithKey(at.CosmosEndpoint, key, cosmosfeed.ClientOptions(nil))
}

// seen is the handler; it records the documents.
type seen struct {
	began time.Time

	mu        sync.Mutex // guards the fields below
	documents map[string]int
	total     int
}

func (s *seen) Handle(_ context.Context, b *changefeed.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.Items {
		var doc struct{ ID, PK string }
		if err := json.Unmarshal(b.Items[i].Raw, &doc); err != nil {
			return err
		}
		s.documents[doc.PK+"/"+doc.ID]++
		s.total++
	}
	return nil
}

func (s *seen) observer() *changefeed.Observer {
	say := func(format string, args ...any) {
		fmt.Printf("%6d ms "+format+"\n", append([]any{time.Since(s.began).Milliseconds()}, args...)...)
	}
	return &changefeed.Observer{
		LeaseAcquired: func(e changefeed.LeaseAcquired) {
			say("acquired %s from %q, epoch %d, behind %s", e.Range, e.From, e.Epoch, e.Continuation)
		},
		LeaseReleased: func(e changefeed.LeaseReleased) {
			say("released %s to %q, epoch %d: %s", e.Range, e.To, e.Epoch, e.Reason)
		},
		LeaseLost:  func(e changefeed.LeaseLost) { say("lost %s to %q, epoch %d", e.Range, e.To, e.Epoch) },
		LeaseError: func(e changefeed.LeaseError) { say("error %s %s: %v", e.Op, e.Lease, e.Err) },
	}
}

func (s *seen) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.documents))
	for name := range s.documents {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Printf("delivered %d of %d documents: %s\n", s.total, len(names), strings.Join(names, " "))
}
