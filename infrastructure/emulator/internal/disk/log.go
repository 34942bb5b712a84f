package disk

import (
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The format of logs and manifests (pebble/v2 record/record.go): blocks of 32 KB of
// chunks, each with a checksum (4 bytes), the length of its payload (2), its encoding
// (1), in logs the number of the log (4) and, in the newest format, the offset up to which the
// log had been synced when the chunk was written (8).
const (
	blockSize = 32 << 10

	legacyHeader     = 7
	recyclableHeader = 11
	syncHeader       = 19
)

// file is a log or a manifest.
type file struct {
	data   []byte
	log    bool
	number uint32
}

// chunk is a chunk with a correct checksum.
type chunk struct {
	end    int
	synced uint64 // 0 if the format does not contain it
}

// at reads the chunk at an offset and reports whether its checksum is correct.
func (f *file) at(offset int) (chunk, bool) {
	block := f.data[offset:min(len(f.data), offset-offset%blockSize+blockSize)]
	if len(block) < legacyHeader {
		return chunk{}, false
	}
	var header int
	switch encoding := block[6]; {
	case 1 <= encoding && encoding <= 4 && !f.log:
		header = legacyHeader
	case 5 <= encoding && encoding <= 8 && f.log:
		header = recyclableHeader
	case 9 <= encoding && encoding <= 12 && f.log:
		header = syncHeader
	default:
		return chunk{}, false
	}
	end := header + int(binary.LittleEndian.Uint16(block[4:]))
	if end > len(block) || f.log && binary.LittleEndian.Uint32(block[7:]) != f.number {
		return chunk{}, false
	}
	if binary.LittleEndian.Uint32(block) != mask(checksum(block[6:end])) {
		return chunk{}, false
	}
	c := chunk{end: offset + end}
	if header == syncHeader {
		c.synced = binary.LittleEndian.Uint64(block[11:])
	}
	return c, true
}

// damage returns the offset of the first incorrect chunk, and an offset which proves that the chunk is
// damaged rather than the end of the file: that of a later chunk, or the one up to which the file is known to
// be durable. proof is 0 if there is none.
func (f *file) damage(durable uint64) (bad, proof int) {
	bad = f.end()
	if durable > uint64(bad+recyclableHeader) { // the last chunk of a log that was closed has another number
		return bad, int(durable) //nolint:gosec // an offset in a file
	}
	for offset := bad + 1; offset < len(f.data); offset++ {
		c, ok := f.at(offset)
		if ok && (!f.log || c.synced > uint64(bad)) {
			return bad, offset
		}
	}
	return bad, 0
}

// end returns the offset after the last correct chunk.
func (f *file) end() int {
	offset := 0
	for offset < len(f.data) {
		if c, ok := f.at(offset); ok {
			offset = c.end
			continue
		}
		left := blockSize - offset%blockSize
		if left >= syncHeader || !zero(f.data[offset:min(len(f.data), offset+left)]) {
			break
		}
		offset += left // the writer leaves the end of a block empty if no chunk fits
	}
	return offset
}

func zero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// mask returns the form in which LevelDB's formats store a CRC.
func mask(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

// logNumber returns the number in the name of a log.
func logNumber(name string) (number uint64, ok bool) {
	digits, isLog := strings.CutSuffix(name, ".log")
	number, err := strconv.ParseUint(digits, 10, 32)
	return number, isLog && err == nil
}

// noteName is the name of the file that syncedLogs writes: the number of a log, the offset up to which it
// is durable, and a checksum of both.
const noteName = "SYNCED"

const noteSize = 8 + 8 + 4

// syncedLogs notes after each fsync of a log up to which offset it is durable. The offsets in chunks do not
// prove that: no chunk follows the last fsync, and Pebble 2.1.7 does not count the end of a block that was
// full when it was written (record/log_writer.go, flushLoop), which is a twentieth of a log and more.
//
// The note itself is not synced, because that would cost each commit a second fsync. So it is exact after
// the process has been killed. After a crash of the machine it may be too low or absent, but never too high.
type syncedLogs struct {
	vfs.FS
	mu     sync.Mutex // guards the fields below
	note   vfs.File
	newest uint64 // log of the note
}

func (s *syncedLogs) open(fs vfs.FS, dir string) (err error) {
	s.FS = fs
	s.note, err = fs.OpenReadWrite(fs.PathJoin(dir, noteName), vfs.WriteCategoryUnspecified)
	return err
}

// Create implements vfs.FS.
func (s *syncedLogs) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, category)
	return s.follow(f, name, err)
}

// ReuseForWrite implements vfs.FS.
func (s *syncedLogs) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(oldName, newName, category)
	return s.follow(f, newName, err)
}

func (s *syncedLogs) follow(f vfs.File, name string, err error) (vfs.File, error) {
	number, isLog := logNumber(s.PathBase(name))
	if err != nil || !isLog {
		return f, err
	}
	return &syncedLog{File: f, logs: s, number: number}, nil
}

// durable notes that a log is durable up to an offset. If that fails, the note remains too low.
func (s *syncedLogs) durable(number, offset uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < s.newest {
		return
	}
	s.newest = number
	note := binary.LittleEndian.AppendUint64(make([]byte, 0, noteSize), number)
	note = binary.LittleEndian.AppendUint64(note, offset)
	_, _ = s.note.WriteAt(binary.LittleEndian.AppendUint32(note, checksum(note)), 0)
}

// readNote returns the newest log with a note, and the offset up to which it is durable; zero if there is none.
func readNote(fs vfs.FS, dir string) (number, offset uint64) {
	note, err := read(fs, fs.PathJoin(dir, noteName))
	if err != nil || len(note) != noteSize || binary.LittleEndian.Uint32(note[16:]) != checksum(note[:16]) {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(note), binary.LittleEndian.Uint64(note[8:])
}

// syncedLog is a log that Pebble writes from one goroutine.
type syncedLog struct {
	vfs.File
	logs    *syncedLogs
	number  uint64
	written atomic.Uint64
}

// Write implements vfs.File.
func (l *syncedLog) Write(p []byte) (n int, err error) {
	n, err = l.File.Write(p)
	l.written.Add(uint64(n)) //nolint:gosec // not negative
	return n, err
}

// Sync implements vfs.File.
func (l *syncedLog) Sync() error { return l.noted(l.File.Sync) }

// SyncData implements vfs.File.
func (l *syncedLog) SyncData() error { return l.noted(l.File.SyncData) }

func (l *syncedLog) noted(sync func() error) error {
	offset := l.written.Load()
	if err := sync(); err != nil {
		return err
	}
	l.logs.durable(l.number, offset)
	return nil
}
