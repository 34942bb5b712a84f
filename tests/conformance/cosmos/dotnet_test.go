//go:build conformance

package cosmos

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// dotnetExceptions are the cases of the .NET judge that fail, each with its reason.
// One that passes has to leave the table.
var dotnetExceptions = map[string]string{
	"users": "users and permissions are not supported",
}

// TestDotNet runs Microsoft.Azure.Cosmos, by the judge that FEEDBOX_TEST_DOTNET_JUDGE
// names: JUDGE ENDPOINT prints a line "PASS name" or "FAIL name: why" for each case.
func TestDotNet(t *testing.T) {
	judge := os.Getenv("FEEDBOX_TEST_DOTNET_JUDGE")
	if judge == "" {
		t.Skip("SKIPPED: the .NET SDK was NOT checked: FEEDBOX_TEST_DOTNET_JUDGE names no judge")
	}
	srv := cosmosemu.StartT(t)
	run := exec.CommandContext(t.Context(), judge, srv.Endpoint())
	run.Env = append(os.Environ(), "DOTNET_BUNDLE_EXTRACT_BASE_DIR="+t.TempDir())
	text, _ := run.CombinedOutput() // it fails with its cases
	passed := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		verdict, rest, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(rest, " ")
		reason, known := dotnetExceptions[name]
		switch {
		case verdict == "PASS" && known:
			t.Errorf("%s passes: take it out of the table of exceptions", name)
		case verdict == "PASS":
			passed++
		case verdict == "FAIL" && known:
			t.Logf("known: %s: %s", name, reason)
		case verdict == "FAIL":
			t.Error(line)
		}
	}
	t.Logf("%d cases passed, %d are known to fail", passed, len(dotnetExceptions))
	if passed < 60 {
		t.Errorf("only %d cases ran:\n%s", passed, text)
	}
}
