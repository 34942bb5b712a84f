// Package disk keeps the data of an emulator in a Pebble store: how it is opened,
// what counts as damage, and what happens when the disk fails. Both emulators use it.
//
// # Damage
//
// Pebble checks every block of a table. Of a log or a manifest it reads up to the first
// chunk that does not check and, unless a later 32 KB block of the log proves that the
// chunk had been synced, takes it for a write that a crash cut short: a flipped bit in
// the last block drops acknowledged writes without a word, and a manifest cut short
// drops whole tables. So Open looks first:
//
//   - Close leaves a seal: the checksums of all logs and manifests, the sizes of all
//     tables. After a clean close any change is found.
//   - After a crash there is no seal. Then a sound chunk behind the first unsound one
//     is damage: in a log one that says it was written after that place had been synced,
//     in a manifest any.
//   - A store without the record of its version must be empty and have no tables.
//
// What remains: after a crash, damage to the very last chunk of a log or manifest looks
// like a write cut short.
//
// # Failure
//
// A commit that cannot be made durable returns an error, and so does every one after it
// (DB.Err): what is in memory may differ from what is stored, so nothing must be
// answered from it any more. The same holds when corrupt data is met in a table. The
// first reason goes to DB.Failed, to be told to whoever runs the emulator; a new start
// finds all that was acknowledged. Close leaves no seal then.
//
// Some failures Pebble itself cannot survive: a manifest that cannot be written. It then
// expects the process to end, and it does, whatever recovers from panics (net/http).
package disk
