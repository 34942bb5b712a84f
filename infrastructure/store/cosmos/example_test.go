package cosmos_test

import (
	"context"
	"fmt"

	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
)

// A document and its event are stored in one transaction. The relay sends the event.
func ExampleOutbox() {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	props := cosmosemu.ContainerProps{ID: "invoices", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}
	if err := srv.CreateContainer("shop", props); err != nil {
		fmt.Println(err)
		return
	}
	container, err := srv.Client().NewContainer("shop", "invoices")
	if err != nil {
		fmt.Println(err)
		return
	}
	outbox, err := cosmos.NewOutbox(container, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	type invoice struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	type issued struct {
		Amount int `json:"amount"`
	}
	ctx := context.Background()
	done, err := outbox.Batch("customer-7").
		Put(invoice{"i1", 5}, "").
		Emit("InvoiceIssuedEvent", issued{5}).
		Commit(ctx)
	fmt.Println("stored:", err == nil)

	_, err = outbox.Batch("customer-7").Put(invoice{"i1", 6}, done.ETags["i1"]).Emit("InvoiceChangedEvent", issued{6}).Commit(ctx)
	fmt.Println("replaced:", err == nil)

	// The ETag is no longer the stored one: neither the document nor the event is stored.
	_, err = outbox.Batch("customer-7").Put(invoice{"i1", 7}, done.ETags["i1"]).Emit("InvoiceChangedEvent", issued{7}).Commit(ctx)
	fmt.Println("refused:", fault.Is(err, fault.PreconditionFailed))
	// Output:
	// stored: true
	// replaced: true
	// refused: true
}
