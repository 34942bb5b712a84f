package disk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sealName is the name of the file that seal writes and check removes.
const sealName = "SEAL"

// sealHeader is the first line of a seal.
const sealHeader = "seal 1\n"

// seal records the state of all files of a store that was closed cleanly.
func seal(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	note := bytes.NewBufferString(sealHeader)
	for _, name := range names {
		switch kindOf(name) {
		case checked:
			data, err := read(fs, fs.PathJoin(dir, name))
			if err != nil {
				return err
			}
			fmt.Fprintf(note, "%s %d %08x\n", name, len(data), checksum(data))
		case sized:
			info, err := fs.Stat(fs.PathJoin(dir, name))
			if err != nil {
				return err
			}
			fmt.Fprintf(note, "%s %d -\n", name, info.Size())
		case ignored:
		}
	}
	fmt.Fprintf(note, "end %08x\n", checksum(note.Bytes()))
	return write(fs, dir, sealName, note.Bytes())
}

// check detects damage and removes the seal. A directory without a store is not damaged.
// hasTables reports whether there are tables, so that the store is not new.
func check(fs vfs.FS, dir string) (hasTables bool, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return false, err
	}
	hasTables = slices.ContainsFunc(names, func(name string) bool { return kindOf(name) == sized })
	if slices.Contains(names, sealName) {
		if err := checkSeal(fs, dir); err != nil {
			return hasTables, err
		}
		if err := fs.Remove(fs.PathJoin(dir, sealName)); err != nil {
			return hasTables, fmt.Errorf("remove the seal: %w", err)
		}
		return hasTables, syncDir(fs, dir)
	}
	newest, durable := readNote(fs, dir)
	for _, name := range names {
		if kindOf(name) != checked {
			continue
		}
		if err := checkChunks(fs, dir, name, newest, durable); err != nil {
			return hasTables, err
		}
	}
	return hasTables, nil
}

// checkSeal compares the files with the seal.
func checkSeal(fs vfs.FS, dir string) error {
	note, err := read(fs, fs.PathJoin(dir, sealName))
	if err != nil {
		return err
	}
	body, end, ok := bytes.Cut(note, []byte("end "))
	if !ok || strings.TrimSpace(string(end)) != fmt.Sprintf("%08x", checksum(body)) {
		return fmt.Errorf("%w: the seal has a wrong checksum", ErrDamaged)
	}
	body, ok = bytes.CutPrefix(body, []byte(sealHeader))
	if !ok {
		return fmt.Errorf("%w: the seal is malformed", ErrDamaged)
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			return fmt.Errorf("%w: the seal is malformed", ErrDamaged)
		}
		if err := checkFile(fs, dir, fields[0], fields[1], fields[2]); err != nil {
			return err
		}
	}
	return nil
}

func checkFile(fs vfs.FS, dir, name, size, sum string) error {
	info, err := fs.Stat(fs.PathJoin(dir, name))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if got := strconv.FormatInt(info.Size(), 10); got != size {
		return fmt.Errorf("%w: %s has %s bytes, but had %s when the store was closed", ErrDamaged, name, got, size)
	}
	if sum == "-" {
		return nil
	}
	data, err := read(fs, fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	if fmt.Sprintf("%08x", checksum(data)) != sum {
		return fmt.Errorf("%w: %s has changed since the store was closed", ErrDamaged, name)
	}
	return nil
}

// checkChunks checks the chunks of a log or a manifest. The log newest is durable up to an offset.
func checkChunks(fs vfs.FS, dir, name string, newest, durable uint64) error {
	data, err := read(fs, fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	f := file{data: data, log: strings.HasSuffix(name, ".log")}
	if f.log {
		number, ok := logNumber(name)
		if !ok {
			return fmt.Errorf("%w: the log %s has no number", ErrDamaged, name)
		}
		f.number = uint32(number)
		if number != newest {
			durable = 0
		}
	} else {
		durable = 0
	}
	if bad, proof := f.damage(durable); proof > 0 {
		return fmt.Errorf("%w: %s is not readable from byte %d on, but was written up to byte %d at least", ErrDamaged, name, bad, proof)
	}
	return nil
}

type kind int

const (
	ignored kind = iota
	checked      // logs and manifests
	sized        // tables, whose blocks Pebble checks
)

func kindOf(name string) kind {
	switch {
	case strings.HasPrefix(name, "MANIFEST-"), filepath.Ext(name) == ".log":
		return checked
	case filepath.Ext(name) == ".sst", filepath.Ext(name) == ".blob":
		return sized
	}
	return ignored
}

func read(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// write writes a file and makes it durable.
func write(fs vfs.FS, dir, name string, data []byte) error {
	temporary := fs.PathJoin(dir, name+".tmp")
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temporary, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }
