// Package servicebus is the benchmark's stage for the Service Bus emulator: the real
// azservicebus client against the emulator in memory and on disk, compared with the same
// client against a floor, a broker that stores nothing.
//
// Client and broker share the process and the machine's cores. The sides take turns. Each
// turn starts a new broker, warms up the client before the measurement, and checks the
// broker's counters at the end: a message that is lost or counted twice fails the stage.
//
// Every body has 512 bytes. "x64" in a figure's name is the number of operations in flight.
// Processor time is the time of client and broker per message; the difference to the floor
// is the cost of the broker itself.
package servicebus
