package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/firestore"
)

// firestoreDatabase is a Firestore database.
type firestoreDatabase struct {
	foreign

	at firestore.Options
}

// firestoreStore parses firestore://project/database. Google's emulator is in the query,
// ?emulator=host:port. FIRESTORE_EMULATOR_HOST overrides it, because Google's clients use
// that variable.
func firestoreStore(u *url.URL, environ []string) store {
	if u.Host == "" {
		return nil
	}
	query := u.Query()
	if host, _ := config.Lookup(environ, "FIRESTORE_EMULATOR_HOST"); host != "" {
		query.Set("emulator", host)
		u.RawQuery = query.Encode()
	}
	return &firestoreDatabase{at: firestore.Options{Project: u.Host, Database: strings.Trim(u.Path, "/"), Emulator: query.Get("emulator")}}
}

func (f *firestoreDatabase) variables(*endpoints) []string {
	return []string{
		"FEEDBOX_STORE", config.StoreFirestore, "FEEDBOX_FIRESTORE_PROJECT", f.at.Project,
		"FEEDBOX_FIRESTORE_DATABASE", f.at.Database, "FEEDBOX_FIRESTORE_EMULATOR_HOST", f.at.Emulator,
	}
}

func (f *firestoreDatabase) rows(*endpoints) []string {
	where := strings.TrimSuffix(f.at.Project+"/"+f.at.Database, "/")
	if f.at.Emulator != "" {
		where += " (emulator at " + f.at.Emulator + ")"
	}
	return []string{"Firestore", where}
}

func (f *firestoreDatabase) documents(ctx context.Context, _ *endpoints, visit func(raw []byte) error) error {
	db, err := firestore.Open(ctx, f.at)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Walk(ctx, visit); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}
