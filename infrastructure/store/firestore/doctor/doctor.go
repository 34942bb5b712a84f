// Package doctor examines a database of Firestore for an operator.
package doctor

import (
	"context"
	"errors"
	"time"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/store/firestore"
)

// Doctor examines a database. It only reads, and is safe for concurrent use.
type Doctor struct{ DB *firestore.DB }

const indexes = "firebase deploy --only firestore:indexes with infrastructure/store/firestore/firestore.indexes.json"

// Examine implements operator.StoreDoctor.
func (d Doctor) Examine(_ operator.Process, step func(operator.Examination) bool) operator.Unusable {
	if !step(d.examineDatabase) {
		step(operator.Unexamined("database", "clock", "lifetimes"))
		return operator.AllUnusable("database")
	}
	step(d.examineLifetimes)
	return nil
}

// Describe implements operator.StoreDoctor.
func (Doctor) Describe(err error) string { return operator.OneLine(err) }

// Advise implements operator.StoreDoctor.
func (Doctor) Advise(context.Context, error, operator.Part) string {
	return "check that the identity has the role roles/datastore.user in the project of FEEDBOX_FIRESTORE_PROJECT, and that the indexes are deployed: " + indexes
}

// examineDatabase makes the same checks as the start of a process.
func (d Doctor) examineDatabase(ctx context.Context) []operator.Finding {
	const check = "database"
	switch err := d.DB.Verify(ctx); {
	case errors.Is(err, firestore.ErrIndex):
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingFailed, indexes+", and wait until they are built")}
	case err != nil:
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingFailed, "check FEEDBOX_FIRESTORE_PROJECT and FEEDBOX_FIRESTORE_DATABASE, the network, and the application default credentials: gcloud auth application-default login")}
	}
	return []operator.Finding{operator.Fine(check, "Firestore answers, and has the indexes")}
}

// overdue is one day more than Firestore usually takes to delete an expired document.
const overdue = 48 * time.Hour

// examineLifetimes checks that expired events are deleted, and the clock.
func (d Doctor) examineLifetimes(ctx context.Context) []operator.Finding {
	began := time.Now()
	expires, now, err := d.DB.Oldest(ctx)
	if err != nil {
		return []operator.Finding{operator.Fine("lifetimes", "%v", err).Is(operator.FindingUnknown, "")}
	}
	ahead := began.Add(time.Since(began) / 2).Sub(now)
	clock := operator.Clock(ahead, "service", "keep the clocks with NTP: lifetimes and ages that are shown are off by this much")
	lifetimes := operator.Fine("lifetimes", "no event is long overdue")
	if !expires.IsZero() && now.Sub(expires) > overdue {
		lifetimes = operator.Fine("lifetimes", "an event expired %s ago and is not removed", now.Sub(expires).Round(time.Hour)).Is(operator.FindingWarning,
			"set the TTL policies: "+indexes+", or gcloud firestore fields ttls update expireAt --collection-group=feedboxEvents --enable-ttl, and the same for feedboxAggregates, feedboxRequests, feedboxAudits")
	}
	return []operator.Finding{clock, lifetimes}
}
