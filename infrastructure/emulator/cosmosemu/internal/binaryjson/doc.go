// Package binaryjson reads and writes Cosmos DB's binary JSON, which the .NET SDK sends
// and takes instead of text where AZURE_COSMOS_BINARY_ENCODING_ENABLED is set.
//
// A document is the byte 0x80 and a value: a marker, what the marker needs to know its
// length, and the data, numbers in little-endian order. Strings come in many forms;
// the package reads them all but the user strings of a dictionary that only query
// results have, and writes the plain ones. Source of the markers: Json/JsonBinaryEncoding
// of Microsoft.Azure.Cosmos, which is public.
package binaryjson
