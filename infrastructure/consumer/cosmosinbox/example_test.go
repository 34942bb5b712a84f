package cosmosinbox_test

import (
	"context"
	"fmt"
	"log"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
)

// All processes of a consumer share one inbox, so that each process recognises the events that
// another one has handled. Pass the inbox to a session processor as SessionOptions.Inbox.
func Example() {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		log.Panic(err)
	}
	defer srv.Close()
	// DefaultTTL -1 enables the TTL of documents that have their own.
	if err := srv.CreateContainer("billing", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		log.Panic(err)
	}
	// Against Azure: Credential instead of Key.
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: srv.Endpoint(), Key: srv.Key()})
	if err != nil {
		log.Panic(err)
	}
	defer client.Close()
	container, err := client.NewContainer("billing", "inbox")
	if err != nil {
		log.Panic(err)
	}
	openInbox := func() *cosmosinbox.Inbox {
		inbox, err := cosmosinbox.New(container, "billing", nil)
		if err != nil {
			log.Panic(err)
		}
		return inbox
	}
	ctx := context.Background()
	if err := openInbox().Record(ctx, "ann", consumer.Mark{Sequence: 2, EventID: "e2"}); err != nil {
		log.Panic(err)
	}
	last, err := openInbox().Last(ctx, "ann")
	if err != nil {
		log.Panic(err)
	}
	for _, e := range []*consumer.Event{{ID: "e1", Sequence: 1}, {ID: "e2", Sequence: 2}, {ID: "e3", Sequence: 3}, {ID: "e5", Sequence: 5}} {
		fmt.Println(e.ID, consumer.Judge(last, e))
	}
	// Output:
	// e1 stale
	// e2 duplicate
	// e3 fresh
	// e5 gap
}
