// Package document is the document that the Cosmos DB stage stores and reads, 1 KB of
// JSON. Load and floor share it.
package document

import (
	"fmt"
	"strings"
)

// Filler is how many bytes of a document are filled up.
const Filler = 900

// Body returns a document.
func Body(id, pk string) []byte { return With(id, pk, strings.Repeat("x", Filler)) }

// With returns a document with that filling.
func With(id, pk, filling string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"contact","data":{"name":"John Doe","n":12345,"list":[1,2,3],"text":"%s"}}`, id, pk, filling)
}
