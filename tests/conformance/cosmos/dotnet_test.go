//go:build conformance

package cosmos

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// TestDotNet runs Microsoft.Azure.Cosmos with the program in FEEDBOX_TEST_DOTNET_JUDGE:
// JUDGE ENDPOINT prints a line "PASS name" or "FAIL name: why" for each case.
func TestDotNet(t *testing.T) {
	judge := os.Getenv("FEEDBOX_TEST_DOTNET_JUDGE")
	if judge == "" {
		t.Skip("SKIPPED: the .NET SDK was NOT checked: FEEDBOX_TEST_DOTNET_JUDGE names no judge")
	}
	srv := cosmosemu.StartT(t)
	run := exec.CommandContext(t.Context(), judge, srv.Endpoint())
	run.Env = append(os.Environ(), "DOTNET_BUNDLE_EXTRACT_BASE_DIR="+t.TempDir())
	text, _ := run.CombinedOutput() // its error only repeats failed cases
	passed := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		verdict, _, _ := strings.Cut(line, " ")
		switch verdict {
		case "PASS":
			passed++
		case "FAIL":
			t.Error(line)
		}
	}
	t.Logf("%d cases passed", passed)
	if passed < 70 {
		t.Errorf("only %d cases ran:\n%s", passed, text)
	}
}
