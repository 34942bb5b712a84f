package store

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// Resource ids nest as the service's do: a database has 4 bytes, a container the
// database's and 4 more with the top bit set, a document the container's and 8
// more. They travel as base64 with '-' for '/'.
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

func (r rid) container(number uint32) rid {
	return binary.BigEndian.AppendUint32(append(rid(nil), r...), number|1<<31)
}

func databaseRID(number uint32) rid { return binary.BigEndian.AppendUint32(nil, number&^(1<<31)) }

// appendDocumentRID appends the text of a document's rid without allocating.
func appendDocumentRID(dst []byte, container rid, document uint64) []byte {
	var raw [16]byte
	copy(raw[:], container)
	binary.BigEndian.PutUint64(raw[8:], document)
	start := len(dst)
	dst = ridEncoding.AppendEncode(dst, raw[:])
	for i := start; i < len(dst); i++ {
		if dst[i] == '/' {
			dst[i] = '-'
		}
	}
	return dst
}
