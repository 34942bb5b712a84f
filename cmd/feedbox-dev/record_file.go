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

// recordFile writes records, one JSON object a line. add is safe for concurrent use.
type recordFile struct {
	mu    sync.Mutex // guards what follows
	file  *os.File
	out   *bufio.Writer
	count int
	err   error // the first
}

// createRecords makes the file anew. An existing one is replaced only once there is
// something to write, which is at once: nothing is kept of it.
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

// close completes the file and returns what went wrong since it was made.
func (f *recordFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.err, f.out.Flush(), f.file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.file.Name(), err)
	}
	return nil
}

// record makes a file of what write adds to it, and returns how many records it has.
func record(path string, write func(file *recordFile) error) (n int, err error) {
	file, err := createRecords(path)
	if err != nil {
		return 0, err
	}
	err = write(file)
	return file.count, errors.Join(err, file.close())
}

// addDocument writes down a document of a store, unless verify has no use for it. An event that
// is not as the service writes it, like that of spoil, is left out, and told is why.
func (f *recordFile) addDocument(raw []byte, told func(why error)) error {
	d, err := verify.DecodeDocument(raw)
	switch {
	case err != nil && d.Kind == verify.KindEvent:
		told(err)
		return nil
	case err == nil && d.Kind != verify.KindOther:
		f.add(storeRecord(d))
	}
	return err
}
