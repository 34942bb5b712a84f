package admin

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// The namespaces of the admin API.
const (
	nsAtom       = "http://www.w3.org/2005/Atom"
	nsServiceBus = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	nsInstance   = "http://www.w3.org/2001/XMLSchema-instance"
)

// xmlNode is an element with its prefixes as written. Prefixes must survive, because the
// values of i:type attributes contain them.
type xmlNode struct {
	name     xml.Name // Space is the prefix
	attrs    []xml.Attr
	text     string
	children []*xmlNode
	scope    map[string]string // prefixes declared above this element
}

const maxXMLDepth = 64

// parseXML reads a document. The limit of the HTTP body bounds its size.
func parseXML(r io.Reader) (*xmlNode, error) {
	d := xml.NewDecoder(r)
	var stack []*xmlNode
	var root *xmlNode
	for {
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			if root == nil || len(stack) > 0 {
				return nil, errors.New("the document is empty or cut short")
			}
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			n := &xmlNode{name: t.Name, attrs: append([]xml.Attr(nil), t.Attr...)}
			switch {
			case len(stack) > 0:
				parent := stack[len(stack)-1]
				parent.children = append(parent.children, n)
				n.scope = parent.inner()
			case root != nil:
				return nil, errors.New("the document has two roots")
			default:
				root = n
			}
			if stack = append(stack, n); len(stack) > maxXMLDepth {
				return nil, fmt.Errorf("the document is nested deeper than %d", maxXMLDepth)
			}
		case xml.EndElement:
			if len(stack) == 0 || stack[len(stack)-1].name != t.Name {
				return nil, fmt.Errorf("unexpected end of %s", t.Name.Local)
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text += string(t)
			}
		}
	}
}

// inner returns the prefixes in scope for n's children. "" is the default namespace.
func (n *xmlNode) inner() map[string]string {
	declared := false
	for _, a := range n.attrs {
		if _, ok := declaration(a); ok {
			declared = true
		}
	}
	if !declared {
		return n.scope
	}
	out := make(map[string]string, len(n.scope)+1)
	for p, uri := range n.scope {
		out[p] = uri
	}
	for _, a := range n.attrs {
		if p, ok := declaration(a); ok {
			out[p] = a.Value
		}
	}
	return out
}

// declaration returns the prefix that an xmlns attribute declares.
func declaration(a xml.Attr) (prefix string, ok bool) {
	switch {
	case a.Name.Space == "xmlns":
		return a.Name.Local, true
	case a.Name.Space == "" && a.Name.Local == "xmlns":
		return "", true
	}
	return "", false
}

// child returns the first child of this local name, nil if there is none.
func (n *xmlNode) child(local string) *xmlNode {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name.Local == local {
			return c
		}
	}
	return nil
}

// value returns the trimmed text of a child, and whether it is there.
func (n *xmlNode) value(local string) (string, bool) {
	c := n.child(local)
	if c == nil {
		return "", false
	}
	return strings.TrimSpace(c.text), true
}

// instanceType returns the local part of the i:type attribute.
func (n *xmlNode) instanceType() string {
	for _, a := range n.attrs {
		if a.Name.Local == "type" && a.Name.Space != "" && n.inner()[a.Name.Space] == nsInstance {
			_, local, ok := strings.Cut(a.Value, ":")
			if !ok {
				return a.Value
			}
			return local
		}
	}
	return ""
}

// raw writes the element so that it has the same meaning under any parent: it declares the
// prefixes that are declared above it.
func (n *xmlNode) raw() []byte {
	var b bytes.Buffer
	top := *n
	own := make(map[string]bool)
	for _, a := range n.attrs {
		if p, ok := declaration(a); ok {
			own[p] = true
		}
	}
	prefixes := make([]string, 0, len(n.scope))
	for p := range n.scope {
		if !own[p] {
			prefixes = append(prefixes, p)
		}
	}
	sort.Strings(prefixes)
	top.attrs = append([]xml.Attr(nil), n.attrs...)
	for _, p := range prefixes {
		name := xml.Name{Space: "xmlns", Local: p}
		if p == "" {
			name = xml.Name{Local: "xmlns"}
		}
		top.attrs = append(top.attrs, xml.Attr{Name: name, Value: n.scope[p]})
	}
	top.write(&b)
	return b.Bytes()
}

func (n *xmlNode) write(b *bytes.Buffer) {
	name := qualified(n.name)
	b.WriteByte('<')
	b.WriteString(name)
	for _, a := range n.attrs {
		b.WriteByte(' ')
		b.WriteString(qualified(a.Name))
		b.WriteString(`="`)
		escape(b, a.Value)
		b.WriteByte('"')
	}
	b.WriteByte('>')
	if len(n.children) == 0 {
		escape(b, n.text)
	}
	for _, c := range n.children {
		c.write(b)
	}
	b.WriteString("</")
	b.WriteString(name)
	b.WriteByte('>')
}

func qualified(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// escaper leaves apostrophes unescaped, as the service does.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", "&#xD;", "\n", "&#xA;", "\t", "&#x9;")

func escape(b *bytes.Buffer, s string) {
	_, _ = escaper.WriteString(b, strings.ToValidUTF8(s, "\uFFFD")) // a bytes.Buffer does not fail
}

// element writes <name>text</name>.
func element(b *bytes.Buffer, name, text string) {
	b.WriteString("<" + name + ">")
	escape(b, text)
	b.WriteString("</" + name + ">")
}

// elementIf writes the element unless the text is empty.
func elementIf(b *bytes.Buffer, name, text string) {
	if text != "" {
		element(b, name, text)
	}
}
