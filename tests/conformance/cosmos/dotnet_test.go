//go:build conformance

package cosmos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	srv := cosmosemu.StartT(t, &cosmosemu.Options{ContainerRetention: true})
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

// TestDotNetProcessor runs the .NET SDK's change feed processor and ours on one lease
// container: one after the other in both orders, and at the same time. The program in
// FEEDBOX_TEST_DOTNET_JUDGE runs the cases interop.*, each with the program of directory
// interop as the other processor:
//
//	INTEROP=PROGRAM READY=FILE JUDGE ENDPOINT interop
//
// prints a line "PASS name" or "FAIL name: why" for each.
func TestDotNetProcessor(t *testing.T) {
	judge := os.Getenv("FEEDBOX_TEST_DOTNET_JUDGE")
	if judge == "" {
		t.Skip("SKIPPED: handing leases over with the .NET processor was NOT checked: FEEDBOX_TEST_DOTNET_JUDGE names no judge")
	}
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 4, ContainerRetention: true})
	ready, err := json.Marshal(map[string]string{"cosmosEndpoint": srv.Endpoint(), "cosmosKey": srv.Key()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "interop"), filepath.Join(dir, "ready.json")
	if err := os.WriteFile(file, ready, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./interop").CombinedOutput(); err != nil {
		t.Fatalf("build the counterpart: %v\n%s", err, text)
	}
	run := exec.CommandContext(t.Context(), judge, srv.Endpoint(), "interop")
	run.Env = append(os.Environ(), "INTEROP="+program, "READY="+file, "DOTNET_BUNDLE_EXTRACT_BASE_DIR="+dir)
	text, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", judge, err)
	}
	passed, lost := 0, map[string]int{}
	for line := range strings.Lines(string(text)) {
		t.Log(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, "PASS interop.") {
			passed++
		}
		if _, what, is := strings.Cut(line, " ms lost "); is {
			lease, _, _ := strings.Cut(what, " ")
			lost[lease]++
		}
	}
	if passed != 3 {
		t.Errorf("%d of the 3 cases passed", passed)
	}
	for lease, n := range lost {
		if n > 2 {
			t.Errorf("the lease of %s was lost %d times: the two fight for it", lease, n)
		}
	}
}
