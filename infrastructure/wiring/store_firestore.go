package wiring

import (
	"context"

	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/firestore/doctor"
)

// firestoreStore is Firestore.
type firestoreStore struct{}

func (firestoreStore) name() string { return firestore.StoreName }

func openFirestore(cfg config.Firestore, used func(err error)) (*firestore.DB, error) {
	return firestore.Open(context.Background(), firestore.Options{Project: cfg.Project, Database: cfg.Database, Emulator: cfg.EmulatorHost, Used: used}) //nolint:forbidigo // it reads credentials and connects on first use
}

func (firestoreStore) api(lc fx.Lifecycle, _ Params, cfg *config.API, m *mediator.Mediator, _ *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	db, err := openFirestore(cfg.Firestore, need.Note)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(db.Close))
	return contactsIn(firestore.Records{DB: db}, cfg, m, db.Verify)
}

func (firestoreStore) open(_ Params, cfg *config.Relay, u use) (operator.Store, error) {
	db, err := openFirestore(cfg.Firestore, u.note)
	if err != nil {
		return operator.Store{}, err
	}
	store, err := firestore.NewRelayStore(db, contract(cfg.Event), cfg.Firestore.Ranges)
	return operator.Store{Store: store, Doctor: doctor.Doctor{DB: db}, Close: db.Close}, err
}
