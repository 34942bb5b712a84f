// Package cosmos tests the wire behaviour of Cosmos DB that Feedbox depends on, against any
// endpoint, and runs third-party clients against the Cosmos DB emulator.
//
// TestWire runs the scripts of package cosmoswire, one per behaviour, through azcosmos. By
// default it starts the project's emulator; the environment names another endpoint:
//
//	FEEDBOX_TEST_COSMOS_ENDPOINT  for example https://account.documents.azure.com
//	FEEDBOX_TEST_COSMOS_KEY       its key; empty = the emulators' well-known one
//	FEEDBOX_TEST_COSMOS_KIND      azure, vnext (Microsoft's Linux emulator) or ours; default azure
//	FEEDBOX_TEST_COSMOS_SPLIT     yes: some scripts raise a container to 13,000 RU/s, to split its
//	                              range; for kinds azure and vnext
//	FEEDBOX_TEST_KNOWN_ISSUES     file of known differences: a script that fails because of one
//	                              is skipped with its line; for kind vnext only
//
// On our emulator each script runs on a container of one range and on one of four. The scripts
// create their own database with 1,000 RU/s and delete it. UNVERIFIED.md of package wire
// names the script for each behaviour that was not seen on Azure yet.
//
// These run against the emulator only: the unmodified emulator suite of azcosmos, programs
// with the SDKs of JavaScript and Java, the table of queries through the SDKs of Go,
// JavaScript, Python and Java, and the tests of azure-cosmos (Python) that are marked for
// the emulator (a third of their files, or all if FEEDBOX_CONFORMANCE is full).
// TestWriters runs the programs of cmd/feedbox/OWN-SERVICE.md and relays their events.
// They have a build tag, because their first run needs the network (test dependencies, npm,
// pip and Maven packages) and they use the fixed ports 8081 and 8903:
//
//	go test -tags conformance -count=1 -v ./tests/conformance/cosmos
//
// TestRustSuites runs the suites of the Rust SDK, which take minutes to build, so it has a tag of
// its own: -tags conformance,rust. What it builds is kept in CARGO_TARGET_DIR, or in the user's
// cache folder.
package cosmos
