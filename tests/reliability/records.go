package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"feedbox/tests/testkit"
)

// readRecords reads all records of a folder, ordered by fault and test.
func readRecords(dir string) ([]testkit.Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no records in %s: run the fault tests with FEEDBOX_RESULTS=%[1]s", dir)
	}
	var records []testkit.Result
	for _, file := range files {
		r, err := readRecord(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b testkit.Result) int {
		return cmp.Or(cmp.Compare(number(a.Fault), number(b.Fault)), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Test, b.Test))
	})
	return records, nil
}

func readRecord(file string) (testkit.Result, error) {
	var r testkit.Result
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a record of a fault test: %w", err)
	}
	if r.Fault == "" || r.Name == "" || r.Test == "" {
		return r, errors.New("not a record of a fault test: fault, name or test is missing")
	}
	return r, nil
}

// number returns n for a fault Fn; other names are sorted last.
func number(fault string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(fault, "F"))
	if err != nil {
		return 1 << 30
	}
	return n
}
