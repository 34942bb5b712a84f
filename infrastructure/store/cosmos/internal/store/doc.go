// Package store interprets the replies of Cosmos DB: it maps a status to a fault, reports whether
// a failed write may have been applied, and merges session tokens.
package store
