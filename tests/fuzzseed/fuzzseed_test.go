package fuzzseed

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse(header + "[]byte(\"a\\x00\\xff\")\nstring(\"\\u00fc\")\nbyte('\\x01')\nbyte('\\'')\nuint16(7)\nuint32(4294967295)\n")
	want := []any{[]byte("a\x00\xff"), "ü", byte(1), byte('\''), uint16(7), uint32(4294967295)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v; want %#v", got, err, want)
	}
	for _, wrong := range []string{"", "string(\"a\")\n", header + "string(a)\n", header + "int(1)\n", header + "1\n"} {
		if got, err := parse(wrong); err == nil {
			t.Errorf("%q is read as %#v", wrong, got)
		}
	}
}
