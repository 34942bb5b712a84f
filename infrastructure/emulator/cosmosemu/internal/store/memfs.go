package store

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// memFS is Pebble's in-memory file system, except that it buffers tables and stores each in
// one write when it is complete. vfs.MemFS grows a file with every write, which would copy a
// table several times.
type memFS struct{ vfs.FS }

func newMemFS() vfs.FS { return memFS{vfs.NewMem()} }

// Create creates a file.
func (fs memFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.Create(name, category)
	if err != nil || filepath.Ext(name) != ".sst" {
		return file, err
	}
	g := &tableBuffer{File: file}
	g.text, _ = tables.Get().(*[]byte)
	return g, nil
}

// tables are reused buffers for tables.
var tables = sync.Pool{New: func() any { return new([]byte) }}

// tableBuffer is a table that is being written. It needs no lock, because Pebble writes a
// table from start to end in one goroutine and reads it only after Close.
type tableBuffer struct {
	vfs.File
	text *[]byte
}

func (g *tableBuffer) Write(p []byte) (int, error) {
	*g.text = append(*g.text, p...)
	return len(p), nil
}

// flush stores the buffered text.
func (g *tableBuffer) flush() error {
	if len(*g.text) == 0 {
		return nil
	}
	_, err := g.File.Write(*g.text)
	*g.text = (*g.text)[:0]
	return err
}

func (g *tableBuffer) Sync() error {
	return errors.Join(g.flush(), g.File.Sync())
}

func (g *tableBuffer) SyncData() error {
	return errors.Join(g.flush(), g.File.SyncData())
}

// SyncTo makes no promise, so it need not store anything yet.
func (g *tableBuffer) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func (g *tableBuffer) Stat() (vfs.FileInfo, error) {
	if err := g.flush(); err != nil {
		return nil, err
	}
	return g.File.Stat()
}

func (g *tableBuffer) Close() error {
	err := g.flush()
	tables.Put(g.text)
	g.text = new([]byte) // a second Close finds nothing to store
	return errors.Join(err, g.File.Close())
}
