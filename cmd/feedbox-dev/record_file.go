package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"feedbox/infrastructure/lab/verify"
)

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
