package busemu

import (
	"bytes"
)

// namespaceInfo answers GET /$namespaceinfo.
func (q *adminRequest) namespaceInfo() {
	if !q.mayRead() {
		return
	}
	s := q.srv
	sku := "Standard"
	if s.o.Premium {
		sku = "Premium"
	}
	name := q.namespaceName()
	q.replyEntry(200, entry{path: "$namespaceinfo", title: name, at: s.started, updated: s.started, content: func(b *bytes.Buffer) {
		defer description(b, "NamespaceInfo")()
		element(b, "CreatedTime", formatTime(s.started))
		element(b, "MessagingSKU", sku)
		if s.o.Premium {
			element(b, "MessagingUnits", "1")
		}
		element(b, "ModifiedTime", formatTime(s.started))
		element(b, "Name", name)
		element(b, "NamespaceType", "Messaging")
	}})
}
