package disk

import "encoding/binary"

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

// damage returns the offset of the first incorrect chunk, and of a later chunk which proves that
// the first is damaged rather than the end of the file. proof is 0 if there is none.
func (f *file) damage() (bad, proof int) {
	bad = f.end()
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
