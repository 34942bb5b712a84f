//go:build faults

package crash

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// F17: a relay repeatedly kills itself with -9 after it has parked a refused event and before the
// checkpoint passes that page, while another one runs. The events sent before the refused one are not
// parked. Exactly the refused ones and the later events of their keys are.
func TestRelayKilledOnceItHasParked(t *testing.T) {
	const full = 50
	kills := testkit.Count(t, full)
	seed := testkit.Seed(t, 17)
	w := start(t, plan{seed: seed, tags: []string{"failpoint"}, relays: 1, contacts: 40, rate: 40})
	w.refused = map[string]bool{}
	data := w.e.ContainerClient(t, w.e.Container)
	written := 0
	for range kills {
		victim := w.addRelay(fmt.Sprintf("FAILPOINT=parked:%d", 1+w.rnd.IntN(3)))
		for deadline := time.Now().Add(time.Minute); !victim.Ended(); {
			if time.Now().After(deadline) {
				t.Fatal("the relay parked nothing in a minute")
			}
			w.writeRefused(data, fmt.Sprintf("refused-%d", written))
			written++
			time.Sleep(500 * time.Millisecond)
		}
		w.forget(victim)
	}
	testkit.Eventually(t, time.Minute, "the parked events", func() bool { return len(w.parked()) >= len(w.refused) })
	r := testkit.Result{
		Fault: "F17", Name: "kill -9 of a relay between the parking of an event and the checkpoint behind it", Seed: seed, Injections: int64(kills), Of: full,
		Note: "exactly the refused ones and their followers parked",
	}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}

// writeRefused stores a contact with six events in one transaction. The fifth is too large for a
// message.
func (w *world) writeRefused(data *azcosmos.ContainerClient, key string) {
	w.t.Helper()
	const events, refused, size = 6, 5, 300 << 10
	batch := data.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	batch.CreateItem(fmt.Appendf(nil, `{"id":%q,"partitionKey":%[1]q,"type":"contact","data":{"version":%d,"sequence":%[2]d},"ttl":-1}`, key, events), nil)
	for n := 1; n <= events; n++ {
		id, text := fmt.Sprintf("%s.%d", key, n), ""
		if n == refused {
			text = strings.Repeat("x", size)
		}
		if n >= refused {
			w.refused[id] = true
		}
		batch.CreateItem(fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":"ContactNameUpdatedEvent","sequence":%d,"aggregateVersion":%[3]d,"firstName":%q},"ttl":-1}`, id, key, n, text), nil)
	}
	r, err := data.ExecuteTransactionalBatch(w.t.Context(), batch, nil)
	if err != nil || !r.Success {
		w.t.Fatalf("store the events of %s: %v %+v", key, err, r.OperationResults)
	}
	if w.history.Acked == nil {
		w.history.Acked, w.history.Unknown = map[string]int{}, map[string]int{}
	}
	w.history.Acked[key] = events
}

// parked reads the ids of the parked events.
func (w *world) parked() map[string]bool {
	w.t.Helper()
	ids := map[string]bool{}
	pager := w.e.ContainerClient(w.t, w.e.Parked).NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatalf("read the parked events: %v", err)
		}
		for _, raw := range page.Items {
			if d, _ := verify.DecodeDocument(raw); d.Kind == verify.KindParked {
				ids[d.ID] = true
			}
		}
	}
	return ids
}
