package store

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// Resource ids are nested as in the service. A database has 4 bytes. A container has its
// database's bytes and 4 more with the top bit set. A document has its container's bytes and
// 8 more, whose last 60 bits SDKs read as a number and compare. They are encoded as base64
// with '-' instead of '/'.
type rid []byte

var ridEncoding = base64.StdEncoding

func (r rid) String() string {
	return strings.ReplaceAll(ridEncoding.EncodeToString(r), "/", "-")
}

func parseRID(text string) (rid, error) {
	b, err := ridEncoding.DecodeString(strings.ReplaceAll(text, "-", "/"))
	if err != nil {
		return nil, fmt.Errorf("resource id %q: %w", text, err)
	}
	return b, nil
}

// DocumentNumber returns the number in the resource id of a document.
func DocumentNumber(text string) (number uint64, ok bool) {
	r, err := parseRID(text)
	if err != nil || len(r) != 16 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r[8:]), true
}

// IsDatabaseRID reports whether a text has the form of a database's resource id.
func IsDatabaseRID(text string) bool {
	if len(text) != 8 { // 4 bytes
		return false
	}
	r, err := parseRID(text)
	return err == nil && len(r) == 4
}

func (r rid) container(number uint32) rid {
	return binary.BigEndian.AppendUint32(append(rid(nil), r...), number|1<<31)
}

func databaseRID(number uint32) rid { return binary.BigEndian.AppendUint32(nil, number&^(1<<31)) }

// appendDocumentRID appends the text of a document's resource id without allocating.
func appendDocumentRID(dst []byte, container rid, document uint64) []byte {
	var raw [16]byte
	copy(raw[:], container)
	binary.LittleEndian.PutUint64(raw[8:], document) // the highest four bits mark a document
	start := len(dst)
	dst = ridEncoding.AppendEncode(dst, raw[:])
	for i := start; i < len(dst); i++ {
		if dst[i] == '/' {
			dst[i] = '-'
		}
	}
	return dst
}
