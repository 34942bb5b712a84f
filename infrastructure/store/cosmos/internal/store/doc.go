// Package store has the limits of Cosmos DB and interprets its replies: it maps a status to a
// fault, reports whether a failed write may have been applied, and merges session tokens.
package store
