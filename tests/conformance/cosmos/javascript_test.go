//go:build conformance

package cosmos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// TestReadme runs the programs from the emulator's README unchanged.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../../infrastructure/emulator/cosmosemu/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for script, sdk := range map[string]*sdk{"readme.py": python, "readme.mjs": javascript} {
		language := map[string]string{".py": "python", ".mjs": "javascript"}[filepath.Ext(script)]
		t.Run(language, func(t *testing.T) {
			code := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
			if code == nil {
				t.Fatal("the page has no such program")
			}
			dir := sdk.folder(t, "the program of the README was")
			if err := os.WriteFile(filepath.Join(dir, script), code[1], 0o600); err != nil {
				t.Fatal(err)
			}
			srv := cosmosemu.StartT(t)
			text, err := sdk.run(t, dir, []string{"CONNECTION=AccountEndpoint=" + srv.Endpoint() + ";AccountKey=" + srv.Key() + ";"}, script)
			items, itemsErr := srv.Items("shop", "orders")
			if err != nil || itemsErr != nil || len(items) != 1 || !strings.Contains(string(text), `"`) {
				t.Errorf("%v, %v: %d items, printed %s", err, itemsErr, len(items), text)
			}
		})
	}
}
