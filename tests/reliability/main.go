// Command reliability writes the fault table of tests/faults/README.md from the records of
// the fault tests (tests/record).
//
//	FEEDBOX_RESULTS=DIR make nightly
//	go run ./tests/reliability -results DIR          # writes the table
//	go run ./tests/reliability -results DIR -check   # fails if it is not that table
//	go run ./tests/reliability -check                # fails if it was edited by hand
//
// The table is between the lines <!-- faults:begin --> and <!-- faults:end -->. It contains
// its own checksum, so that -check detects an edit even without the records. The rest of
// the file is not changed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintln(os.Stderr, "reliability:", err)
		}
		os.Exit(1)
	}
}

// run executes one command line.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("reliability", flag.ContinueOnError)
	results := flags.String("results", "", "folder of records, FEEDBOX_RESULTS of the tests")
	file := flags.String("file", "tests/faults/README.md", "document that contains the table")
	check := flags.Bool("check", false, "only check that the table is the generated one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *results == "" && !*check {
		return errors.New("pass -results DIR, -check or both, and no arguments; see -h")
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	d, err := split(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	if *results == "" {
		return checkSum(*file, d.table)
	}
	records, err := readRecords(*results)
	if err != nil {
		return err
	}
	table := seal(render(records))
	switch {
	case d.table == table:
		_, err = fmt.Fprintf(out, "%s is up to date with %d records\n", *file, len(records))
		return err
	case *check:
		return fmt.Errorf("%s differs from the table of the records in %s, regenerate it: go run ./tests/reliability -results %[2]s", *file, *results)
	}
	if err := os.WriteFile(*file, []byte(d.before+table+d.after), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: wrote the table of %d records\n", *file, len(records))
	return err
}
