package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble takes a damaged or cut manifest for one whose end was never written, and
// goes on without the files named behind that point. So a store looks at it first:
//
//   - every chunk of the manifest must have its checksum; only an end that is cut
//     or zero may be what a crash leaves behind,
//   - a store that was closed carries a seal, the size and checksum of its
//     manifest, which must fit,
//   - a store without the version record must have no tables (see load).

// sealName is the file that a closed store carries.
const sealName = "SEAL"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// inspect checks the manifest of a store that is about to be opened, and breaks
// the seal. hasTables tells whether there are any: then the store is not new.
func inspect(fs vfs.FS, dir string) (hasTables bool, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return false, nil //nolint:nilerr // there is no directory yet: nothing to check
	}
	sealed := false
	var manifest string
	for _, name := range names {
		switch base := path.Base(name); {
		case strings.HasSuffix(base, ".sst"):
			hasTables = true
		case base == sealName:
			sealed = true
		case strings.HasPrefix(base, "marker.manifest."):
			if parts := strings.SplitN(base, ".", 4); len(parts) == 4 && parts[3] > manifest {
				manifest = parts[3]
			}
		}
	}
	if manifest == "" {
		return hasTables, nil
	}
	text, err := readFile(fs, fs.PathJoin(dir, manifest))
	if err != nil {
		return hasTables, fmt.Errorf("%w: the manifest: %w", ErrCorrupt, err)
	}
	if err := checkChunks(text); err != nil {
		return hasTables, fmt.Errorf("%w: %s: %w", ErrCorrupt, manifest, err)
	}
	if !sealed {
		return hasTables, nil
	}
	seal, err := readFile(fs, fs.PathJoin(dir, sealName))
	if err != nil {
		return hasTables, fmt.Errorf("read the seal: %w", err)
	}
	if !bytes.Equal(seal, sealOf(manifest, text)) {
		return hasTables, fmt.Errorf("%w: %s is not as it was when the store was closed", ErrCorrupt, manifest)
	}
	return hasTables, nil
}

func sealOf(manifest string, text []byte) []byte {
	return fmt.Appendf(nil, "%s %d %08x\n", manifest, len(text), crc32.Checksum(text, castagnoli))
}

func readFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// The framing of a manifest: blocks of 32 KB, in them chunks of checksum (4), length
// (2), type (1) and data (pebble/record, legacy format).
const (
	chunkBlock  = 32 << 10
	chunkHeader = 7
	chunkTypes  = 4
)

// checkChunks walks the chunks of a manifest.
func checkChunks(text []byte) error {
	for at := 0; at < len(text); {
		if rest := chunkBlock - at%chunkBlock; rest < chunkHeader {
			at += rest
			continue
		}
		end, ok := chunkAt(text, at)
		if !ok {
			return checkEnd(text, at)
		}
		at = end
	}
	return nil
}

// chunkAt tells whether a good chunk is at an offset, and where it ends.
func chunkAt(text []byte, at int) (end int, ok bool) {
	if at+chunkHeader > len(text) {
		return 0, false
	}
	kind := text[at+6]
	end = at + chunkHeader + int(binary.LittleEndian.Uint16(text[at+4:]))
	if kind == 0 || kind > chunkTypes || end > len(text) || end > (at/chunkBlock+1)*chunkBlock {
		return 0, false
	}
	crc := crc32.Checksum(text[at+6:end], castagnoli)
	return end, binary.LittleEndian.Uint32(text[at:]) == (crc>>15|crc<<17)+0xa282ead8
}

// checkEnd judges what stands where a chunk should be: an end that was cut, or
// never written, is as a crash leaves it; anything else is damage.
func checkEnd(text []byte, at int) error {
	rest := text[at:]
	if len(bytes.Trim(rest, "\x00")) == 0 {
		return nil
	}
	if len(rest) >= chunkHeader && len(rest) >= chunkHeader+int(binary.LittleEndian.Uint16(rest[4:])) {
		return fmt.Errorf("bad chunk at offset %d", at)
	}
	for later := at + 1; later < len(text); later++ {
		if _, ok := chunkAt(text, later); ok {
			return fmt.Errorf("bad chunk at offset %d, good ones behind it", at)
		}
	}
	return nil
}

// breakSeal removes the seal of a store that is open now.
func breakSeal(fs vfs.FS, dir string) error {
	name := fs.PathJoin(dir, sealName)
	if _, err := fs.Stat(name); err != nil {
		return nil //nolint:nilerr // there is none
	}
	if err := fs.Remove(name); err != nil {
		return fmt.Errorf("break the seal: %w", err)
	}
	return syncDir(fs, dir)
}

// putSeal seals a store that has just been closed.
func putSeal(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	for _, name := range names {
		parts := strings.SplitN(path.Base(name), ".", 4)
		if len(parts) != 4 || parts[0] != "marker" || parts[1] != "manifest" {
			continue
		}
		text, err := readFile(fs, fs.PathJoin(dir, parts[3]))
		if err != nil {
			return fmt.Errorf("seal: %w", err)
		}
		f, err := fs.Create(fs.PathJoin(dir, sealName), vfs.WriteCategoryUnspecified)
		if err != nil {
			return fmt.Errorf("seal: %w", err)
		}
		_, err = f.Write(sealOf(parts[3], text))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("seal: %w", err)
		}
		return syncDir(fs, dir)
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
