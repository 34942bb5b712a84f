//go:build conformance

package cosmos

import (
	"fmt"
	"regexp"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// allPassed is the last line of a script whose checks all passed.
var allPassed = regexp.MustCompile(`(?m)^(\d+) of (\d+) passed$`)

// TestJavaScript runs js/main.mjs, which drives the emulator with @azure/cosmos of
// the version in sdks/package.json, over one and over several physical partitions.
func TestJavaScript(t *testing.T) {
	dir := javascript.folder(t, "the JavaScript SDK was")
	copyInto(t, dir, "js")
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: partitions, ContainerRetention: true})
			text, err := javascript.run(t, dir, []string{"COSMOS_ENDPOINT=" + srv.Endpoint(), "COSMOS_KEY=" + srv.Key(), "CONTROL=" + srv.ControlEndpoint()}, "main.mjs")
			if err != nil || !allPassed.Match(text) {
				t.Errorf("node: %v", err)
			}
		})
	}
}
