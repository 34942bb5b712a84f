// Command stamp runs a long check unless the check has already passed on the same inputs:
//
//	go run ./tests/stamp run NAME -- COMMAND     run COMMAND, unless the stamp of NAME matches
//	go run ./tests/stamp inputs NAME             print everything that the stamp depends on
//
// A stamp is a line of stamps.txt: the check, a hash of its inputs, and when it passed. The
// inputs (checks.go) are the Go files of the packages under test and of all packages of this
// repository that they import, fixtures, go.mod and go.sum, the command, variables that begin
// with FEEDBOX_, and the versions of Go and of other tools. Two machines that disagree about a
// stamp compare what inputs prints.
//
// After a run that passed, the stamp is replaced. CI=true prevents that, because a stamp must
// be committed to count. STAMPS=ignore runs the check in any case; make nightly sets it.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const file = "tests/stamp/stamps.txt"

func main() {
	if err := run(os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stamp:", err)
		os.Exit(1)
	}
}

func names() []string { return slices.Sorted(maps.Keys(checks)) }

func run(args []string, root string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: stamp run NAME -- COMMAND, or stamp inputs NAME")
	}
	c, ok := checks[args[1]]
	if !ok {
		return fmt.Errorf("there is no check %q; there are %s", args[1], strings.Join(names(), ", "))
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	switch {
	case args[0] == "inputs" && len(args) == 2:
		in, err := c.collect(root, nil)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, strings.Join(in.lines, "\n"))
		return err
	case args[0] == "run" && len(args) > 3 && args[2] == "--":
		return c.run(root, args[1], args[3:], out)
	default:
		return errors.New("usage: stamp run NAME -- COMMAND, or stamp inputs NAME")
	}
}

// run runs the command of a check unless its stamp matches.
func (c check) run(root, name string, command []string, out io.Writer) error {
	before, err := c.collect(root, command)
	if err != nil {
		return err
	}
	stamps, err := read(filepath.Join(root, file))
	if err != nil {
		return err
	}
	if old := stamps[name]; old.hash == before.hash() && os.Getenv("STAMPS") != "ignore" {
		fmt.Fprintf(out, "!!! %s NOT RUN AGAIN: it passed on these inputs on %s, in %d s (STAMPS=ignore runs it)\n", name, old.date, old.seconds)
		return nil
	}
	began := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = root, os.Stdin, out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if os.Getenv("CI") == "true" {
		return nil
	}
	// Whatever changed during the run may or may not have been checked.
	after, err := c.collect(root, command)
	switch {
	case err != nil:
		return err
	case len(before.missing) > 0: // a part of the check was skipped
		fmt.Fprintf(out, "%s passed without %s: no stamp\n", name, strings.Join(before.missing, ", "))
		return nil
	case after.hash() != before.hash():
		fmt.Fprintf(out, "%s passed, but its inputs changed meanwhile: no stamp\n", name)
		return nil
	}
	return replace(filepath.Join(root, file), stamp{name, before.hash(), today(), int(time.Since(began).Seconds())})
}
