package store

import "strconv"

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
