package binaryjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// documents contains binary documents, written by hand from the markers, with their text.
var documents = map[string]string{
	"\x80\xe8":                 `{}`,
	"\x80\xe0":                 `[]`,
	"\x80\x1f":                 `31`,
	"\x80\xc8\xff":             `255`,
	"\x80\xc9\xff\xff":         `-1`,
	"\x80\xca\x00\x00\x01\x00": `65536`,
	"\x80\xcb\xff\xff\xff\xff\xff\xff\xff\xff":   `-1`,
	"\x80\xc7\xff\xff\xff\xff\xff\xff\xff\xff":   `18446744073709551615`,
	"\x80\xcc\x00\x00\x00\x00\x00\x00\xf8\x3f":   `1.5`,
	"\x80\xcd\x00\x00\xc0\x3f":                   `1.5`,
	"\x80\xd8\xfe":                               `-2`,
	"\x80\xe2\x03\xd0\xd1\xd2":                   `[null,false,true]`,
	"\x80\xe5\x03\x03\xd0\xd1\xd2":               `[null,false,true]`,
	"\x80\xe1\x05":                               `[5]`,
	"\x80\xe9\x2c\x81a":                          `{"id":"a"}`,
	"\x80\xea\x08\x2c\x81a\x81b\xe1\x01\x83\"\\": "",
	"\x80\xea\x07\x81a\x81b\x81c\x07":            `{"a":"b","c":7}`,
	"\x80\xe4\x02\x00\x00\x00\x81a":              `["a"]`,
	"\x80\x82\"\\":                               `"\"\\"`,
	"\x80\xc0\x02hi":                             `"hi"`,
	"\x80\xc1\x02\x00hi":                         `"hi"`,
	"\x80\xe2\x05\x82hi\xc3\x03":                 `["hi","hi"]`,
	"\x80\x78\x04\x21\x43":                       `"1234"`,
	"\x80\x79\x03\xba\x0c":                       `"ABC"`,
	"\x80\x7a\x04\x32\xb4":                       `"123:"`,
	"\x80\x7b\x04a\x10\x32":                      `"abcd"`,
	"\x80\x7e\x03\xe1\xf1\x18":                   `"acc"`,
	"\x80\x71\x01\x00abc":                        `"YWJj"`,
	"\x80\x71\x01\x01ab":                         `"YWI="`,
	"\x80\x73\x01\xfeab":                         `"YWI"`,
	"\x80\xf0\xd8\x02\xff\x01":                   `[-1,1]`,
	"\x80\xf2\xf0\xc8\x02\x02\x01\x02\x03\x04":   `[[1,2],[3,4]]`,
	"\x80\x75\x10\x32\x54\x76\x98\xba\xdc\xfe\x10\x32\x54\x76\x98\xba\xdc\xfe": `"01234567-89ab-cdef-0123-456789abcdef"`,
}

func TestDecode(t *testing.T) {
	for in, want := range documents {
		got, err := Decode([]byte(in))
		if (err != nil) != (want == "") || err == nil && string(got) != want {
			t.Errorf("%x: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestDamagedDocumentsAreRefused(t *testing.T) {
	for in := range documents {
		for end := range len(in) {
			if got, err := Decode([]byte(in[:end])); err == nil {
				t.Errorf("%x of %x was read as %s", in[:end], in, got)
			}
		}
	}
	for _, in := range []string{"{}", "\x80\xe8\xe8", "\x80\x40", "\x80\xd3", "\x80\xcf\x00\x00", "\x80\xcc\x00\x00\x00\x00\x00\x00\xf0\x7f", "\x80\x81\xff", "\x80" + strings.Repeat("\xe1", 300) + "\x01", "\x80\xc3\x01"} {
		if got, err := Decode([]byte(in)); err == nil {
			t.Errorf("%x was read as %s", in, got)
		}
	}
}

func TestGrowthByReferencesIsLimited(t *testing.T) {
	long := strings.Repeat("x", 60000)
	in := "\x80\xe4\xff\xff\x02\x00\xc1\x60\xea" + long
	in += strings.Repeat("\xc3\x06", (0x2ffff-3-60000)/2)
	in = in[:6+0x2ffff]
	if _, err := Decode([]byte(in)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("error is %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		`{"id":"a","n":[0,31,32,255,256,-1,-32768,40000,-40000,2147483648,1.25,1e300,18446744073709551615],"deep":{"x":[{}],"y":[]},"s":"\u0000é\"\\/"}`,
		`"` + strings.Repeat("a", 63) + `"`, `"` + strings.Repeat("a", 255) + `"`, `"` + strings.Repeat("a", 65535) + `"`, `"` + strings.Repeat("a", 65536) + `"`,
		`true`, `null`, `[false]`,
	} {
		same(t, text)
	}
}

func same(t *testing.T, text string) {
	t.Helper()
	in, err := Encode([]byte(text))
	if err != nil {
		t.Errorf("%.80s: %v", text, err)
		return
	}
	out, err := Decode(in)
	var a, b any
	if err != nil || json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(out, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%.80s came back as %.80s, %v", text, out, err)
	}
}

// FuzzDecode checks that decoded documents are JSON, and that encoding and decoding them again
// keeps their meaning.
func FuzzDecode(f *testing.F) {
	for in := range documents {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Decode(in)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%x was read as %q, which is not JSON", in, out)
		}
		same(t, string(out))
	})
}
