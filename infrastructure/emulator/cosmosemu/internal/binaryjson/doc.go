// Package binaryjson reads and writes Cosmos DB's binary JSON, which the .NET SDK uses instead
// of text if AZURE_COSMOS_BINARY_ENCODING_ENABLED is set.
//
// A document is the byte 0x80 and a value. A value is a marker, a length if the marker does not
// imply it, and the data, with numbers in little-endian order. Strings have many forms. The
// package reads all of them except user strings, whose dictionary exists only in query results,
// and writes the plain form. Source of the markers: Json/JsonBinaryEncoding of
// Microsoft.Azure.Cosmos, which is public.
package binaryjson
