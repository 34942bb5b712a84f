package admin

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// fieldReader reads the elements of a description into properties, in any order.
type fieldReader struct {
	node *xmlNode
	err  error
}

func (f *fieldReader) fail(name, value, want string) {
	if f.err == nil {
		f.err = &broker.Error{Condition: broker.ArgumentError, Description: fmt.Sprintf("The value '%s' of %s is not %s.", value, name, want)}
	}
}

// string reads a text with its blanks, because filters compare them.
func (f *fieldReader) string(name string, to *string) {
	if c := f.node.child(name); c != nil {
		*to = c.text
	}
}

func (f *fieldReader) bool(name string, to *bool) {
	if v, ok := f.node.value(name); ok {
		b, err := strconv.ParseBool(v)
		if err != nil {
			f.fail(name, v, "true or false")
		}
		*to = b
	}
}

func (f *fieldReader) notBool(name string, to *bool) {
	if f.node.child(name) != nil {
		f.bool(name, to)
		*to = !*to
	}
}

// mustBePositive refuses a zero, which the broker would read as no value and replace by the default.
const mustBePositive = "allowed: it must be positive"

func (f *fieldReader) int(name string, to *int) {
	if v, ok := f.node.value(name); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			f.fail(name, v, "a number")
		}
		if n == 0 && name != "MaxMessageSizeInKilobytes" { // which some SDKs send without a value of the caller
			f.fail(name, v, mustBePositive)
		}
		*to = n
	}
}

func (f *fieldReader) duration(name string, to *time.Duration) {
	if v, ok := f.node.value(name); ok {
		d, err := isoduration.Parse(v)
		if err != nil {
			f.fail(name, v, "an ISO 8601 duration")
		}
		if d == 0 {
			f.fail(name, v, mustBePositive)
		}
		*to = d
	}
}

func (f *fieldReader) status(to *broker.Status) {
	v, ok := f.node.value("Status")
	if !ok {
		return
	}
	switch s := broker.Status(v); s {
	case broker.StatusActive, broker.StatusDisabled, broker.StatusSendDisabled, broker.StatusReceiveDisabled:
		*to = s
	default:
		f.fail("Status", v, "a status an entity can be given")
	}
}

// entityName reads the name or URI of an entity.
func (f *fieldReader) entityName(name string, to *string) {
	v, ok := f.node.value(name)
	if !ok {
		return
	}
	if strings.Contains(v, "://") {
		u, err := url.Parse(v)
		if err != nil {
			f.fail(name, v, "a URI")
			return
		}
		v = strings.Trim(u.Path, "/")
	}
	*to = v
}

// Parts of a description that the broker does not interpret are stored with the entity, as
// XML, and returned unchanged.
const opaqueRoot = "Opaque"

// opaque returns these children of a description, for storage.
func opaque(n *xmlNode, names ...string) []byte {
	root := &xmlNode{}
	root.name.Local = opaqueRoot
	out := []byte("<" + opaqueRoot + ">")
	found := false
	for _, name := range names {
		if c := n.child(name); c != nil {
			out = append(out, c.raw()...)
			found = true
		}
	}
	if !found {
		return nil
	}
	return append(out, "</"+opaqueRoot+">"...)
}

// opaqueChild returns a stored child as XML, empty if there is none.
func opaqueChild(stored []byte, name string) string {
	if len(stored) == 0 {
		return ""
	}
	root, err := parseXML(strings.NewReader(string(stored)))
	if err != nil {
		return ""
	}
	if c := root.child(name); c != nil {
		return string(c.raw())
	}
	return ""
}

// forwardTo writes where an entity forwards to: as a client gave it, or the name if the admin API did not create the
// entity. An update without it would end the forwarding.
func forwardTo(b *bytes.Buffer, stored []byte, name, to string) {
	if given := opaqueChild(stored, name); given != "" {
		b.WriteString(given)
		return
	}
	elementIf(b, name, to)
}

func boolText(v bool) string { return strconv.FormatBool(v) }
