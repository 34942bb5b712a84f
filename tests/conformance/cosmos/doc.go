// Package cosmos tests the wire behaviour of Cosmos DB that Feedbox takes for granted,
// on any endpoint, and runs clients of others against the Cosmos DB emulator.
//
// TestWire runs one script per behaviour (scripts_*_test.go) through azcosmos. By
// default it starts the project's emulator; the environment names another endpoint:
//
//	FEEDBOX_TEST_COSMOS_ENDPOINT  for example https://account.documents.azure.com
//	FEEDBOX_TEST_COSMOS_KEY       its key; empty = the emulators' well-known one
//	FEEDBOX_TEST_COSMOS_KIND      azure, vnext (Microsoft's Linux emulator) or ours; default azure
//	FEEDBOX_TEST_KNOWN_ISSUES     file of known differences: a script that fails over one of them
//	                              is skipped with its line; counts for kind vnext only
//
// The scripts make a database of their own with 1,000 RU/s, and delete it. ../UNVERIFIED.md
// names the script that would verify each behaviour not seen on Azure yet.
//
// The emulator suite of azcosmos, unmodified, programs with the SDKs of JavaScript and
// Java, and the table of queries through the SDKs of Go, JavaScript, Python and Java run
// against the emulator only.
// So do the tests of azure-cosmos (Python) that are marked for the emulator: a third of
// their files, or all if FEEDBOX_CONFORMANCE is full.
// TestWriters runs the programs of cmd/feedbox/OWN-SERVICE.md and relays their events.
// They need the network for their first run (test dependencies, npm, pip and Maven packages)
// and the fixed ports 8081 and 8903, so they are behind a build tag:
//
//	go test -tags conformance -count=1 -v ./tests/conformance/cosmos
package cosmos
