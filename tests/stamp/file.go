package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// stamp records that a check passed.
type stamp struct {
	name, hash, date string
	seconds          int
}

const header = `# Long checks that passed, and on which inputs. Written by go run ./tests/stamp; see its doc.go.
# check                   hash of the inputs                date        seconds
`

// read returns the stamps in a file by their names. A missing file has none.
func read(path string) (map[string]stamp, error) {
	stamps := map[string]stamp{}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var s stamp
		if _, err := fmt.Sscan(line, &s.name, &s.hash, &s.date, &s.seconds); err != nil {
			return nil, fmt.Errorf("%s: %q is not a stamp: %w", path, line, err)
		}
		stamps[s.name] = s
	}
	return stamps, nil
}

// replace writes s into the file and keeps the others. Stamps of checks that no longer exist
// are dropped.
func replace(path string, s stamp) error {
	stamps, err := read(path)
	if err != nil {
		return err
	}
	stamps[s.name] = s
	text := header
	for _, name := range names() {
		if s, ok := stamps[name]; ok {
			text += fmt.Sprintf("%-25s %s  %s  %7d\n", s.name, s.hash, s.date, s.seconds)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // part of the repository
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // part of the repository
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }
