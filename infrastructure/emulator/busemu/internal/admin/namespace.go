package admin

import (
	"bytes"
)

// namespaceInfo answers GET /$namespaceinfo: name, tier and creation time of the namespace.
func (q *request) namespaceInfo() {
	if !q.mayRead() {
		return
	}
	sku := "Standard"
	if q.Premium {
		sku = "Premium"
	}
	name := q.namespaceName()
	q.replyEntry(200, entry{path: "$namespaceinfo", title: name, at: q.Started, updated: q.Started, content: func(b *bytes.Buffer) {
		defer description(b, "NamespaceInfo")()
		element(b, "CreatedTime", formatTime(q.Started))
		element(b, "MessagingSKU", sku)
		if q.Premium {
			element(b, "MessagingUnits", "1")
		}
		element(b, "ModifiedTime", formatTime(q.Started))
		element(b, "Name", name)
		element(b, "NamespaceType", "Messaging")
	}})
}
