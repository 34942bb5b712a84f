package cli

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// awaitStdout runs a command until a line of its output matches.
func awaitStdout(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("want PATTERN COMMAND..., got %q", args)
	}
	want := regexp.MustCompile("(?m)" + args[0])
	await(ts, strings.Join(args[1:], " ")+" shows "+args[0], func() bool {
		time.Sleep(200 * time.Millisecond) // each check starts a process
		_ = ts.Exec(args[1], args[2:]...)  // only the output counts, not the exit code
		return want.MatchString(ts.ReadFile("stdout"))
	})
}

// narrow fails if a line of the last output, or of its first N lines, is longer than 80
// characters.
func narrow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("want nothing or N, got %q", args)
	}
	left := -1
	if len(args) == 1 {
		var err error
		left, err = strconv.Atoi(args[0])
		ts.Check(err)
	}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if left == 0 {
			return
		}
		left--
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			ts.Fatalf("%d characters: %s", n, line)
		}
	}
}
