package pairs

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/firestore"
	"feedbox/tests/servers"
)

var (
	firestoreServer = shared[string]{start: servers.StartFirestore}
	projects        atomic.Int64
)

// openFirestore creates a project on Google's emulator. The tests do not kill the emulator,
// because it keeps its data in memory. They make fewer changes and polls than with other
// stores, because without indexes each query reads and sorts the whole collection.
func openFirestore(t *testing.T) *store {
	address, project := firestoreServer.get(t), fmt.Sprint("pair-", projects.Add(1))
	db, err := firestore.Open(context.Background(), firestore.Options{Project: project, Emulator: address})
	must(t, err)
	t.Cleanup(db.Close)
	return &store{
		env: []string{
			"FEEDBOX_STORE=firestore", "FEEDBOX_FIRESTORE_PROJECT=" + project, "FIRESTORE_EMULATOR_HOST=" + address,
			"FEEDBOX_RELAY_POLL_MAX=500ms",
		},
		orders: []string{"ORDERS_TEST_FIRESTORE=" + project, "FIRESTORE_EMULATOR_HOST=" + address},
		rate:   15,
		read: func(t *testing.T) (aggregates []verify.Aggregate, events []verify.Event) {
			must(t, db.Walk(t.Context(), func(raw []byte) error {
				d, err := verify.DecodeDocument(raw)
				switch d.Kind {
				case verify.KindAggregate:
					aggregates = append(aggregates, d.Aggregate())
				case verify.KindEvent:
					events = append(events, d.Event())
				case verify.KindParked:
				}
				return err
			}))
			return aggregates, events
		},
		add: func(t *testing.T, key, id, document string) {
			must(t, db.AddEvent(t.Context(), key, id, document, time.Hour))
		},
	}
}
