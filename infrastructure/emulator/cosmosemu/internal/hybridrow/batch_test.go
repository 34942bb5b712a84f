package hybridrow

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"
)

// bulk is a request of Microsoft.Azure.Cosmos 3.64.0: a patch and two reads.
const bulk = "81f0d8ff7f010a000000" +
	"81f1d8ff7f580000006302aa2f817054e17f570100000002000000095b2262756c6b34225d026b343c7b226f7065726174696f6e73223a5b7b226f70223a22736574222c2270617468223a222f70617463686564222c2276616c7565223a747275657d5d7d" +
	"81f1d8ff7f1b000000b55dd678817054e17f170200000002000000095b2262756c6b32225d026b32" +
	"81f1d8ff7f1d0000008c76471b817054e17f170200000002000000095b2262756c6b33225d046e6f6e65"

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseRequestOfTheSDK(t *testing.T) {
	got, err := Parse(unhex(t, bulk))
	want := []Operation{
		{Kind: Patch, PartitionKey: `["bulk4"]`, ID: "k4", Body: []byte(`{"operations":[{"op":"set","path":"/patched","value":true}]}`)},
		{Kind: Read, PartitionKey: `["bulk2"]`, ID: "k2"},
		{Kind: Read, PartitionKey: `["bulk3"]`, ID: "none"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// row returns a stream of one operation with sparse fields after an id.
func row(sparse ...byte) []byte {
	return appendRecord(appendSegment(nil), func(dst []byte) []byte {
		dst = append(appendHeader(dst, schemaRequest), bitKind|bitResource|bitID, Delete, 0, 0, 0, resourceDocument, 0, 0, 0, 1, 'x')
		return append(dst, sparse...)
	})
}

func TestSparseFields(t *testing.T) {
	got, err := Parse(row(codeUTF8, nameIfMatch, 3, '"', 'e', '"', codeTrue, nameMinimal, codeUTF8, nameIndexing, 1, 'x', codeUTF8, nameIfNoneMatch, 1, '*'))
	want := []Operation{{Kind: Delete, ID: "x", IfMatch: `"e"`, IfNoneMatch: "*", Minimal: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for why, sparse := range map[string][]byte{
		"timeToLiveInSeconds is not supported": {codeInt32, nameTTL, 1, 0, 0, 0},
		`the field "ab" is not of the schema`:  {codeUTF8, names + 2, 'a', 'b', 0},
		"field 9 with type code 7 is not":      {codeInt32, nameIfMatch, 1, 0, 0, 0},
		"2 bytes are missing":                  {codeUTF8, nameIfMatch, 3, 'a'},
	} {
		if _, err := Parse(row(sparse...)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v, want %q", sparse, err, why)
		}
	}
}

func TestDamagedStreamsAreRefused(t *testing.T) {
	whole := unhex(t, bulk)
	for i := range whole {
		for _, flip := range []byte{1, 0x80} {
			b := bytes.Clone(whole)
			b[i] ^= flip
			if _, err := Parse(b); err == nil {
				t.Errorf("byte %d, bit %#x turned over: no error", i, flip)
			}
		}
	}
}

// The result is read back as in the SDK: by the columns of the schema.
func TestAppendResult(t *testing.T) {
	r := Result{Status: 409, SubStatus: 7, ETag: `"e"`, Body: []byte(`{}`), Charge: 1.5}
	var row []byte
	if err := records(r.Append(AppendSegment(nil)), func(b []byte) error { row = b; return nil }); err != nil {
		t.Fatal(err)
	}
	want := append(appendHeader(nil, schemaResult), 0b1111, 0x99, 1, 0, 0, 7, 0, 0, 0, 3, '"', 'e', '"', 2, '{', '}', codeFloat64, nameCharge)
	want = binary.LittleEndian.AppendUint64(want, math.Float64bits(1.5))
	if !bytes.Equal(row, want) {
		t.Errorf("%x\n%x", row, want)
	}
}

// FuzzParse gives the parser arbitrary rows with correct checksums. It must return operations
// within the stream or an error.
func FuzzParse(f *testing.F) {
	f.Add(unhex(f, bulk))
	f.Add(row(codeUTF8, nameIfMatch, 3, '"', 'e', '"', codeTrue, nameMinimal))
	f.Fuzz(func(t *testing.T, stream []byte) {
		operations, err := Parse(stream)
		if err == nil && len(operations) > len(stream) {
			t.Fatal("more operations than bytes")
		}
		one := appendHeader(appendSegment(nil), schemaRecord)
		one = binary.LittleEndian.AppendUint32(one, uint32(len(stream)))
		one = binary.LittleEndian.AppendUint32(one, crc32.ChecksumIEEE(stream))
		if operations, err = Parse(append(one, stream...)); err == nil && len(operations) != 1 {
			t.Fatalf("%d operations of one record", len(operations))
		}
	})
}
