// Package disk stores the data of an emulator in Pebble. It detects damaged files when it opens
// a store, and stops all writes when the disk fails. Both emulators use it.
//
// # Damage
//
// Pebble checks every block of a table. It reads a log or a manifest up to the first chunk with
// a wrong checksum. Unless a later 32 KB block of the log proves that the chunk had been synced,
// Pebble treats it as a write that a crash has cut off. So a flipped bit near the end drops
// acknowledged writes without an error, and a truncated manifest drops whole tables. Therefore
// Open checks the files first:
//
//   - Close writes a seal: the checksums of all logs and manifests and the sizes of all tables.
//     After a clean close every change is detected.
//   - After a crash there is no seal. A note has the offset up to which the newest log is durable
//     (syncedLogs). What is not readable below it is damage. After kill -9 that is all that was
//     acknowledged.
//   - Without the note, a correct chunk after the first incorrect one proves damage: in a manifest
//     any such chunk, in a log one that was written after the position of the incorrect chunk had
//     been synced.
//   - A store without a version record must be empty and have no tables.
//
// Not detected: after a crash, damage to the last chunk of a manifest, because it looks like a write
// that was cut off. After a crash of the machine, which may lose the note or have an older one, also
// damage to the last part of a log, about a tenth.
//
// # Failure
//
// A commit that cannot be made durable returns an error, and so does every later one (DB.Err).
// The memory may then differ from the disk, so the emulator must not answer from it any more. A
// read of corrupt data in a table has the same effect. The first error is sent to DB.Failed, for
// the host of the emulator. Close then writes no seal, and a restart finds all acknowledged data.
//
// Pebble cannot survive some failures, such as a manifest that cannot be written. It expects the
// process to end, and this package ends it even if a caller recovers from panics (net/http).
package disk
