// Package document creates the document of the Cosmos DB stage, 1 KB of JSON, for load and
// floor.
package document

import (
	"fmt"
	"strings"
)

// Filler is the number of filling bytes in a document.
const Filler = 900

// Body returns a document.
func Body(id, pk string) []byte { return With(id, pk, strings.Repeat("x", Filler)) }

// With returns a document with the given filling.
func With(id, pk, filling string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"contact","data":{"name":"John Doe","n":12345,"list":[1,2,3],"text":"%s"}}`, id, pk, filling)
}
