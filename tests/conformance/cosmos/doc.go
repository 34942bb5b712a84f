// Package cosmos holds the Cosmos DB emulator against clients of others: the
// emulator suite of azcosmos, unmodified, and the JavaScript SDK.
//
// Both take the network for their first run (test dependencies, npm packages) and
// the fixed ports 8081 and 8903, so they are behind a build tag:
//
//	go test -tags conformance -count=1 -v ./tests/conformance/cosmos
package cosmos
