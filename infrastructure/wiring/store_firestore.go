package wiring

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/infrastructure/operator"
	firestoreoperator "feedbox/infrastructure/operator/firestore"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
)

// firestoreStore is Firestore.
type firestoreStore struct{}

func (firestoreStore) name() string { return "firestore" }

func openFirestore(cfg config.Firestore, used func(err error)) (*firestore.DB, error) {
	return firestore.Open(context.Background(), firestore.Options{Project: cfg.Project, Database: cfg.Database, Emulator: cfg.EmulatorHost, Used: used}) //nolint:forbidigo // it looks for credentials, and connects when it is used
}

func (firestoreStore) api(lc fx.Lifecycle, _ Params, cfg *config.API, m *mediator.Mediator, _ *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	db, err := openFirestore(cfg.Firestore, need.Note)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(db.Close))
	return contactsIn(firestore.Rows{DB: db}, cfg, m, db.Verify)
}

func (s firestoreStore) relay(lc fx.Lifecycle, _ Params, cfg *config.Relay, need *monitor.Dependency) (relayservice.Store, error) {
	db, err := openFirestore(cfg.Firestore, need.Note)
	if err != nil {
		return relayservice.Store{}, err
	}
	feed, err1 := firestore.NewFeed(db, cfg.Firestore.Ranges)
	decoder, err2 := document.NewEventDecoder(contract(cfg.Event))
	if err := errors.Join(err1, err2); err != nil {
		return relayservice.Store{}, err
	}
	lc.Append(fx.StopHook(db.Close))
	return relayservice.Store{
		Name: s.name(), Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: firestore.Rows{DB: db}, Decoder: decoder},
		Leases: firestore.Leases{DB: db}, Parked: parked.Lot{Store: firestore.Parked{DB: db}}, Verify: db.Verify,
	}, nil
}

func (firestoreStore) operator(_ Params, cfg *config.Relay) (operator.Store, error) {
	db, err := openFirestore(cfg.Firestore, nil)
	if err != nil {
		return operator.Store{}, err
	}
	feed, err1 := firestore.NewFeed(db, cfg.Firestore.Ranges)
	decoder, err2 := document.NewEventDecoder(contract(cfg.Event))
	return operator.Store{
		Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: firestore.Rows{DB: db}, Decoder: decoder}, Leases: firestore.Leases{DB: db}, Parked: parked.Lot{Store: firestore.Parked{DB: db}},
		Doctor: firestoreoperator.Doctor{DB: db}, Close: db.Close,
	}, errors.Join(err1, err2)
}
