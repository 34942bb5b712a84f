//go:build conformance

package cosmos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// TestJavaScript runs js/main.mjs, which drives the emulator with @azure/cosmos of
// the version in js/package.json, over one and over several physical partitions.
func TestJavaScript(t *testing.T) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the JavaScript SDK was NOT checked: %s is not installed", tool)
		}
	}
	dir := filepath.Join(t.TempDir(), "js")
	if err := os.CopyFS(dir, os.DirFS("js")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = dir
	if text, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the JavaScript SDK was NOT checked: npm ci failed: %v\n%s", err, text)
	}
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: partitions})
			run := exec.CommandContext(t.Context(), "node", "main.mjs")
			run.Dir = dir
			run.Env = append(os.Environ(), "COSMOS_ENDPOINT="+srv.Endpoint(), "COSMOS_KEY="+srv.Key(), "CONTROL="+srv.ControlEndpoint())
			text, err := run.CombinedOutput()
			for line := range strings.Lines(string(text)) {
				t.Log(strings.TrimRight(line, "\n"))
			}
			if err != nil || !regexp.MustCompile(`(?m)^(\d+) of (\d+) passed$`).Match(text) {
				t.Errorf("node: %v", err)
			}
		})
	}
}
