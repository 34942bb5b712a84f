package main

import (
	"context"
	"errors"
	"net/url"
)

// store keeps contacts and events. What differs between the kinds of store stands in one file
// for each.
type store interface {
	// variables point a process at the store of e: names and values in turn.
	variables(e *endpoints) []string
	// rows are its lines of the banner: names and values in turn.
	rows(e *endpoints) []string
	// documents gives visit the contacts, events and parked events, as a document store has
	// them, until a visit fails.
	documents(ctx context.Context, e *endpoints, visit func(raw []byte) error) error
	// spoil stores an event that cannot be sent, and behind it others of its key that could.
	spoil(ctx context.Context, e *endpoints, behind int) (key, id string, err error)
}

// stores make the store that --store names, by the scheme of its URL, which they complete by what
// environ adds; nil for a URL that misses something.
var stores = map[string]func(u *url.URL, environ []string) store{
	"":           emulatedStore,
	"postgres":   postgresStore,
	"postgresql": postgresStore,
	"firestore":  firestoreStore,
}

// parseStore reads --store, of which empty is the Cosmos DB emulator, and completes it.
func parseStore(text string, environ []string) (s store, complete string, err error) {
	u, err := url.Parse(text)
	if err == nil {
		if of := stores[u.Scheme]; of != nil {
			s = of(u, environ)
		}
	}
	if s == nil {
		return nil, "", errors.New("--store: give the URL of a database, postgres://user:password@host:port/database, or firestore://project/database with FIRESTORE_EMULATOR_HOST for Google's emulator")
	}
	return s, u.String(), nil
}

// foreign is what only the emulator can do, of the stores of others.
type foreign struct{}

func (foreign) spoil(context.Context, *endpoints, int) (key, id string, err error) {
	return "", "", usageError{errors.New("an event can be spoilt in the Cosmos DB emulator only: start feedbox-dev without --store")}
}
