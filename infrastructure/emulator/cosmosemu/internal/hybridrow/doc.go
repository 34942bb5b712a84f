// Package hybridrow reads the batches that the .NET SDK sends, and writes their
// results: HybridRow records in a RecordIO stream.
//
// A stream is a segment header, then for each record a header with its length and CRC-32, and
// the record. A row is a version byte, the number of its schema, a byte with one bit for each
// column that is present, the fixed columns, the variable ones with their length before them,
// and then sparse fields: a type code, the number of the name, the value. Numbers are
// little-endian.
//
// Sources: HybridRowBatchSchemas.json of the .NET SDK, Docs/Grammar.md and Docs/RecordIO.md of
// HybridRow. Only the two schemas of batches are supported. Fields that the emulator does not
// support are refused, because skipping them would give wrong results.
package hybridrow
