package cosmoswire

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const learnBatch = "Learn, Transactional batch operations in Azure Cosmos DB; azcosmos emulator_cosmos_batch_test.go"

// execute runs a batch with the key a and returns the statuses of its operations.
func (p *probe) execute(build func(b *azcosmos.TransactionalBatch)) ([]int, azcosmos.TransactionalBatchResponse) {
	b := p.items.NewTransactionalBatch(key("a"))
	build(&b)
	reply, err := p.items.ExecuteTransactionalBatch(p.ctx, b, nil)
	p.must("batch", err)
	statuses := make([]int, len(reply.OperationResults))
	for i, r := range reply.OperationResults {
		statuses[i] = int(r.StatusCode)
	}
	return statuses, reply
}

var batchScripts = []Script{
	{Name: "batch-is-atomic", Topic: "batch-atomic", Source: learnBatch, run: func(p *probe) {
		p.create("a", "taken")
		got, reply := p.execute(func(b *azcosmos.TransactionalBatch) {
			b.CreateItem(item("a", "before"), nil)
			b.CreateItem(item("a", "taken"), nil)
			b.CreateItem(item("a", "behind"), nil)
		})
		p.expect(!reply.Success, "a batch with a conflict succeeded")
		p.expect(slices.Equal(got, []int{424, 409, 424}), "statuses %v, want 424 409 424", got)
		for _, id := range []string{"before", "behind"} {
			p.expect(p.read("a", id) == http.StatusNotFound, "item %q of a refused batch is stored", id)
		}
	}},
	{Name: "batch-if-match", Topic: "batch-if-match", Source: "azcosmos cosmos_transactional_batch.go (ifMatch); .NET SDK, TransactionalBatchItemRequestOptions", run: func(p *probe) {
		old := p.create("a", "1", `"n":1`)
		reply, err := p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"n":2`), nil)
		p.must("replace", err)
		replace := func(etag azcore.ETag) []int {
			got, _ := p.execute(func(b *azcosmos.TransactionalBatch) {
				b.CreateItem(item("a", "event"), nil)
				b.ReplaceItem("1", item("a", "1", `"n":3`), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
			})
			return got
		}
		got := replace(old)
		p.expect(slices.Equal(got, []int{424, 412}), "with an old ETag: %v, want 424 412", got)
		p.expect(p.read("a", "event") == http.StatusNotFound, "the event of a refused change is stored")
		got = replace(reply.ETag)
		p.expect(slices.Equal(got, []int{201, 200}), "with the current ETag: %v, want 201 200", got)
	}},
	{Name: "batch-answers-with-etags", Topic: "batch-error", Source: "azcosmos cosmos_transactional_batch_response.go (eTag, resourceBody)", run: func(p *probe) {
		got, reply := p.execute(func(b *azcosmos.TransactionalBatch) {
			b.CreateItem(item("a", "1"), nil)
			b.CreateItem(item("a", "2"), nil)
		})
		p.expect(reply.Success && slices.Equal(got, []int{201, 201}), "statuses %v, want 201 201", got)
		p.expect(reply.SessionToken != "", "the answer has no session token")
		for i, r := range reply.OperationResults {
			one, err := p.items.ReadItem(p.ctx, key("a"), fmt.Sprint(i+1), nil)
			p.must("read", err)
			p.expect(r.ETag != "" && r.ETag == one.ETag, "operation %d answers with the ETag %q, the item has %q", i, r.ETag, one.ETag)
		}
	}},
	{Name: "batch-reads", Topic: "batch-error", Source: learnBatch + " (ReadItem)", run: func(p *probe) {
		etag := p.create("a", "1", `"n":7`)
		got, reply := p.execute(func(b *azcosmos.TransactionalBatch) { b.ReadItem("1", nil) })
		p.expect(slices.Equal(got, []int{200}), "a batch that reads: %v, want 200", got)
		if len(got) == 1 {
			r := reply.OperationResults[0]
			p.expect(r.ETag == etag && p.documents([][]byte{r.ResourceBody})[0].N == 7, "it answers with ETag %q and %s", r.ETag, r.ResourceBody)
		}
		got, _ = p.execute(func(b *azcosmos.TransactionalBatch) { b.ReadItem("absent", nil) })
		p.expect(slices.Equal(got, []int{404}), "a batch that reads what is not there: %v, want 404", got)
	}},
	{Name: "batch-asks-for-absence", Topic: "batch-error", Source: learnBatch + "; parked.Store asks so whether a gate is open", run: func(p *probe) {
		p.create("a", "gate")
		ask := func(id string) []int {
			got, _ := p.execute(func(b *azcosmos.TransactionalBatch) {
				b.ReadItem(id, nil)
				b.DeleteItem("never", nil)
			})
			return got
		}
		got := ask("gate")
		p.expect(slices.Equal(got, []int{424, 404}), "of what is there: %v, want 424 404", got)
		got = ask("absent")
		p.expect(slices.Equal(got, []int{404, 424}), "of what is not there: %v, want 404 424", got)
	}},
	{Name: "batch-repeated-is-refused", Topic: "batch-atomic", Source: learnBatch + "; the recognition of lost answers rests on it", run: func(p *probe) {
		etag := p.create("a", "contact", `"n":1`)
		change := func(b *azcosmos.TransactionalBatch) {
			b.CreateItem(item("a", "event"), nil)
			b.ReplaceItem("contact", item("a", "contact", `"n":2`), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
		}
		got, _ := p.execute(change)
		p.expect(slices.Equal(got, []int{201, 200}), "the first time: %v, want 201 200", got)
		got, _ = p.execute(change)
		p.expect(slices.Equal(got, []int{409, 424}), "the second time: %v, want 409 424: the event is met first", got)
	}},
	{Name: "batch-limits", Topic: "batch-limits", Source: learnBatch + " (100 operations, 2 MB); .NET SDK, EmulatorTests/BatchSinglePartitionKeyTests.cs", run: func(p *probe) {
		try := func(n, size, want int) {
			b := p.items.NewTransactionalBatch(key("a"))
			for i := range n {
				b.CreateItem(item("a", fmt.Sprintf("%d-%d-%d", n, size, i), `"text":"`+strings.Repeat("x", size)+`"`), nil)
			}
			_, err := p.items.ExecuteTransactionalBatch(p.ctx, b, nil)
			got := status(err, http.StatusOK)
			p.expect(got == want, "a batch of %d operations of %d bytes is answered with %d (%v), want %d", n, size, got, err, want)
		}
		try(100, 1, http.StatusOK)
		try(101, 1, http.StatusBadRequest)
		try(3, 1_000_000, http.StatusRequestEntityTooLarge)
	}},
	{Name: "batch-is-one-position", Topic: "change-feed-transaction", Source: "Learn, Change feed in Azure Cosmos DB; Cosmos DB emulator issue 324 (what the service does instead)", run: func(p *probe) {
		const n = 8
		for b := range 3 {
			p.execute(func(batch *azcosmos.TransactionalBatch) {
				for i := range n {
					batch.CreateItem(item("a", fmt.Sprintf("%d-%d", b, i)), nil)
				}
			})
		}
		f := p.feed()
		r := f.of("a")
		for pages, position := 0, ""; pages < 3; pages++ {
			page := f.page(r, position, 3) // fewer than a transaction has
			lsns := map[int64]int{}
			for i := range page.Items {
				lsns[page.Items[i].LSN]++
			}
			for lsn, count := range lsns {
				p.expect(count == n, "a page shows %d of the %d changes of the transaction at LSN %d", count, n, lsn)
			}
			if position = page.Continuation; page.CaughtUp {
				break
			}
		}
	}},
}
