// Package servicebus is the benchmark's stage for the Service Bus emulator: the
// real azservicebus client against the emulator in memory and on disk, beside the
// same client against a floor, a broker that accepts and forgets.
//
// Client and broker share the process and the machine's cores. The sides take
// turns; each turn starts its broker anew, warms the client up before the clock
// starts, and ends with a look at the broker's counters: a message lost or counted
// twice makes the stage fail.
//
// Every body has 512 bytes. "x64" in a figure's name is how many operations are in
// flight. Processor time is that of client and broker together, for one message;
// the difference to the floor is what the broker itself costs.
package servicebus
