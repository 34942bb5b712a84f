// Package cosmos is the benchmark's stage for the Cosmos DB emulator: the processor
// time of the server for each operation of azcosmos, beside a net/http server that
// answers the same and stores nothing. See package measure.
//
// Each server is a process of its own (command serve), so that its processor time and
// its memory are its own; the load comes from this process: TLS, key authorization,
// documents of 1 KB, 16 clients. Emulator and floor take turns.
package cosmos
