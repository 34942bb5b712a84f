// Package brokers runs the relay with brokers that others wrote: API and relays as processes,
// the store on our emulator, and the verifier of the promises over what a consumer with an inbox
// receives. Relays and brokers are killed meanwhile.
package brokers
