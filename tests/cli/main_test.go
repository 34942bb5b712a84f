// Package cli runs the operator commands of the real binary in scripts against emulators in the test
// process.
package cli

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // most scripts wait for the polls of a relay; the command line overrides it
	testkit.Main(m)
}

// Each script has its own emulators with an empty data container. Its commands are:
//
//	seed KEY N         append N events of KEY to the data container
//	poison KEY N       append event N of KEY without an action
//	edit KEY N         replace event N of KEY by a valid one
//	correction KEY N   write a valid document of event N of KEY to KEY.json, and its version to VERSION
//	correction KEY N CONSUMER  the same for an event that a consumer has parked
//	remove KEY N       delete event N of KEY
//	park KEY N         park N events of KEY, the first refused
//	park-waiting KEY N park N events of KEY, the first of which waited too long
//	expiring VAR KEY   create a container with a default TTL, partitioned by /KEY, and set VAR to its name
//	await-sent N       wait until the topic has accepted N messages in total; with distinct, without
//	                   those that it dropped
//	await-parked KEY   wait until KEY is parked
//	await-idle         wait until the checkpoints have passed all changes
//	await-done         wait until the owners have done all requests on leases
//	weak-account       set FEEDBOX_COSMOS_ENDPOINT to an account with Eventual consistency
//	await-request      wait until a process sends a request to the account
//	await-file PATH    wait until a file exists
//	await-stdout PATTERN ...  run a command until its output matches, and keep the output
//	narrow [N]         check that the last output, or its first N lines, has no line beyond 80 characters
//	exits CODE ...     run a command and check its exit code
//	exec feedbox ...   run the binary with the FEEDBOX_ variables of the emulators;
//	                   $TAKEN is an address in use, nothing listens at $CLOSED
func TestScripts(t *testing.T) {
	bin := testkit.Build(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setup(env, bin.Feedbox) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"seed": seed, "poison": poison, "edit": edit, "correction": correction, "remove": remove, "park": park, "park-waiting": parkWaiting, "park-consumer": parkConsumer, "expiring": expiring, "await-sent": awaitSent, "await-parked": awaitParked, "dead-letter": deadLetter, "take": take, "await-idle": awaitIdle, "await-done": awaitDone, "await-request": awaitRequest, "exits": exits, "await-stdout": awaitStdout, "narrow": narrow, "await-file": awaitFile, "weak-account": weakAccount,
		},
	})
}
