package cosmosemu_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// In a test, StartT(t) also closes the emulator when the test ends.
func Example() {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	if err := srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	orders, err := srv.Client().NewContainer("shop", "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = orders.CreateItem(ctx, azcosmos.NewPartitionKeyString("ann"), []byte(`{"id":"1","customer":"ann","total":12}`), nil)
	fmt.Println("created:", err == nil)
	read, err := orders.ReadItem(ctx, azcosmos.NewPartitionKeyString("ann"), "1", nil)
	fmt.Println("read:", err == nil, read.ETag != "")
	// Output:
	// created: true
	// read: true true
}

// StartT starts an emulator that is closed when the test ends.
func ExampleStartT() {
	t := &recorder{} // in your test this is the *testing.T
	defer t.end()
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 4})
	if err := srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}}); err != nil {
		t.Fatalf("%v", err)
	}
	ranges, err := srv.PartitionKeyRanges("shop", "orders")
	fmt.Println(len(ranges), "physical partitions,", err)
	// Output: 4 physical partitions, <nil>
}

// With DataDir the data survives a restart. Here the disk is in memory.
func ExampleStart() {
	disk := vfs.NewMem()
	for run := range 2 {
		srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: "data", FS: disk})
		if err != nil {
			fmt.Println(err)
			return
		}
		if run == 0 {
			err = srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: "orders", PartitionKey: []string{"/customer"}})
		} else {
			err = srv.Dump(os.Stdout)
		}
		if err := errors.Join(err, srv.Close()); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// shop/orders: 0 items
	//   range 0 [,FF) of [], LSN 0
}

// withContainer starts an emulator with a container in the database db. The first example shows
// the steps.
func withContainer(props cosmosemu.ContainerProps) (*cosmosemu.Server, *azcosmos.ContainerClient) {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		panic(err)
	}
	if err := srv.CreateContainer("db", props); err != nil {
		panic(err)
	}
	container, err := srv.Client().NewContainer("db", props.ID)
	if err != nil {
		panic(err)
	}
	return srv, container
}

// A batch writes an aggregate and its event together or not at all.
func Example_batch() {
	srv, c := withContainer(cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}})
	defer srv.Close()
	stale := azcore.ETag(`"stale"`)
	b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString("a"))
	b.CreateItem([]byte(`{"id":"event","pk":"a"}`), nil)
	b.ReplaceItem("contact", []byte(`{"id":"contact","pk":"a"}`), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
	r, err := c.ExecuteTransactionalBatch(context.Background(), b, nil)
	fmt.Println(r.Success, err)
	for _, op := range r.OperationResults {
		fmt.Println(op.StatusCode)
	}
	// Output:
	// false <nil>
	// 424
	// 404
}

// Hooks inject faults: here the next write times out although it is executed.
func ExampleServer_Control() {
	srv, c := withContainer(cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}})
	defer srv.Close()
	srv.Control(cosmosemu.OpCreateItem, cosmosemu.Times(1, cosmosemu.Fault{Execute: true, Status: http.StatusRequestTimeout}))
	create := func() int {
		_, err := c.CreateItem(context.Background(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"1","pk":"a"}`), nil)
		var failed *azcore.ResponseError
		if errors.As(err, &failed) {
			return failed.StatusCode
		}
		return http.StatusCreated
	}
	fmt.Println(create())
	fmt.Println(create())
	// Output:
	// 408
	// 409
}

// The clock can be moved, so tests need not wait for the time to live.
func ExampleServer_Advance() {
	srv, c := withContainer(cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}, DefaultTTL: 3600})
	defer srv.Close()
	pk := azcosmos.NewPartitionKeyString("a")
	if _, err := c.CreateItem(context.Background(), pk, []byte(`{"id":"1","pk":"a"}`), nil); err != nil {
		fmt.Println(err)
		return
	}
	srv.Advance(2 * time.Hour)
	_, err := c.ReadItem(context.Background(), pk, "1", nil)
	fmt.Println(err != nil)
	// Output: true
}

// Physical partitions split on demand.
func ExampleServer_Split() {
	srv, _ := withContainer(cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}})
	defer srv.Close()
	if err := srv.Split("db", "data", "0"); err != nil {
		fmt.Println(err)
		return
	}
	ranges, err := srv.PartitionKeyRanges("db", "data")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range ranges {
		fmt.Printf("%s [%s,%s) from %v\n", r.ID, r.MinInclusive, r.MaxExclusive, r.Parents)
	}
	// Output:
	// 1 [,20000000000000000000000000000000) from [0]
	// 2 [20000000000000000000000000000000,FF) from [0]
}
