package store

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// memFS is Pebble's in-memory file system, but for tables: those are gathered and
// stored in one piece when they are complete. vfs.MemFS grows a file with every
// write, which copies a table several times over.
type memFS struct{ vfs.FS }

func newMemFS() vfs.FS { return memFS{vfs.NewMem()} }

// Create makes a file.
func (fs memFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.Create(name, category)
	if err != nil || filepath.Ext(name) != ".sst" {
		return file, err
	}
	g := &tableBuffer{File: file}
	g.text, _ = tables.Get().(*[]byte)
	return g, nil
}

// tables are the buffers tables are gathered in.
var tables = sync.Pool{New: func() any { return new([]byte) }}

// tableBuffer is a table that is being written. Pebble writes it from start to end by one
// goroutine and reads it only after it is closed.
type tableBuffer struct {
	vfs.File
	text *[]byte
}

func (g *tableBuffer) Write(p []byte) (int, error) {
	*g.text = append(*g.text, p...)
	return len(p), nil
}

// flush stores what was gathered.
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

// SyncTo promises nothing and need not store anything yet.
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
