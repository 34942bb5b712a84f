package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// The conformance tests of the Go Cloud Development Kit's driver for Service Bus. They send,
// receive, acknowledge and reject through topics that they create and delete.
const (
	goCloudVersion = "v0.47.0"
	goCloudTests   = 35 // with their subtests, all of which must pass
)

// goCloudModule builds the driver with the patched copy of the SDK.
const goCloudModule = `module suite

go 1.26

require gocloud.dev ` + goCloudVersion + `

replace ` + sdkModule + ` => ../sdk
`

var ended = regexp.MustCompile(`--- (PASS|FAIL|SKIP): (\S+)`)

// runGoCloud runs the driver's own tests.
func runGoCloud(ctx context.Context, w io.Writer, o *options) (int, error) {
	dir, err := os.MkdirTemp("", "gocloud-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copySDK(ctx, filepath.Join(dir, "sdk")); err != nil {
		return 1, fmt.Errorf("copy the SDK: %w", err)
	}
	if err := patch(filepath.Join(dir, "sdk")); err != nil {
		return 1, fmt.Errorf("patch the copy: %w", err)
	}
	module := filepath.Join(dir, "suite")
	if err := os.Mkdir(module, 0o755); err != nil {
		return 1, err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(goCloudModule), 0o644); err != nil {
		return 1, err
	}
	ns, err := startNamespaces(dir)
	if err != nil {
		return 1, err
	}
	defer ns.close()
	results, err := (&suite{dir: module, out: w}).goTest(ctx, ns.env(), "gocloud.dev/pubsub/azuresb", "-record")
	if err != nil {
		return 1, err
	}
	counts, code := map[string]int{}, 0
	for t, r := range results {
		for _, line := range ended.FindAllStringSubmatch(r.output.String(), -1) {
			counts[line[1]]++
			if line[1] == "FAIL" {
				fmt.Fprintln(w, "FAIL", line[2])
			}
		}
		if r.action == "fail" && o.verbose {
			fmt.Fprintln(w, t.name, r.output.String())
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", counts["PASS"], counts["FAIL"], counts["SKIP"])
	if counts["FAIL"] > 0 || counts["PASS"] < goCloudTests {
		code = 1
	}
	return code, nil
}
