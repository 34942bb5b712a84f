package admin

import (
	"bytes"
	"strings"
	"testing"

	"feedbox/tests/fuzzseed"
)

// FuzzXML: no document makes the parser panic, and its output parses to the same document.
func FuzzXML(f *testing.F) {
	fuzzseed.Add(f)
	f.Add(`<entry xmlns="a"><content><QueueDescription xmlns:i="` + nsInstance + `"><Filter i:type="x:SqlFilter" xmlns:x="y">a &lt; b</Filter></QueueDescription></content></entry>`)
	f.Add(`<a><b xmlns:p="q" p:c="d"/></a>`)
	f.Fuzz(func(t *testing.T, s string) {
		root, err := parseXML(strings.NewReader(s))
		if err != nil {
			return
		}
		root.instanceType()
		_, _ = readRuleDescription(root, "r")
		_, _ = readQueue(root)
		once := root.raw()
		again, err := parseXML(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("own document %s: %v", once, err)
		}
		if twice := again.raw(); !bytes.Equal(once, twice) {
			t.Fatalf("%s became %s", once, twice)
		}
	})
}
