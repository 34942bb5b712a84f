// Package store says what the replies of Cosmos DB mean to those who keep documents in it:
// which fault a status is, whether a failed write may have been applied, and what a session
// token stands for.
package store
