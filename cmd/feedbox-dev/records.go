package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/workload"
)

// The files of verify have one JSON object per line and no personal data: the outcomes that
// clients saw (workload.Outcome), the messages of a consumer, in order, and the documents of
// the store.

// messageRecord is one message of the topic, as a consumer received it.
type messageRecord struct {
	ID       string `json:"id"`
	Session  string `json:"session"`
	Subject  string `json:"subject"`
	Version  int64  `json:"version"`
	Sequence int64  `json:"sequence"`
	// Number is the broker's sequence number, 0 if unknown. A second line with the same
	// number is a redelivery, not a duplicate.
	Number int64 `json:"number,omitempty"`
}

// storeRecord is one document of the store: a verify.Document with the names of the file.
type storeRecord struct {
	// Kind is verify.KindAggregate, KindEvent or KindParked.
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Key      string `json:"key,omitempty"`
	Action   string `json:"action,omitempty"`
	Version  int64  `json:"version,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
}

func checkOutcome(o workload.Outcome) error {
	switch {
	case o.Outcome != workload.Acked && o.Outcome != workload.Unknown:
		return fmt.Errorf("outcome is %q: it must be %q or %q", o.Outcome, workload.Acked, workload.Unknown)
	case o.Outcome == workload.Acked && o.Contact == "":
		return errors.New("contact is missing: an acknowledged change needs it")
	}
	return nil
}

func checkMessage(m messageRecord) error {
	switch {
	case m.ID == "":
		return errors.New("id is missing")
	case m.Session == "":
		return errors.New("session is missing")
	case m.Sequence < 1 || m.Version < 1:
		return fmt.Errorf("sequence is %d and version %d: both count from 1", m.Sequence, m.Version)
	}
	return nil
}

func checkStored(s storeRecord) error {
	switch {
	case s.ID == "":
		return errors.New("id is missing")
	case s.Kind == verify.KindParked:
		return nil
	case s.Kind != verify.KindAggregate && s.Kind != verify.KindEvent:
		return fmt.Errorf("kind is %q: it must be %s, %s or %s", s.Kind, verify.KindAggregate, verify.KindEvent, verify.KindParked)
	case s.Kind == verify.KindEvent && s.Key == "":
		return errors.New("key is missing: an event needs it")
	case s.Sequence < 1 || s.Version < 1:
		return fmt.Errorf("sequence is %d and version %d: both count from 1", s.Sequence, s.Version)
	}
	return nil
}

// lineLimit bounds a line of a file.
const lineLimit = 1 << 20

// readRecords checks each line of a file and passes it to use. Its errors contain file and
// line; they are usage errors.
func readRecords[R any](path string, check func(R) error, use func(R)) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, lineLimit)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r R
		err := decodeRecord(lines.Bytes(), &r)
		if err == nil {
			err = check(r)
		}
		if err != nil {
			return usageError{fmt.Errorf("%s:%d: %w", path, n, err)}
		}
		use(r)
	}
	if err := lines.Err(); err != nil {
		return usageError{fmt.Errorf("%s:%d: %w", path, n+1, err)}
	}
	return nil
}

// decodeRecord refuses unknown members. Otherwise a file of the wrong kind would be read as
// empty records.
func decodeRecord(line []byte, r any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the JSON object is cut off")
		}
		return fmt.Errorf("not a record of this file: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON object on the line")
	}
	return nil
}

// recordFile writes records, one JSON object per line. add is safe for concurrent use.
type recordFile struct {
	mu    sync.Mutex // guards what follows
	file  *os.File
	out   *bufio.Writer
	count int
	err   error // the first
}

// createRecords creates the file; an existing one is truncated.
func createRecords(path string) (*recordFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &recordFile{file: f, out: bufio.NewWriter(f)}, nil
}

func (f *recordFile) add(record any) {
	line, err := json.Marshal(record)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if err == nil {
		_, err = f.out.Write(append(line, '\n'))
	}
	if f.err == nil {
		f.err = err
	}
}

// close completes the file and returns the errors since it was created.
func (f *recordFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.err, f.out.Flush(), f.file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.file.Name(), err)
	}
	return nil
}

// record creates a file, runs write to fill it, and returns the number of records.
func record(path string, write func(file *recordFile) error) (n int, err error) {
	file, err := createRecords(path)
	if err != nil {
		return 0, err
	}
	err = write(file)
	return file.count, errors.Join(err, file.close())
}

// addDocument writes a document of a store, unless verify does not need it. It omits events
// that the service would not write, like that of poison, and calls omitted with the reason.
func (f *recordFile) addDocument(raw []byte, omitted func(why error)) error {
	d, err := verify.DecodeDocument(raw)
	switch {
	case err != nil && d.Kind == verify.KindEvent:
		omitted(err)
		return nil
	case err == nil && d.Kind != verify.KindOther:
		f.add(storeRecord(d))
	}
	return err
}
