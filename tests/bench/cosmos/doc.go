// Package cosmos is the benchmark's stage for the Cosmos DB emulator: the processor time of
// the server for each operation of azcosmos, compared with a net/http server that gives the
// same answers and stores nothing. See package measure.
//
// Each server is a separate process (command serve), so that its processor time and memory
// can be measured. This process makes the load: TLS, key authorization, documents of 1 KB,
// 16 clients. Emulator and floor take turns.
package cosmos
