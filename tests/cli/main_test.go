package cli

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Each script has emulators of its own, with an empty data container. It may use:
//
//	seed KEY N         append N events of KEY to the data container
//	spoil KEY N        append event N of KEY without an action
//	mend KEY N         put event N of KEY in its place as it should have been
//	remove KEY N       take event N of KEY away
//	park KEY N         park N events of KEY, the first refused
//	park-waiting KEY N park N events of KEY, the first of which waited too long
//	expiring VAR KEY   make a container with a default TTL, partitioned by /KEY; VAR names it
//	await-sent N       wait until the topic has been given N messages in all
//	await-parked KEY   wait until KEY is parked
//	await-idle         wait until checkpoints are behind all changes
//	await-done         wait until the owners have done what was wanted of leases
//	weak-account       from here on FEEDBOX_COSMOS_ENDPOINT is an account of Eventual consistency
//	await-asked        wait until a process asks the account for something
//	await-file PATH    wait until a file is there
//	await-stdout PATTERN ...  run a command until its output matches; that is kept
//	narrow [N]         the last output has no line beyond 80 characters, or its first N lines
//	exits CODE ...     run a command that ends with this exit code
//	exec feedbox ...   the binary; FEEDBOX_ variables are those of the emulators,
//	                   $TAKEN is an address in use, nothing answers at $CLOSED
func TestScripts(t *testing.T) {
	bin := testkit.Build(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setup(env, bin.Feedbox) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"seed": seed, "spoil": spoil, "mend": mend, "remove": remove, "park": park, "park-waiting": parkWaiting, "expiring": expiring, "await-sent": awaitSent, "await-parked": awaitParked, "await-idle": awaitIdle, "await-done": awaitDone, "await-asked": awaitAsked, "exits": exits, "await-stdout": awaitStdout, "narrow": narrow, "await-file": awaitFile, "weak-account": weakAccount,
		},
	})
}
