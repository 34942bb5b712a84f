package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func chunk(data string) []byte {
	out := make([]byte, chunkHeader, chunkHeader+len(data))
	out[6] = 1
	out = append(out, data...)
	binary.LittleEndian.PutUint16(out[4:], uint16(len(data)))
	crc := crc32.Checksum(out[6:], castagnoli)
	binary.LittleEndian.PutUint32(out, (crc>>15|crc<<17)+0xa282ead8)
	return out
}

func TestChunks(t *testing.T) {
	whole := append(append(chunk("one"), chunk("two")...), chunk("three")...)
	first := len(chunk("one"))
	if err := checkChunks(whole); err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := checkChunks(whole[:cut]); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if err := checkChunks(append(append([]byte(nil), whole...), make([]byte, 100)...)); err != nil {
		t.Errorf("zeros behind the end: %v", err)
	}
	for at := range whole[:first+len(chunk("two"))] {
		for bit := range 8 {
			damaged := append([]byte(nil), whole...)
			damaged[at] ^= 1 << bit
			if checkChunks(damaged) == nil {
				t.Errorf("bit %d of byte %d is not missed", bit, at)
			}
		}
	}
}

// What Pebble writes passes, and a flipped bit in it does not, sealed or not.
func TestInspectTheManifest(t *testing.T) {
	for _, closed := range []bool{true, false} {
		fs := vfs.NewCrashableMem()
		s, err := Open(Options{FS: fs, Sweep: -1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CreateDatabase("db"); err != nil {
			t.Fatal(err)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var disk vfs.FS = fs
		if !closed {
			disk = crashed
		}
		if _, err := inspect(disk, "cosmos"); err != nil {
			t.Errorf("closed %v: %v", closed, err)
		}
		names, err := disk.List("cosmos")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, "MANIFEST") {
				continue
			}
			text, err := readFile(disk, disk.PathJoin("cosmos", name))
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/3] ^= 4
			f, err := disk.Create(disk.PathJoin("cosmos", name), vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(text)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := inspect(disk, "cosmos"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("closed %v, a bit flipped: %v", closed, err)
		}
		if _, err := Open(Options{FS: disk}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("closed %v, opened with a bit flipped: %v", closed, err)
		}
	}
}
