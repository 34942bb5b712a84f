package store

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// appendSystem completes a document's members with its system properties and the
// closing brace. _ts is last, so that a feed page can add _lsn after it.
func (c *Container) appendSystem(dst []byte, at *pointer) []byte {
	dst = append(dst, `,"_rid":"`...)
	dst = appendDocumentRID(dst, c.rid, at.created.number())
	dst = append(dst, `","_self":"dbs/`...)
	dst = append(dst, c.DatabaseRID...)
	dst = append(dst, `/colls/`...)
	dst = append(dst, c.RID...)
	dst = append(dst, `/docs/`...)
	dst = appendDocumentRID(dst, c.rid, at.created.number())
	dst = append(dst, `/","_etag":"\`...)
	dst = appendETag(dst, c.rid, at)
	dst[len(dst)-1] = '\\' // the closing quote of the ETag is escaped too
	dst = append(dst, `"","_attachments":"attachments/","_ts":`...)
	dst = strconv.AppendInt(dst, at.millis/1000, 10)
	return append(dst, '}')
}

func (c *Container) item(at *pointer, body []byte) Item {
	var etag [etagLength]byte
	return Item{ETag: string(appendETag(etag[:0], c.rid, at)), Body: body, Number: at.created.number(), LSN: at.written.lsn}
}

// etagLength is the length of an ETag with its quotes.
const etagLength = 38

// appendETag appends the quoted ETag of a write. It consists of the container's random
// number, the position of the write and the low bits of its time. So it is unique per write
// and need not be stored.
func appendETag(dst []byte, container rid, at *pointer) []byte {
	var raw [16]byte
	copy(raw[:4], container[len(container)-4:])
	binary.BigEndian.PutUint64(raw[4:], at.written.number())
	binary.BigEndian.PutUint32(raw[12:], uint32(at.millis))
	dst = append(dst, '"')
	for i, part := range [5][]byte{raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return append(dst, '"')
}
